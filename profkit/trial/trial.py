"""A trial of a program: its runs, in place or in a copy of its folder, and what came of them."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from profkit.core.errors import BadInput
from profkit.trial import checks
from profkit.trial.outcome import outcome
from profkit.trial.run import Extent, Perturbation, Result, run_program
from profkit.trial.search import Combination, Evidence, search
from profkit.trial.switch import Switch
from profkit.trial.trial_file import TrialFile

WINDOW = 4.0  # s of units in a run, chosen: as long as most programs take to start
_SLOWER = 4.0  # chosen: a run may take so many times the unchanged one's time
_COMPILING = 120.0  # s that a run may take in addition, chosen: torch.compile of a large model
_LARGEST_COPY = 2 << 30  # bytes, chosen: copied in seconds


class Subject(Struct, frozen=True):
    """A program's command, its variables, and whether it runs in a copy of this folder."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    in_copy: bool = False


def try_program(
    subject: Subject,
    switches: Sequence[Switch],
    budget: float,
    tell: Callable[[str, str], None],
) -> TrialFile:
    """Try switches on a program, in at most `budget` seconds.

    Raises EnvironmentProblem where the program can't be started, BadInput for a folder that is too
    large to copy.
    """
    start = time.monotonic()
    with _folder(subject) as (command, folder):
        extents = [Extent(window=WINDOW)]
        longest: list[float] = []

        def measure(switches: Combination, *, perturb: Perturbation = "") -> Result:
            remaining = budget - (time.monotonic() - start)
            limit = _SLOWER * longest[0] + _COMPILING if longest else remaining
            result = run_program(
                command,
                switches,
                extents[0],
                environment=subject.environment,
                timeout=max(min(limit, remaining), 1.0),
                perturb=perturb,
                folder=folder,
            )
            if not longest:
                longest.append(result.seconds)
                stop = result.units if result.stopped else 0
                extents[0] = Extent(result.unit, stop)
            return result

        evidence = search(measure, switches, budget, time.monotonic, lambda name: tell(name, ""))
    seconds = time.monotonic() - start
    return outcome(evidence, subject.command, budget, seconds, _checked(evidence))


def _checked(evidence: Evidence) -> str:
    """Whether whole runs with switches printed what unchanged ones did."""
    unchanged = evidence.unchanged
    if not unchanged or any(run.stopped for run in unchanged):
        return ""
    for run in evidence.runs:
        line = checks.missing_output(unchanged, run) if not run.failure else ""
        if line:
            return f"With {' + '.join(run.switches)} the output lacks: {line}"
    return "Exit code and output are as unchanged, but for numbers" if evidence.combinations else ""


@contextmanager
def _folder(subject: Subject) -> Iterator[tuple[tuple[str, ...], Path | None]]:
    """The command and the folder to run it in; words that are paths in this folder lead to the
    copy's."""
    if not subject.in_copy:
        yield subject.command, None
        return
    here = Path.cwd()
    size = sum(path.stat().st_size for path in here.rglob("*") if path.is_file())
    if size > _LARGEST_COPY:
        raise BadInput(f"{here}: {size / 1e9:.1f} GB are too much to copy", "leave out --in-copy")
    with tempfile.TemporaryDirectory(prefix="profkit-try-") as temporary:
        copy = Path(temporary) / here.name
        shutil.copytree(here, copy, symlinks=True)
        yield tuple(word.replace(f"{here}/", f"{copy}/") for word in subject.command), copy
