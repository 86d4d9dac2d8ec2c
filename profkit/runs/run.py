"""Run directories: one profile, complete and verifiable, or absent.

    <out>/<target>/<UTC time>-<short id>/manifest.json and the files that it lists

A run is written under a hidden name and renamed when its manifest, with the SHA-256 of every file,
is on disk: what a crash or a kill leaves behind is never taken for a run. Until then its process
holds a lock on a file in it: a draft whose lock another process can take is nobody's any more.

A run that takes long is kept `unfinished` first: its manifest lists what is there, names the stage
that is under way, and is replaced after each. Hidden files and folders are no part of a run.
"""

import re
import secrets
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec import UNSET, Struct, structs

from profkit.core.atomic_file import PART, write_atomic
from profkit.core.errors import BadInput, EnvironmentProblem, UsageError, refusal
from profkit.core.file_name import file_name
from profkit.core.integrity import MANIFEST
from profkit.core.lock import file_lock, take
from profkit.core.regular_file import digest
from profkit.core.text_files import MissingFile
from profkit.core.typed_file import encode, read_file
from profkit.runs.manifest import FileEntry, Manifest

_NAME = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")
_OWN = re.compile(rf"(^|/)\.|^{re.escape(MANIFEST)}$")  # no files of a run
PARTIAL = ".partial-"
"""How folders begin whose content is not finished."""
RUNS_SCRIPTS = re.compile(r"python|torchrun|accelerate|deepspeed|mpirun|mpiexec|srun")
_LOCK = ".lock"
_SURELY_LOCKED = 3600.0  # s, chosen: a new draft is locked within milliseconds


def program_name(words: Sequence[str]) -> str:
    """The name of a program by its command: of its script without the suffix, Python's or a
    launcher's, else of the program."""
    script = _script(words)
    return Path(words[script]).stem if script else Path(words[0]).name


def arguments(words: Sequence[str]) -> Sequence[str]:
    """The words of a command after its script, or its program."""
    return words[_script(words) + 1 :]


def _script(words: Sequence[str]) -> int:
    """The place of the script, 0 where the program is its own."""
    scripts = (place for place, word in enumerate(words) if word.endswith(".py"))
    return next(scripts, 0) if RUNS_SCRIPTS.match(Path(words[0]).name) else 0


class Draft(Struct, frozen=True):
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
    folder = parent / f"{PARTIAL}{final.name}"
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        remedy = "give --output another folder"
        with refusal(f"{parent}: can't be written", EnvironmentProblem, remedy):
            parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(parent)
            folder.mkdir()
            stack.enter_context(
                file_lock(folder / _LOCK, f"{folder}: another process considers it abandoned")
            )
        yield Draft(folder, final)


def is_run_name(name: str) -> bool:
    """Whether a folder is named as runs are: the UTC time and a short id."""
    return _NAME.fullmatch(name) is not None


@contextmanager
def reopened(folder: Path) -> Iterator[Draft]:
    """An unfinished run, to go on with.

    Raises BadInput for a damaged run, UsageError for a finished one, and EnvironmentProblem where
    another process records it.
    """
    if verify(folder).unfinished is UNSET:
        raise UsageError(f"{folder}: the run is finished", "record a new one")
    with file_lock(folder / _LOCK, f"{folder}: another process is recording it"):
        for rest in folder.glob(f"{PARTIAL}*"):
            shutil.rmtree(rest, ignore_errors=True)
        for part in folder.glob(f".*{PART}"):  # of a process that was killed
            part.unlink()
        yield Draft(folder, folder)


def keep(run: Draft, manifest: Manifest) -> Path:
    """Make a draft a run: hash its files, write the manifest, rename; the run's folder.

    One that is unfinished stays locked; only the files that its manifest lists are of use yet.
    """
    if run.folder != run.final and run.final.exists():
        raise EnvironmentProblem(f"{run.final}: already exists", "run again")
    finished = manifest.unfinished is UNSET
    names = None if finished else manifest.files
    files = listed(run.folder, manifest.files, names)
    write_atomic(run.folder / MANIFEST, encode(structs.replace(manifest, files=files), dense=False))
    if finished:
        (run.folder / _LOCK).unlink(missing_ok=True)
    run.folder.rename(run.final)
    return run.final


def listed(
    folder: Path, known: Mapping[str, FileEntry], names: Collection[str] | None = None
) -> dict[str, FileEntry]:
    """The files of a folder as a manifest has them, or those of `names`: launches as `known`, bytes
    and SHA-256."""
    return {
        name: FileEntry(
            launches=known[name].launches if name in known else UNSET,
            bytes=file.stat().st_size,
            sha256=digest(file),
        )
        for file in sorted(folder.rglob("*"))
        for name in [file.relative_to(folder).as_posix()]
        if file.is_file() and not _OWN.search(name) and (names is None or name in names)
    }


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a run; raises BadInput for a folder that is no run, and a damaged one."""
    try:
        return read_file(folder / MANIFEST, Manifest, "restore it")
    except MissingFile:
        raise BadInput(f"{folder}: not a run directory ({MANIFEST} is missing)") from None


def verify(folder: Path) -> Manifest:
    """The manifest of a run whose files are all there and unchanged; raises BadInput otherwise."""
    manifest = read_manifest(folder)
    for name, entry in manifest.files.items():
        file = folder / name
        if not file.is_file():
            raise BadInput(f"{file}: missing from the run", "restore it or record the run again")
        if digest(file) != entry.sha256:
            raise BadInput(f"{file}: changed since the run", "restore it or record the run again")
    return manifest


def is_partial(path: Path) -> bool:
    """Whether a path lies in a run that was never finished."""
    return any(part.startswith(PARTIAL) for part in path.parts)


def _remove_abandoned(parent: Path) -> None:
    """Remove the drafts that no process holds, on this machine or on another one."""
    for folder in parent.glob(f"{PARTIAL}*"):
        if _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    with suppress(OSError):
        try:
            with (folder / _LOCK).open("r+", encoding="utf-8") as lock:
                take(lock.fileno())
            return True
        except FileNotFoundError:  # not locked yet, not any more, or never
            return time.time() - folder.stat().st_mtime > _SURELY_LOCKED
    return False


def free_room(out: Path) -> tuple[Path, int]:
    """The file system that `out` is or would be on: its nearest folder, and bytes free there."""
    for folder in (out.absolute(), *out.absolute().parents):
        with suppress(OSError):
            return folder, shutil.disk_usage(folder).free
    raise EnvironmentProblem(f"{out}: can't be accessed", "give --output another folder")
