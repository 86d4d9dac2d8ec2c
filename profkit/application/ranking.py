"""Which kernels an application's step is made of, and which launches represent them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pick:
    """A launch to profile, for a kernel with its launch configuration.

    `name` and `configuration` index the tables of the events; `kernel` is the launch's index in
    `Events.kernels`. `share` is of the step's wall time on the GPU's critical path. `launch_index`
    counts all kernel launches of the process in order of their launch calls from 0, collectives
    included, `skip` those of the same name alone; `nvtx` are the names of the ranges around the
    launch call, outermost first. `process` and `device` say where it ran.
    """

    process: int
    device: int
    name: int
    configuration: int
    kernel: int
    share: float
    launch_index: int
    skip: int
    nvtx: tuple[str, ...]
