"""Run directories: one profile, kept whole and verifiable, or not at all.

    <out>/<target>/<UTC time>-<short id>/manifest.json and the files that it lists

A run is written under a hidden name and renamed when its manifest, with the SHA-256 of every file,
is on disk: what a crash or a kill leaves behind is never taken for a run. Until then its process
holds a lock on a file in it: a draft whose lock another process can take is nobody's any more.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from profkit.core.atomic_file import write_atomic
from profkit.core.errors import BadInput, EnvironmentProblem
from profkit.core.fields import Fields
from profkit.core.file_name import file_name
from profkit.core.integrity import MANIFEST
from profkit.core.lock import file_lock, take
from profkit.core.regular_file import digest
from profkit.core.text_files import MissingFile, read_json

SCHEMA = "profkit.run/1"
_NAME = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")
_PARTIAL = ".partial-"
_LOCK = ".lock"
_SURELY_LOCKED = 3600.0


@dataclass(frozen=True)
class Draft:
    """A run that is being written: its hidden folder, and the folder it becomes."""

    folder: Path
    final: Path


@contextmanager
def draft(out: Path, target: str) -> Iterator[Draft]:
    """A folder for a new run, removed unless `keep` renamed it.

    Raises EnvironmentProblem where it can't be made. Drafts that killed runs left are removed.
    """
    name = file_name(target, "._").strip("._") or "run"
    parent = out / name
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    final = parent / f"{stamp}-{secrets.token_hex(3)}"
    folder = parent / f"{_PARTIAL}{final.name}"
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(parent)
            folder.mkdir()
            stack.enter_context(file_lock(folder / _LOCK, f"{folder}: taken for abandoned"))
        except OSError as error:
            raise EnvironmentProblem(
                f"{parent}: can't be written ({error.strerror})", "give --out another folder"
            ) from None
        yield Draft(folder, final)


def is_run_name(name: str) -> bool:
    """Whether a folder is named as runs are: the UTC time and a short id."""
    return _NAME.fullmatch(name) is not None


def keep(run: Draft, manifest: Mapping[str, Any]) -> Path:
    """Make a draft a run: hash its files, write the manifest, rename; the run's folder.

    `manifest` is completed with `schema` and `files`; entries under its own `files` (such as the
    number of launches) are kept beside size and hash.
    """
    files = listed(run.folder, manifest.get("files", {}))
    text = json.dumps({"schema": SCHEMA, **manifest, "files": files}, indent=2) + "\n"
    write_atomic(run.folder / MANIFEST, text)
    if run.final.exists():
        raise EnvironmentProblem(f"{run.final}: exists already", "run again")
    (run.folder / _LOCK).unlink(missing_ok=True)
    run.folder.rename(run.final)
    return run.final


def listed(folder: Path, told: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The files of a folder as a manifest has them: what is `told` of each, bytes and SHA-256."""
    return {
        name: {**told.get(name, {}), "bytes": file.stat().st_size, "sha256": digest(file)}
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != _LOCK
        for name in [file.relative_to(folder).as_posix()]
    }


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run; raises BadInput for a folder that is no run, and a damaged one."""
    file = folder / MANIFEST
    try:
        manifest = read_json(file, "restore it")
    except MissingFile:
        raise BadInput(f"{folder}: not a run directory ({MANIFEST} is missing)") from None
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise BadInput(f"{file}: not the manifest of a run")
    try:
        _check_kinds(Fields(manifest, ""))
    except BadInput as error:
        raise BadInput(f"{file}: {error.message}", "restore it") from None
    return manifest


def _check_kinds(manifest: Fields) -> None:
    """Raise BadInput for a part that is not what its readers take it for."""
    for key in ("versions", "gpu", "fingerprint", "policy"):
        manifest.fields(key)
    manifest.texts("warnings")
    for at, row in enumerate(manifest.rows("stages")):
        where = f"stages[{at}]"
        stage = Fields({where: row}, "").fields(where)
        stage.needs("name", "seconds")
        stage.text("name")
        stage.number("seconds", 0)
    files = manifest.fields("files")
    for name in files.row:
        entry = files.fields(name)
        entry.needs("bytes", "sha256")
        entry.whole("bytes", 0)
        entry.text("sha256")


def verify(folder: Path) -> dict[str, Any]:
    """The manifest of a run whose files are all there and unchanged; raises BadInput otherwise."""
    manifest = read_manifest(folder)
    for name, entry in manifest["files"].items():
        file = folder / name
        if not file.is_file():
            raise BadInput(f"{file}: missing from the run", "restore it or record the run anew")
        if digest(file) != entry["sha256"]:
            raise BadInput(f"{file}: changed since the run", "restore it or record the run anew")
    return manifest


def is_partial(path: Path) -> bool:
    """Whether a path lies in a run that was never finished."""
    return any(part.startswith(_PARTIAL) for part in path.parts)


def _remove_abandoned(parent: Path) -> None:
    """Remove the drafts that no process holds, on this machine or on another one."""
    for folder in parent.glob(f"{_PARTIAL}*"):
        if _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    try:
        with (folder / _LOCK).open("r+", encoding="utf-8") as held:
            take(held.fileno())
    except FileNotFoundError:  # not locked yet, not any more, or never
        return _age(folder) > _SURELY_LOCKED
    except OSError:
        return False
    return True


def _age(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_mtime
    except OSError:
        return 0.0


def free_room(out: Path) -> tuple[Path, int]:
    """The file system that `out` is or would be on: its nearest folder, and bytes free there."""
    for folder in (out.absolute(), *out.absolute().parents):
        with suppress(OSError):
            return folder, shutil.disk_usage(folder).free
    raise EnvironmentProblem(f"{out}: can't be looked at", "give --out another folder")
