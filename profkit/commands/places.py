"""The places of `--on`, for the verbs that measure on several GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profkit.core.errors import UsageError

if TYPE_CHECKING:
    from profkit.execution.placement import Placement


def place_of(
    on: str | None,
    gpus: int | None,
    partition: str | None,
    time: int | None,
    *,
    gpu: int | None,
    device: str | None,
) -> Placement | None:
    """Where to measure; by default on all GPUs of this machine where there are several, None: on
    one. Raises UsageError for options that exclude each other."""
    from profkit.execution.placement import LOCAL, SLURM, placement, visible_gpus

    if on is None:
        if partition is not None or time is not None:
            raise UsageError("--partition and --time are Slurm's", "give --on slurm too")
        if gpu is not None or device == "cpu" or gpus == 1 or len(visible_gpus()) < 2:
            return None
        on = LOCAL
    if gpu is not None:
        raise UsageError(f"--gpu {gpu} names one GPU, --on {on} takes several", "leave out one")
    if device == "cpu" and on == SLURM:
        raise UsageError("--on slurm measures on GPUs", "leave out --device cpu")
    return placement(on, gpus=gpus, partition=partition, minutes=time)
