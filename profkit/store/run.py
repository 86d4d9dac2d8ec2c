"""Run directories: one profile, kept whole and verifiable, or not at all.

    <out>/<target>/<UTC time>-<short id>/manifest.json and the files that it lists

A run is written under a hidden name and renamed when its manifest, with the SHA-256 of every file,
is on disk: what a crash or a kill leaves behind is never taken for a run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from profkit.errors import BadInput, EnvironmentProblem
from profkit.ingest.integrity import MANIFEST

SCHEMA = "profkit.run/1"
_PARTIAL = ".partial-"


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
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", target).strip("._") or "run"
    parent = out / name
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    final = parent / f"{stamp}-{secrets.token_hex(3)}"
    folder = parent / f"{_PARTIAL}{os.getpid()}-{final.name}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(parent)
        folder.mkdir()
    except OSError as error:
        raise EnvironmentProblem(
            f"{parent}: can't be written ({error.strerror})", "give --out another folder"
        ) from None
    try:
        yield Draft(folder, final)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def keep(run: Draft, manifest: Mapping[str, Any]) -> Path:
    """Make a draft a run: hash its files, write the manifest, rename; the run's folder.

    `manifest` is completed with `schema` and `files`; entries under its own `files` (such as the
    number of launches) are kept beside size and hash.
    """
    told: Mapping[str, Mapping[str, Any]] = manifest.get("files", {})
    files = {
        file.relative_to(run.folder).as_posix(): {
            **told.get(file.relative_to(run.folder).as_posix(), {}),
            "bytes": file.stat().st_size,
            "sha256": digest(file),
        }
        for file in sorted(run.folder.rglob("*"))
        if file.is_file()
    }
    text = json.dumps({"schema": SCHEMA, **manifest, "files": files}, indent=2) + "\n"
    target = run.folder / MANIFEST
    with target.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    if run.final.exists():
        raise EnvironmentProblem(f"{run.final}: exists already", "run again")
    run.folder.rename(run.final)
    return run.final


def digest(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run; raises BadInput for a folder that is no run."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"{folder}: not a run directory ({MANIFEST} is missing)") from None
    except (OSError, ValueError):
        raise BadInput(f"{folder / MANIFEST}: can't be read", "restore it") from None
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise BadInput(f"{folder / MANIFEST}: not the manifest of a run")
    return manifest


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
    for folder in parent.glob(f"{_PARTIAL}*"):
        pid = folder.name.removeprefix(_PARTIAL).split("-")[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(folder, ignore_errors=True)
