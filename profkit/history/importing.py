"""The points of runs: of `profkit profile`, `time` and `baseline`, and of other tools' files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from profkit.core.errors import BadInput
from profkit.core.integrity import MANIFEST, check_unchanged
from profkit.history.content import Content, Imported, Stated, content_of
from profkit.history.foreign import nvbench, pytest_benchmark
from profkit.history.latencies import import_cell, import_latencies
from profkit.history.reports import import_profile
from profkit.runs.manifest import Manifest
from profkit.runs.run import read_manifest
from profkit.study.folder import CELLS, PLAN, read_profiles
from profkit.timing.cell import SCHEMA as CELL_SCHEMA
from profkit.timing.latency_file import IN_A_RUN
from profkit.timing.latency_format import SCHEMA

_REMEDY = "give a run, a baseline, or a JSON file of profkit time, pytest-benchmark or nvbench"


class _Head(msgspec.Struct):
    """What tells kinds of JSON files apart."""

    schema: Any = ""
    machine_info: msgspec.Raw = msgspec.Raw()
    devices: msgspec.Raw = msgspec.Raw()
    benchmarks: msgspec.Raw = msgspec.Raw()


_Reader = Callable[[Content], Imported]


@dataclass(frozen=True)
class Job:
    """A file or a run's folder to import. Where it is not `named` itself, but below a folder that
    is, it need not be a run; `source` is that of a cell."""

    path: Path
    named: bool = False
    source: Path | None = None


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
            for file in sorted(files):
                if file.endswith(".json") and not file.startswith("."):
                    yield Job(folder / file)


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
    if job.source is not None:
        return import_cell(replace(content_of(job.path, stated), source=str(job.source)))
    if job.path.is_dir():
        return _of_folder(job.path, stated)
    run = _of_file(job.path, stated)
    if run is None and job.named:
        raise BadInput(f"{job.path}: not a run", _REMEDY)
    return run


def no_runs(path: Path) -> BadInput:
    """The failure of a folder without runs."""
    return BadInput(f"{path}: no runs in this folder", _REMEDY)


def _of_file(path: Path, stated: Stated) -> Imported | None:
    """The run of a file; None for another file."""
    content = content_of(path, stated)
    reader = _reader(content.data)
    if reader is None:
        return None
    if (path.parent / MANIFEST).is_file():
        check_unchanged(path)
        manifest = _manifest(path.parent)
        if manifest is not None and path.name == IN_A_RUN:
            content = replace(content, source=str(path.parent), manifest=manifest)
    return reader(content)


def _of_folder(folder: Path, stated: Stated) -> Imported:
    path = folder / IN_A_RUN
    if path.is_file() and (run := _of_file(path, stated)) is not None:
        return run
    return import_profile(folder, read_manifest(folder), stated)


def _manifest(folder: Path) -> Manifest | None:
    """The manifest of a run's folder; None for another folder."""
    try:
        return read_manifest(folder)
    except BadInput:
        return None


def _head(data: bytes) -> _Head | None:
    try:
        return msgspec.json.decode(data, type=_Head)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _reader(data: bytes) -> _Reader | None:
    head = _head(data)
    if head is None:
        return None
    if head.schema == SCHEMA:
        return import_latencies
    if head.schema == CELL_SCHEMA:
        return import_cell
    if head.schema or not bytes(head.benchmarks):
        return None
    if bytes(head.machine_info):
        return pytest_benchmark
    return nvbench if bytes(head.devices) else None
