"""The addition of runs to a store: each once, with the parents of their commits."""

from __future__ import annotations

import functools
import itertools
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from profkit.core.errors import BadInput, ProfkitError
from profkit.history.content import DIRTY, Imported, Stated
from profkit.history.importing import Job, import_run, jobs, no_runs
from profkit.history.record import Series
from profkit.history.store import Store

_Chunk: TypeAlias = Sequence[tuple[Path, Job]]
_Outcome: TypeAlias = list[tuple[Path, Imported | ProfkitError] | None]

_BATCH = 20_000  # runs written at once; chosen: 100 MB of points, and what an interruption loses
_CHUNK = 500  # runs that a process imports at once; chosen: 0.3 s
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PATIENCE = 60.0  # s, chosen: git lists 5,000 commits in 0.1 s


@dataclass
class Addition:
    """What was added: points by series, runs, those that were there; notes and failures."""

    points: dict[Series, int]
    runs: int = 0
    present: int = 0
    notes: list[str] = field(default_factory=list)
    failures: list[ProfkitError] = field(default_factory=list)


def in_order(do: Callable[[_Chunk], _Outcome], chunks: Sequence[_Chunk]) -> list[_Outcome]:
    """What a function makes of each chunk, one after the other."""
    return [do(chunk) for chunk in chunks]


def add_runs(
    store: Store,
    paths: Sequence[Path],
    stated: Stated,
    spread: Callable[
        [Callable[[_Chunk], _Outcome], Sequence[_Chunk]], Sequence[_Outcome]
    ] = in_order,
) -> Addition:
    """Add the runs that paths name; one that can't be read leaves the others to be added.

    `spread` may import chunks of many runs in several processes.
    """
    result = Addition({})
    empty = set(paths)
    every = _jobs(paths, empty, result.failures)
    while batch := list(itertools.islice(every, _BATCH)):
        chunks = [batch[start : start + _CHUNK] for start in range(0, len(batch), _CHUNK)]
        run = functools.partial(_import, stated=stated)
        parts = spread(run, chunks) if len(chunks) > 1 else in_order(run, chunks)
        outcomes = [each for part in parts for each in part if each is not None]
        empty -= {path for path, _ in outcomes}
        failures = [each for _, each in outcomes if isinstance(each, ProfkitError)]
        result.failures += failures
        _write(store, [each for _, each in outcomes if isinstance(each, Imported)], result)
    result.failures += [no_runs(path) for path in paths if path in empty]
    return result


def _jobs(
    paths: Sequence[Path], empty: set[Path], failures: list[ProfkitError]
) -> Iterator[tuple[Path, Job]]:
    """The jobs of all paths, each with its path; one that fails is not `empty`."""
    for path in paths:
        try:
            for job in jobs(path):
                yield path, job
        except BadInput as error:
            failures.append(error)
            empty.discard(path)


def _import(chunk: _Chunk, stated: Stated) -> _Outcome:
    outcomes: _Outcome = []
    for path, job in chunk:
        try:
            run = import_run(job, stated)
            outcomes.append(None if run is None else (path, run))
        except ProfkitError as error:
            outcomes.append((path, error))
    return outcomes


def _write(store: Store, batch: Sequence[Imported], result: Addition) -> None:
    measured = [run for run in batch if run.points]
    runs = {run.points[0].run: run for run in measured}
    present = store.known(runs)
    result.present += len(measured) - len(runs) + len(present)
    added = [run for name, run in runs.items() if name not in present]
    points = [point for run in added for point in run.points]
    parents = parents_of({point.commit for point in points}, Path.cwd())
    store.add([replace(point, parent=parents.get(point.commit, "")) for point in points])
    result.runs += len(added)
    without = [run for run in batch if not run.points]
    result.notes += [note for run in (*added, *without) for note in run.notes]
    for point in points:
        result.points[point.series] = result.points.get(point.series, 0) + 1


def parents_of(commits: Iterable[str], folder: Path) -> dict[str, str]:
    """The first parents of commits that the folder's repository has.

    That of a commit with changes is the commit itself.
    """
    every = set(commits)
    parents = {commit: commit.removesuffix(DIRTY) for commit in every if commit.endswith(DIRTY)}
    whole = [commit for commit in every if _COMMIT.fullmatch(commit)]
    if not whole:
        return parents
    command = (
        "git",
        "-C",
        str(folder),
        "--no-optional-locks",
        "rev-list",
        "--no-walk",
        "--parents",
    )
    try:
        done = subprocess.run(
            [*command, "--ignore-missing", "--stdin"],
            input="\n".join(whole),
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return parents
    for line in done.stdout.splitlines():
        commit, *of_it = line.split()
        if of_it:
            parents[commit] = of_it[0]
    return parents
