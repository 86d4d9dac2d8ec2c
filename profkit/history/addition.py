"""The addition of runs to a store: what paths name, each run once."""

import functools
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from profkit.core.errors import BadInput, ProfkitError
from profkit.core.integrity import MANIFEST, check_unchanged
from profkit.history import readers
from profkit.history.readers import Content, Imported, Stated
from profkit.history.record import Series
from profkit.history.store import Store
from profkit.runs.manifest import Manifest
from profkit.runs.run import read_manifest
from profkit.study.folder import CELLS, PLAN, read_profiles
from profkit.timing.cell import SCHEMA as CELL_SCHEMA
from profkit.timing.latency_file import IN_A_RUN
from profkit.timing.latency_format import SCHEMA
from profkit.trial.trial_file import TrialFile
from profkit.ui.text import literal, plural

_REMEDY = "give a run, a baseline, or a JSON file of profkit time, profkit try or pytest-benchmark"
_BATCH = 20_000  # runs written at once; chosen: 100 MB of points, and what an interruption loses
_CHUNK = 500  # runs that a process imports at once; chosen: 0.3 s


class Job(Struct, frozen=True):
    """A file or a run's folder to import. Where it is not `named` itself, but below a folder that
    is, it need not be a run; `source` is that of a cell."""

    path: Path
    named: bool = False
    source: Path | None = None


_Chunk: TypeAlias = Sequence[tuple[Path, Job]]
_Outcome: TypeAlias = list[tuple[Path, Imported | ProfkitError] | None]


def jobs(path: Path) -> Iterator[Job]:
    """What a path names: a file, a run's folder, or what may be a run below any other folder.

    Raises BadInput for a damaged list of profiles of a baseline.
    """
    if not path.is_dir():
        yield Job(path, named=True)
        return
    for name, folders, files in os.walk(path):
        folder = Path(name)
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        if PLAN in files:
            folders.clear()
            yield from _cells(folder)
        elif MANIFEST in files and _manifest(folder) is not None:
            folders.clear()
            yield Job(folder)
        else:
            names = sorted(file for file in files if file.endswith(".json"))
            yield from (Job(folder / file) for file in names if not file.startswith("."))


def _cells(folder: Path) -> Iterator[Job]:
    """The cells of a baseline, each with the run that profiled it where there is one."""
    profiles = {
        row.id: place
        for row in read_profiles(folder)
        if row.folder and (place := folder / row.folder).is_dir()
    }
    for file in sorted((folder / CELLS).glob("[!.]*.json")):
        yield Job(file, source=profiles.get(file.stem, file))


def import_run(job: Job, stated: Stated) -> Imported | None:
    """The run of a job; None for another file where it need not be one.

    Raises BadInput for what is no run, and damaged and changed files.
    """
    path = job.path
    if job.source is not None:
        content = readers.content_of(path, stated)
        return readers.import_cell(replace(content, source=str(job.source)))
    if path.is_dir():
        latencies = path / IN_A_RUN
        run = _of_file(latencies, stated) if latencies.is_file() else None
        return run or readers.import_profile(path, read_manifest(path), stated)
    run = _of_file(path, stated)
    if run is None and job.named:
        raise BadInput(f"{path}: not a run", _REMEDY)
    return run


def _of_file(path: Path, stated: Stated) -> Imported | None:
    """The run of a file; None for another file."""
    content = readers.content_of(path, stated)
    reader = _reader(content.data)
    if reader is None:
        return None
    if (path.parent / MANIFEST).is_file():
        check_unchanged(path)
        manifest = _manifest(path.parent)
        if manifest is not None and path.name == IN_A_RUN:
            content = replace(content, source=str(path.parent), manifest=manifest)
    return reader(content)


def _manifest(folder: Path) -> Manifest | None:
    """The manifest of a run's folder; None for another folder."""
    try:
        return read_manifest(folder)
    except BadInput:
        return None


class _Head(msgspec.Struct):
    """What tells kinds of JSON files apart."""

    schema: object = ""
    machine_info: msgspec.Raw = msgspec.Raw()
    benchmarks: msgspec.Raw = msgspec.Raw()


def _reader(data: bytes) -> Callable[[Content], Imported] | None:
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if head.schema == SCHEMA:
        return readers.import_latencies
    if head.schema == CELL_SCHEMA:
        return readers.import_cell
    if head.schema == TrialFile.__struct_config__.tag:
        return readers.import_trial
    is_pytest = bytes(head.benchmarks) and bytes(head.machine_info)
    return readers.import_benchmarks if is_pytest and not head.schema else None


@dataclass
class Addition:
    """What was added: points by series, runs, those that were there; notes and failures."""

    points: dict[Series, int]
    runs: int = 0
    present: int = 0
    notes: list[str] = field(default_factory=list)
    failures: list[ProfkitError] = field(default_factory=list)

    def words(self, store: Path) -> str:
        """What was added to a store, in a line."""
        line = (
            f"Added {plural(sum(self.points.values()), 'point')} of {plural(self.runs, 'run')} in "
            f"{plural(len(self.points), 'series')} to {literal(str(store))}"
        )
        if self.present:
            line += f"; {self.present:,} {'was' if self.present == 1 else 'were'} there already"
        return f"{line}\n"


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
        result.failures += [each for _, each in outcomes if isinstance(each, ProfkitError)]
        _write(store, [each for _, each in outcomes if isinstance(each, Imported)], result)
    result.failures += [
        BadInput(f"{path}: no runs in this folder", _REMEDY) for path in paths if path in empty
    ]
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
    store.add(points)
    result.runs += len(added)
    without = [run for run in batch if not run.points]
    result.notes += [note for run in (*added, *without) for note in run.notes]
    for point in points:
        result.points[point.series] = result.points.get(point.series, 0) + 1
