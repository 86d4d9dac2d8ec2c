"""A trial of a program: its runs, in place or in copies of its folder, and what came of them."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from profkit.application.trial_file import TrialFile
from profkit.core.errors import BadInput
from profkit.trial.outcome import outcome
from profkit.trial.perturbed import perturbed
from profkit.trial.run import (
    TIMED_OUT,
    Extent,
    Perturbation,
    Result,
    Start,
    run_started,
    variables_of,
)
from profkit.trial.search import Combination, search
from profkit.trial.switch import Switch
from profkit.trial.whole import confirmed

WINDOW = 2.0  # s of units in a run, chosen: a fifth of the time that most programs take to start
_CACHES = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}
_SLOWER = 4.0  # chosen: a run may take so many times the unchanged one's time
_COMPILING = 120.0  # s that a run may take in addition, chosen: torch.compile of a large model
_CORES = 8  # chosen: with fewer, imports would take time from the run that is measured
_LARGEST_COPY = 2 << 30  # bytes, chosen: copied in seconds


class Subject(Struct, frozen=True):
    """A program's command, its variables, and whether each run has a copy of this folder."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    in_copy: bool = False


def try_program(
    subject: Subject,
    switches: Sequence[Switch],
    budget: float,
    tell: Callable[[str, str], None],
    first: Sequence[str] = (),
) -> TrialFile:
    """Try switches on a program, those named `first` before others, in at most `budget` seconds.

    Raises EnvironmentProblem where the program can't be started, BadInput for a folder that is too
    large to copy.
    """
    start = time.monotonic()
    with _runner(subject, budget) as measure:
        evidence = search(
            measure, switches, budget, time.monotonic, lambda name: tell(name, ""), first
        )
        trial = outcome(evidence, subject.command, budget)

        def run_whole(names: tuple[str, ...]) -> Result:
            tell(" + ".join(("whole program", *names)), "")
            measure.extent = Extent()
            return measure(tuple(switch for switch in switches if switch.name in names))

        def run_with(words: str, variables: Mapping[str, str]) -> Result:
            tell(words, "")
            return measure.run_with(variables)

        if evidence.unchanged:
            trial = confirmed(trial, evidence, run_whole)
            trial = perturbed(trial, evidence, run_with, subject.environment, measure.left)
    return replace(trial, seconds=time.monotonic() - start)


class _Runner:
    """Runs the program; while a run goes on, the next process imports its libraries."""

    def __init__(self, subject: Subject, folder: Path | None, caches: str, budget: float) -> None:
        made = {name: f"{caches}/{kind}" for name, kind in _CACHES.items()}
        self.environment = {**made, **subject.environment}
        self.command, self.folder = subject.command, folder
        self.end = time.monotonic() + budget
        self.extent = Extent(window=WINDOW)
        self.first: Result | None = None
        self.waiting: Start | None = None

    def __call__(self, switches: Combination, *, perturb: Perturbation = "") -> Result:
        remaining = self.left()
        limit = _SLOWER * self.first.seconds + _COMPILING if self.first else remaining
        result = run_started(
            self._start(variables_of(switches, self.environment)),
            switches,
            self.extent,
            timeout=max(min(limit, remaining), 1.0),
            perturb=perturb,
            meanwhile=self._prepare,
        )
        if result.status == TIMED_OUT and remaining < limit:
            return replace(result, is_cut=True)
        if self.first is None:
            self.first = result
            self.extent = Extent(result.unit, result.units if result.stopped else 0)
        return result

    def run_with(self, variables: Mapping[str, str]) -> Result:
        """A run of the whole program with these variables."""
        return run_started(self._start(variables), (), Extent(), timeout=max(self.left(), 1.0))

    def left(self) -> float:
        """Seconds of the budget that are left."""
        return self.end - time.monotonic()

    def _start(self, variables: Mapping[str, str]) -> Start:
        """What waits, where it has the same variables, or a new process."""
        if self.waiting is not None and self.waiting.is_waiting and not variables:
            waiting, self.waiting = self.waiting, None
            return waiting
        return Start(self.command, self.environment, self.folder, variables=variables)

    def _prepare(self) -> None:
        first, cores = self.first, len(os.sched_getaffinity(0))
        is_useful = first and first.modules and first.limit != "input" and cores >= _CORES
        if first and is_useful and self.waiting is None:
            self.waiting = Start(self.command, self.environment, self.folder, first.modules)
            self.waiting.begin()

    def discard(self) -> None:
        """End what waits."""
        if self.waiting is not None:
            self.waiting.discard()


@contextmanager
def _runner(subject: Subject, budget: float) -> Iterator[_Runner]:
    folder = _copied(subject)
    with tempfile.TemporaryDirectory() as caches:
        runner = _Runner(subject, folder, caches, budget)
        try:
            yield runner
        finally:
            runner.discard()


def _copied(subject: Subject) -> Path | None:
    """The folder that each run has a copy of."""
    if not subject.in_copy:
        return None
    here = Path.cwd()
    size = sum(path.stat().st_size for path in here.rglob("*") if path.is_file())
    if size > _LARGEST_COPY:
        raise BadInput(f"{here}: {size / 1e9:.1f} GB are too much to copy", "leave out --in-copy")
    return here
