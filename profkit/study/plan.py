"""The request for a baseline, and its target's declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from profkit.execution.placement import Placement
from profkit.study.matrix import Matrix
from profkit.study.plan_format import Backend
from profkit.timing.measurement import COMPARED_BLOCKS, Subject, TimingPlan
from profkit.timing.stopwatch import Settings
from profkit.timing.turns import TIMES_TARGETS

BLOCKS = COMPARED_BLOCKS
WARMUP = 0.2  # s, chosen: less than `time` has, since a process stays warm over many cells
TIMEOUT = 600.0  # s, chosen: above the compilation of any kernel


class Profiled(StrEnum):
    """Which cells to profile."""

    none = "none"
    top = "top"
    all = "all"


@dataclass(frozen=True)
class BaselinePlan:
    """Shapes and backends to measure, and how.

    `backends` are variants of the target, all where none is named. `samples` is for each cell,
    taken in `blocks` blocks. `budget` and `timeout` (for a response of a cell) are in seconds.
    `profiled` cells get a profile. `command` is saved with the results. `program` is the module of
    the process that measures. `on` is where, None: on one GPU of this machine. `energy` is the
    seconds of a run of calls whose energy is measured; None: no energy.
    """

    target: Path
    matrix: Matrix
    out: Path
    backends: tuple[str, ...] = ()
    settings: Settings = field(default_factory=lambda: Settings(warmup=WARMUP))
    samples: int = 100
    blocks: int = BLOCKS
    seed: int = 42
    budget: float | None = None
    timeout: float = TIMEOUT
    profiled: Profiled = Profiled.none
    device: str | None = None
    gpu: int | None = None
    resume: bool = False
    command: tuple[str, ...] = ()
    program: str = TIMES_TARGETS
    on: Placement | None = None
    energy: float | None = None

    @property
    def timing(self) -> TimingPlan:
        """How a shape is timed."""
        return TimingPlan(
            subjects=(Subject(self.target),),
            settings=self.settings,
            samples=self.samples,
            blocks=self.blocks,
            seed=self.seed,
            device=self.device,
            gpu=self.gpu,
            program=self.program,
            energy=self.energy,
        )


@dataclass(frozen=True)
class Declared:
    """The target's declaration: its name, the backends to measure, the FLOP of each shape."""

    name: str
    backends: tuple[Backend, ...]
    flop: Mapping[str, float]

    def about(self, name: str) -> Backend:
        """A backend."""
        return next(backend for backend in self.backends if backend.name == name)

    @property
    def available(self) -> list[str]:
        return [backend.name for backend in self.backends if backend.available]
