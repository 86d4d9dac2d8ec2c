"""Baselines: reports kept by name and GPU, to compare later ones with.

    .profkit/baselines/<name>/<GPU>/baseline.json and the folder that it names

A save writes a new folder first and then replaces baseline.json, which lists the files with their
SHA-256: a reader finds the old baseline or the new one, whole. Beside a report that lies in a run
its manifest, its check and its latencies are kept, under their own names.
"""

import os
import re
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated

from msgspec import Meta

from profkit.analysis.run_files import CHECK, LATENCY, reports_in
from profkit.core.atomic_file import write_atomic
from profkit.core.errors import BadInput, EnvironmentProblem, UsageError, refusal
from profkit.core.file_name import file_name
from profkit.core.integrity import MANIFEST, check_unchanged
from profkit.core.lock import file_lock
from profkit.core.regular_file import digest
from profkit.core.timestamp import timestamp
from profkit.core.typed_file import File, encode, read_file
from profkit.runs.manifest import FileEntry

ROOT = Path(".profkit") / "baselines"
"""Where baselines are kept, below the current folder."""

_INDEX = "baseline.json"
_LOCK = ".lock"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_BESIDE = (MANIFEST, CHECK, LATENCY)
_AGAIN = "save the baseline again"


class Index(File, frozen=True, kw_only=True, tag="profkit.kept-baseline/1"):
    """The files of a baseline by their places in its folder, and which of them are reports."""

    name: str
    gpu: str
    saved: str
    folder: str
    reports: Annotated[tuple[str, ...], Meta(min_length=1)]
    files: dict[str, FileEntry]

    def __post_init__(self) -> None:
        if not set(self.reports) <= set(self.files):
            raise ValueError("a report is not among the files")
        if not all(map(_is_inside, (self.folder, *self.files))):
            raise ValueError("a place is outside of its folder")


def save(name: str, path: Path, gpu: str, root: Path = ROOT) -> Path:
    """Keep a report, or those below a folder, and what lies beside them in their runs.

    One report is found again as a file, several as a folder in which they lie as they did: what
    comes back is its path. What
    was kept under the name for this GPU is replaced. Raises UsageError for a wrong name, BadInput
    for a file that is not what its manifest says and EnvironmentProblem where nothing can be
    written.
    """
    home = _home(name, gpu, root)
    reports = {path.name: path}
    if path.is_dir():
        reports = {file.relative_to(path).as_posix(): file for file in reports_in(path)}
    elif not path.is_file():
        raise BadInput(f"{path}: no such file", "check the path")
    remedy = "free room or change its permissions"
    with refusal(f"{home}: can't be written", EnvironmentProblem, remedy):
        home.mkdir(parents=True, exist_ok=True)
        with file_lock(home / _LOCK, f"{home}: another process is saving this baseline"):
            folder = home / secrets.token_hex(6)
            try:
                files = _copied(reports, folder)
                index = Index(
                    name=name, gpu=gpu, saved=timestamp(), folder=folder.name,
                    reports=tuple(reports), files=files,
                )  # fmt: skip
                write_atomic(home / _INDEX, encode(index, dense=False))
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            for other in home.iterdir():  # what was there before, and what killed saves left
                if other.is_dir() and other != folder:
                    shutil.rmtree(other, ignore_errors=True)
    return find(name, gpu, root)


def find(name: str, gpu: str, root: Path = ROOT) -> Path:
    """The report of a baseline for a GPU, or the folder of several, each file checked against its
    SHA-256.

    Raises UsageError for a wrong name, BadInput where there is none or where it was changed.
    """
    home = _home(name, gpu, root)
    if not (home / _INDEX).is_file():
        keep = f"save one with `profkit diff REPORT --save-baseline {name}`"
        raise BadInput(f"no baseline {name} of {gpu or 'an unknown GPU'} in {root}", keep)
    index = read_file(home / _INDEX, Index, _AGAIN)
    folder = home / index.folder
    for place, entry in index.files.items():
        file = folder / place
        if not file.is_file():
            raise BadInput(f"{file}: missing from the baseline", _AGAIN)
        if digest(file) != entry.sha256:
            raise BadInput(f"{file}: changed since it was saved", _AGAIN)
    return folder / index.reports[0] if len(index.reports) == 1 else folder


def check_name(name: str) -> None:
    """Raise UsageError for a name that no baseline can have."""
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise UsageError(
            f"baseline {name[:80]!r}: a name has letters, digits, '.', '_' and '-', at most 64",
            "use main",
        )


def _home(name: str, gpu: str, root: Path) -> Path:
    """The folder of a name and GPU; raises UsageError for a wrong name."""
    check_name(name)
    return root / name / (file_name(gpu, "._").strip("._") or "unknown")


def _copied(reports: Mapping[str, Path], folder: Path) -> dict[str, FileEntry]:
    """Copies of reports and of what lies beside them in their runs, as the index lists them."""
    files = dict(reports)
    for place, report in reports.items():
        if (report.parent / MANIFEST).is_file():
            files |= {
                str(PurePosixPath(place).with_name(name)): file
                for name in _BESIDE
                if (file := report.parent / name).is_file()
            }
    return {place: _copy(source, folder / place) for place, source in files.items()}


def _copy(source: Path, target: Path) -> FileEntry:
    if source.name != MANIFEST:
        check_unchanged(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    with target.open("rb") as file:
        os.fsync(file.fileno())
    return FileEntry(bytes=target.stat().st_size, sha256=digest(target))


def _is_inside(place: str) -> bool:
    path = PurePosixPath(place)
    return bool(place) and not path.is_absolute() and ".." not in path.parts
