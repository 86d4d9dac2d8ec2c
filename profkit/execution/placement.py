"""Where tasks run: `local`, `slurm`."""

import os

from msgspec import Struct

from profkit.capture.gpu import VISIBLE, NoDriver, states
from profkit.core.errors import UsageError
from profkit.core.extras import require

LOCAL, SLURM = "local", "slurm"
MINUTES = 60  # chosen: fits the shortest queues of most clusters
JOBS = 8  # chosen: GPUs of a node


class Placement(Struct, frozen=True):
    """An executor and its options; `gpus` is the most GPUs to use, None: all (of Slurm: 8 jobs).

    `minutes` is the time limit of a Slurm job, `cluster` submitit's: slurm, or local for tests.
    """

    kind: str
    gpus: int | None = None
    partition: str | None = None
    minutes: int = MINUTES
    cluster: str = SLURM


def placement(
    word: str, *, gpus: int | None = None, partition: str | None = None, minutes: int | None = None
) -> Placement:
    """The placement of `--on` and its options; raises UsageError for another word.

    Raises EnvironmentProblem where an extra is not installed.
    """
    if word not in {LOCAL, SLURM}:
        raise UsageError(f"--on {word}: no such place", "use local or slurm")
    if word != SLURM and (partition is not None or minutes is not None):
        raise UsageError("--partition and --time are Slurm's", "give --on slurm too")
    if word == SLURM:
        require("--on slurm", "submitit")
    return Placement(word, gpus, partition, minutes or MINUTES)


def visible_gpus() -> list[int]:
    """The numbers of this machine's GPUs that CUDA_VISIBLE_DEVICES leaves, in the driver's order;
    none where that is unknown."""
    try:
        gpus = [gpu for gpu in states() if not gpu.problem]
    except NoDriver:
        return []
    visible = os.environ.get(VISIBLE)
    if visible is None:
        return [gpu.index for gpu in gpus]
    words = [word.strip() for word in visible.split(",")]
    return [
        gpu.index
        for word in words
        for gpu in gpus
        if word == str(gpu.index) or (word.startswith("GPU-") and gpu.uuid.startswith(word))
    ]
