"""The addition of runs to a store: each once, with the parents of their commits."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.core.errors import ProfkitError
from profkit.history.content import DIRTY, Imported, Stated
from profkit.history.importing import imports
from profkit.history.record import Series
from profkit.history.store import Store

_BATCH = 5_000  # runs written at once; chosen: a part of 0.5 MB, and what an interruption loses
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PATIENCE = 60.0  # s, chosen: git lists 5,000 commits in 0.1 s


@dataclass
class Addition:
    """What was added: points by series, runs, those that were there; notes and failures."""

    points: dict[Series, int]
    runs: int = 0
    present: int = 0
    notes: tuple[str, ...] = ()
    failures: tuple[ProfkitError, ...] = ()


def add_runs(
    store: Store,
    paths: Sequence[Path],
    stated: Stated,
    show: Callable[[str, str], None] = lambda *_: None,
) -> Addition:
    """Add the runs that paths name; a path that can't be read leaves the others to be added."""
    result = Addition({})
    batch: list[Imported] = []
    for path in paths:
        try:
            for run in imports(path, stated):
                batch.append(run)
                if len(batch) == _BATCH:
                    _write(store, batch, result)
                    batch = []
                    show("add runs", f"{result.runs + result.present:,}")
        except ProfkitError as error:
            result.failures += (error,)
    _write(store, batch, result)
    return result


def _write(store: Store, batch: Sequence[Imported], result: Addition) -> None:
    runs = {run.points[0].run: run for run in batch if run.points}
    present = store.known(runs)
    result.present += len(batch) - len(runs) + len(present)
    added = [run for name, run in runs.items() if name not in present]
    points = [point for run in added for point in run.points]
    parents = parents_of({point.commit for point in points}, Path.cwd())
    store.add([replace(point, parent=parents.get(point.commit, "")) for point in points])
    result.runs += len(added)
    result.notes += tuple(note for run in added for note in run.notes)
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
