"""The executor of a placement; submitit is imported where it is used."""

from pathlib import Path

from profkit.core.errors import EnvironmentProblem
from profkit.execution.placement import SLURM, Placement, visible_gpus
from profkit.execution.protocol import Executor, MakeWorker


def executor_of(
    place: Placement, make: MakeWorker, folder: Path, *, on_cpu: bool, ahead: int = 2
) -> Executor:
    """A running executor, `folder` for files of its jobs.

    A worker gets `ahead` tasks at a time: with two the next is there when one ends.
    """
    if place.kind == SLURM:
        from profkit.execution.slurm import SlurmExecutor

        return SlurmExecutor(make, folder, place)
    from profkit.execution.local import LocalExecutor

    gpus: list[int | None] = [None] if on_cpu else [*visible_gpus()]
    if not gpus:
        raise EnvironmentProblem("--on local: no GPU is visible", "see profkit doctor")
    return LocalExecutor(make, gpus[: place.gpus], ahead)
