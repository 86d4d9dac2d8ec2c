"""Baselines on simulated GPUs: real executors, processes and files; only the GPU's time is made."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from profkit.execution.placement import Placement
from profkit.study.matrix import matrix_of
from profkit.study.measurement import BaselinePlan
from profkit.timing.measurement import BLOCKS, Subject, TimingPlan
from profkit.timing.stopwatch import Settings
from tests.conftest import ROOT

PROGRAM = "tests.stand_in.timing_worker"


def plan_of(
    folder: Path,
    shapes: int,
    place: Placement | None,
    *,
    backends: Sequence[str] = ("a", "b"),
    resume: bool = False,
) -> BaselinePlan:
    """A baseline of so many shapes."""
    target = folder / "made.py"
    target.write_text("# its process is simulated\n", encoding="utf-8")
    return BaselinePlan(
        timing=TimingPlan(
            (Subject(target),),
            settings=Settings(warmup=0.2),
            samples=80,
            blocks=BLOCKS,
            program=PROGRAM,
        ),
        matrix=matrix_of("made", "", [{"n": n + 1} for n in range(shapes)]),
        out=folder / "out",
        backends=tuple(backends),
        on=place,
        resume=resume,
        command=("profkit", "baseline", "run", "made.py"),
    )


def variables(folder: Path, node: str, seconds: float) -> dict[str, str]:
    """Of the processes of a node."""
    locks = folder / f"locks-{node}"
    locks.mkdir(exist_ok=True)
    return {
        "PROFKIT_LOCK_DIR": str(locks),
        "PROFKIT_STAND_IN_LOG": str(folder / "measured.txt"),
        "PROFKIT_STAND_IN_NODE": node,
        "PROFKIT_STAND_IN_SECONDS": str(seconds),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": f"{ROOT}:{ROOT}/tests/stand_in/nvml",
    }


class Beside(threading.Thread):
    """Runs beside a block, until that ends."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()


class Killer(Beside):
    """Kills a worker at random every `every` seconds, as progress.json names them; `most` times."""

    def __init__(self, out: Path, every: float, most: int | None = None) -> None:
        super().__init__()
        self._out, self._every, self._most = out, every, most
        self.kills = 0

    def run(self) -> None:
        """Until the block ends."""
        choice = random.Random(1)
        while not self._ended.wait(self._every) and self.kills != self._most:
            with suppress(OSError, ValueError, IndexError):
                progress = json.loads((self._out / "progress.json").read_text("utf-8"))
                process = choice.choice(processes(progress["running"]))
                os.kill(process, signal.SIGKILL)
                self.kills += 1


def processes(running: Sequence[Any]) -> list[int]:
    """The processes of workers: `HOST GPU N process PID`, or the child of submitit's `job PID`."""
    numbers = []
    for worker in sorted({row["worker"] for row in running}):
        number = int(worker.split()[-1])
        if worker.startswith("job "):
            children = subprocess.run(
                ["pgrep", "-P", str(number)], capture_output=True, text=True, check=False
            )
            numbers += [int(child) for child in children.stdout.split()]
        else:
            numbers.append(number)
    return numbers


@dataclass(frozen=True)
class Measured:
    """A shape that a process measured to its end, by the monotonic clock."""

    shape: str
    process: str
    start: float
    end: float


def measured_shapes(folder: Path) -> list[Measured]:
    """All that processes measured, in the order of their ends."""
    rows = [line.split() for line in (folder / "measured.txt").read_text("ascii").splitlines()]
    return [Measured(row[0], row[1], float(row[2]), float(row[3])) for row in rows]


def gaps(measured: Sequence[Measured]) -> list[float]:
    """Seconds between the end of a shape and the start of the next one in the same process."""
    ends: dict[str, float] = {}
    waits = []
    for each in measured:
        if each.process in ends:
            waits.append(each.start - ends[each.process])
        ends[each.process] = each.end
    return waits


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class MemoryLog(Beside):
    """This process's memory, every second."""

    def __init__(self) -> None:
        super().__init__()
        self.started = time.monotonic()
        self.rows: list[tuple[float, int]] = []

    def run(self) -> None:
        """Until the block ends."""
        while not self._ended.wait(1.0):
            self.rows.append((time.monotonic() - self.started, resident()))
