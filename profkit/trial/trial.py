"""A trial of a program: its runs, in place or in copies of its folder, and what came of them."""

from __future__ import annotations

import ast
import math
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from profkit.capture.copies import check_size
from profkit.capture.written import Files, Written, copy_small, listed, put_back
from profkit.core.errors import EnvironmentProblem, ProfkitError
from profkit.core.text_files import read_text
from profkit.timing.measurement import Tell
from profkit.trial import checks
from profkit.trial.evidence import Combination
from profkit.trial.outcome import outcome
from profkit.trial.perturbed import perturbed
from profkit.trial.prepared import Prepared
from profkit.trial.run import (
    KEPT,
    TIMED_OUT,
    WALL,
    Extent,
    Perturbation,
    Result,
    hooked_environment,
    run_program,
    variables_of,
)
from profkit.trial.search import search
from profkit.trial.switch import Switch
from profkit.trial.trial_file import TrialFile
from profkit.trial.whole import confirmed

WINDOW = 1.0  # s of units in a run, chosen: as long as the rest of a fork's start takes
_CACHES = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "JAX_COMPILATION_CACHE_DIR": "jax",
}
_JAX_CACHE = {  # of programs however small: one that is not jitted compiles hundreds of them
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
_UNSEEDED = {"PROFKIT_SEEDED": "0", "PROFKIT_SEEDED_RANK": "0"}  # as of `child.seeds`
_SLOWER = 4.0  # chosen: a run may take so many times the unchanged one's time
_COMPILING = 120.0  # s that a run may take in addition, chosen: torch.compile of a large model
_OF_LEFT = 1 / 3  # chosen: of the budget that is left, so that one run doesn't end the trial
_OF_WHOLE = 0.5  # chosen: the same of a whole run, besides: others may take as much
_FRESH = "each run imports its libraries"
_OF_JAX = {"jax", "flax", "optax", "equinox", "haiku"}
_OF_NUMBERS = {"numpy", "scipy", "pandas", "matplotlib", "tqdm", "yaml"}
_WITHOUT_TORCH = sys.stdlib_module_names | _OF_NUMBERS
_WHOLE = 0.05  # chosen: of the budget, in which the first run may reach the program's end
_APART = 2  # packages that forks import by themselves, chosen: finding one takes a start
_LATE = "changing-dataset"  # a feature that a whole run may be the first to see
_REPEATED = 1e-3  # chosen: how far results of unchanged runs may be apart for rounding alone
_SOUND = 2  # forks that end well, chosen: after them a failure is the switch's
_POLLED = 0.02  # s from one look at what imports to the next


class Subject(Struct, frozen=True):
    """A program's command, its variables, and whether each run has a copy of this folder."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    in_copy: bool = False


def try_program(
    subject: Subject,
    switches: Sequence[Switch],
    budget: float,
    tell: Tell,
    first: Sequence[str] = (),
) -> TrialFile:
    """Try switches on a program, those named `first` before others, in at most `budget` seconds.

    Raises EnvironmentProblem where the program can't be started, BadInput for a folder that is too
    large to copy.
    """
    here = _folder()
    with ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        measure = _Runner(subject, here, budget, Path(place).resolve(), tell)
        before = {} if subject.in_copy else listed(*measure.roots, but=Path(place).resolve())
        copy_small(before, measure.kept)
        stack.callback(measure.put_back)
        stack.callback(measure.discard)
        evidence = search(measure, switches, budget, time.monotonic, measure.tell, first)
        trial = outcome(evidence, subject.command, budget)
        wholes = [run for run in evidence.unchanged if run.is_whole] or evidence.unchanged[:1]

        def run_whole(names: tuple[str, ...], perturb: Perturbation) -> Result:
            measure.tell(" + ".join(("whole program", *names)))
            measure.discard()  # a gain that only a fork has is none
            measure.extent = Extent()
            chosen = tuple(switch for switch in switches if switch.name in names)
            late = {_LATE for run in wholes if _LATE in run.features}
            lacking = (each.lacks(wholes[0].features | late) for each in chosen)
            if reason := next(filter(None, lacking), ""):
                return Result(names, 0.0, failure=reason)
            wholes.append(measure(chosen, perturb=perturb, grace=_OF_WHOLE * measure.left()))
            return wholes[-1]

        def run_plain() -> Result | None:
            if measure.left() <= max(run.process for run in wholes if not run.switches):
                return None
            return measure.run_with("whole program without hooks", {}, is_hooked=False)

        if measure.left() > 2 * evidence.endless:  # time for two whole runs after all
            evidence.endless = 0.0
        if not trial.failure and evidence.unchanged:
            trial = confirmed(trial, evidence, run_whole, run_plain)
            trial = perturbed(trial, evidence, measure.run_with, subject.environment, measure.left)
        measure.discard()
        written = measure.put_back(before)
        return replace(trial, seconds=budget - measure.left(), written=written)


class _Runner:
    """Runs the program: once from its start, then in forks of one that has imported its libraries,
    where that makes no difference; `tell` is told if it would."""

    def __init__(self, subject: Subject, here: Path, budget: float, place: Path, tell: Tell):
        made = {name: str(place / kind) for name, kind in _CACHES.items()}
        self.kept = place / "kept"
        self.kept.mkdir()
        sources = [Path(word).resolve().parent for word in subject.command if word.endswith(".py")]
        self.roots = (here, *sources[:1])
        self.is_misled: bool | None = None  # by what runs have written; known from the second on
        self.environment = {**made, **_JAX_CACHE, **subject.environment, KEPT: str(self.kept)}
        self.command, self._tell = subject.command, tell
        self.folder = here if subject.in_copy else None
        if self.folder:
            check_size(self.folder)
        self.place = place / "prepared"
        self.end = time.monotonic() + budget
        self.extent = Extent(window=WINDOW, grace=_WHOLE * budget)
        self.expected = None if subject.in_copy else _expected(self.command)
        self.first: Result | None = None
        self.prepared: Prepared | None = None
        self.forks = self.excluded = 0
        self.late: set[Combination] = set()

    def __call__(
        self,
        switches: Combination,
        *,
        perturb: Perturbation = "",
        grace: float = 0.0,
        kept: float = 0.0,
    ) -> Result:
        limit = remaining = self.left() - kept
        if self.first and switches not in self.late:
            slowest = _SLOWER * self.first.process
            limit = min(slowest + _COMPILING, _OF_LEFT * remaining)
            limit = max(limit, slowest / 2 + grace)

        extent = self.extent.compiled if any(each.start for each in switches) else self.extent
        extent = replace(extent, grace=extent.grace + grace)

        def run(prepared: Prepared | None) -> Result:
            if self.is_misled:
                self.put_back()
            return run_program(
                self.command,
                switches,
                extent,
                environment=self.environment,
                timeout=max(min(limit, self.left() - kept), 1.0),
                perturb=perturb,
                folder=self.folder,
                prepared=prepared,
                features=self.first.features if self.first else frozenset(),
            )

        # Not of one whose output is compared.
        prepared = None if grace and not perturb else self._forked(switches)
        result = run(prepared)
        if prepared and not (fault := self._fault(result)):
            self.forks += 1
        elif prepared and self._is_suspect(switches):
            again = run(None)
            if not self._fault(again):
                self.tell(f"{_FRESH}: without that, it fails: {fault}")
                self.discard()
            if self.first or not again.failure:  # or it may fail for what the first one did
                result = again
        if self.first and not (switches or perturb):
            result = self._repeated(lambda: run(prepared), self.first, result)
            result = self._unseeded(run, result)
        if result.status == TIMED_OUT:
            self.late.add(switches)
            return replace(result, is_cut=remaining < limit)
        return result if self.first else self._first(result, prepared)

    def _first(self, result: Result, prepared: Prepared | None) -> Result:
        """The first run, which is another if it was a fork of what forks should not be of."""
        self.first, window = result, self.extent
        self.extent = Extent(result.unit, result.units if result.stopped else 0)
        if prepared is self.prepared and not result.failure:  # not where that one is discarded
            self._prepare(result)
            if prepared and self._forked(()) is None:
                self.first, self.extent = None, window
                return self(())
        return result

    def _fault(self, result: Result) -> str:
        """What a fork may be to blame for: a failure, or fewer units than the first run's."""
        ends_earlier = "it ends earlier" if result.units < self.extent.units else ""
        return "" if result.status == TIMED_OUT else result.failure or ends_earlier

    def _repeated(self, run: Callable[[], Result], first: Result, result: Result) -> Result:
        """An unchanged run as the first was, as far as what that has written keeps it from that."""

        def apart(other: Result) -> float:
            is_faulty = self._fault(other) or checks.faulty([first, other])
            return math.inf if is_faulty else checks.spread([first, other])

        if self.is_misled is not None or self.folder or result.status == TIMED_OUT:
            return result
        before, self.is_misled = apart(result), False
        if before > _REPEATED and {"kept", "made", "new"} & {p.name for p in self.kept.iterdir()}:
            self.is_misled = True
            again = run()
            self.is_misled = apart(again) < before / 10  # chosen: hardly so near by chance
            if self.is_misled:
                self.tell("files are put back before each run: the program finds what it wrote")
                return again
        return result

    def put_back(self, before: Files | None = None) -> tuple[Written, ...]:
        """Have files as they were before the first run, and say what became of them."""
        return put_back(self.kept, *self.roots, before=before)

    def _unseeded(self, run: Callable[[Prepared | None], Result], result: Result) -> Result:
        """A run, which has other random numbers if it fails again, and these help."""
        is_unseeded = _UNSEEDED.items() <= self.environment.items()
        if not result.failure or result.status == TIMED_OUT or is_unseeded:
            return result
        again, seeded = run(None), self.environment
        if again.failure != result.failure:
            return again
        self.environment = {**seeded, **_UNSEEDED}
        self.discard()
        other = run(None)
        if self._fault(other):
            self.environment = seeded
            return again
        self.tell(f"runs are not seeded: with equal random numbers, {result.failure}")
        return other

    def _is_suspect(self, switches: Combination) -> bool:
        """Whether a failure may be the fork's: the first may take away what others need, and
        compilers start processes and threads."""
        return not switches or any(each.start for each in switches) or self.forks < _SOUND

    def run_with(
        self, words: str, variables: Mapping[str, str], *, is_hooked: bool = True
    ) -> Result:
        """A run of the whole program with these variables, of which `words` are told."""
        self.tell(words)
        if self.is_misled:
            self.put_back()
        return run_program(
            self.command,
            (),
            Extent(),
            environment={**self.environment, **variables},
            timeout=max(self.left(), 1.0),
            folder=self.folder,
            is_hooked=is_hooked,
        )

    def tell(self, words: str) -> None:
        self._tell(words, "")

    def left(self) -> float:
        """Seconds of the budget that are left."""
        return self.end - time.monotonic()

    def _prepare(self, first: Result) -> None:
        """Have the libraries of the first run imported, or of what is expected of it."""
        if not {"torch"} <= first.features or "jax" in first.features or first.unit == WALL:
            self.discard()  # the time of whole programs is with their imports
            return
        if self.folder:
            self.tell(f"{_FRESH}: it has its own copy of the folder")
            return
        if self.prepared:
            self.prepared.add(first.modules, first.changed)
            return
        self.place.mkdir()
        environment = hooked_environment(self.environment, self.place)
        importing = str(first.facts.get("importing", ""))
        self.prepared = Prepared(
            self.place, self.command, environment, first.modules, first.changed, importing
        )

    def _forked(self, switches: Combination) -> Prepared | None:
        """What to fork, once it is ready. Variables are read at imports: with others a run is a
        process from its start."""
        if self.expected:
            self._prepare(self.expected)
            self.expected = None
        if self.prepared is None or variables_of(switches, self.environment):
            return None
        while (fault := self.prepared.fault) is None:
            if time.monotonic() > self.end:
                return None
            time.sleep(_POLLED)
        if fault and (package := self.prepared.culprit) and self.first and self.excluded < _APART:
            self.excluded += 1  # each fork imports it by itself
            modules = (n for n in self.first.modules if n.split(".")[0] != package)
            self.first = replace(self.first, modules=tuple(modules))
            self.discard()
            self._prepare(self.first)
            return self._forked(switches)
        if fault:
            if self.first:
                self.tell(f"{_FRESH}: {fault}")
            self.discard()
        return self.prepared

    def discard(self) -> None:
        """End what is prepared."""
        if self.prepared is not None:
            self.prepared.discard()
            self.prepared = None


def _expected(command: Sequence[str]) -> Result | None:
    """What a first run would say of its imports: by those that follow the import of torch in the
    program's file, before any other statement; None where another package may import torch."""
    rows: list[str] = []
    with suppress(IndexError, SyntaxError, ValueError, RecursionError, MemoryError, ProfkitError):
        for each in ast.parse(read_text(Path(command[1]))).body:
            if isinstance(each, ast.ImportFrom):
                new = [f"{each.module}.:{','.join(part.name for part in each.names)}"]
            elif isinstance(each, ast.Import):
                new = [f"{part.name}.:" for part in each.names]
            elif rows:  # what it does may change what is imported
                break
            else:
                continue
            before = {row.partition(".")[0] for row in new}
            if rows or "torch" in before:
                rows += new
            elif not before <= _WITHOUT_TORCH:
                return None
    packages = {row.partition(".")[0] for row in rows}
    if not rows or packages & _OF_JAX:
        return None
    return Result((), 0.0, unit="", features=frozenset({"torch"}), modules=(*rows,))


def _folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise EnvironmentProblem("the current folder is gone", "change to another") from None
