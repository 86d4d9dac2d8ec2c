"""What a file that a verb was given really is, and which verb takes it."""

from __future__ import annotations

import re
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from profkit.core.errors import BadInput
from profkit.core.regular_file import open_regular

_HEAD = 1 << 16  # bytes looked at: what profkit writes has its schema in the first hundred
_SCHEMA = re.compile(rb'"schema"\s*:\s*"profkit\.([a-z_-]+)/')
_RULES = re.compile(rb"^rules\s*:", re.MULTILINE)


@dataclass(frozen=True)
class Kind:
    """A kind of file: its name in a sentence, and what to do with it instead."""

    name: str
    remedy: str = "check the path"


REPORT = Kind("an Nsight Compute report", "`profkit analyze` reads it, `profkit diff` compares two")
TIMELINE = Kind("an Nsight Systems timeline", "`profkit analyze` reads it")
LATENCIES = Kind("saved latencies", "`profkit time --from` reads them, `profkit compare` two files")
CEILINGS = Kind("measured roofs", "`profkit roofline --peaks measured --ceilings` takes them")
RULES = Kind("a rules file", "`profkit rules check` reads it")
TARGET = Kind("a Python script", "`profkit time` and `profkit profile` run it")
OUTPUT = Kind("what another profkit command wrote")
TEXT = Kind("text")
DATABASE = Kind("an SQLite database")
PICTURE = Kind("a picture")
PDF = Kind("a PDF document")
ARCHIVE = Kind("a compressed file or an archive")

_MAGIC = {
    b"NVR\0": REPORT,
    b"\x89PNG": PICTURE,
    b"\xff\xd8\xff": PICTURE,
    b"%PDF": PDF,
    b"\x1f\x8b": ARCHIVE,
    b"PK\x03\x04": ARCHIVE,
    b"\xfd7zXZ": ARCHIVE,
}
_ZSTD, _SQLITE = b"\x28\xb5\x2f\xfd", b"SQLite format 3\0"
_LFS = b"version https://git-lfs"  # in place of a file of any kind, which its reader says
_SCHEMAS = {"time": LATENCIES, "cell": LATENCIES, "ceilings": CEILINGS}
_SUFFIXES = {".nsys-rep": TIMELINE, ".qdrep": TIMELINE, ".svg": PICTURE, ".py": TARGET}


def kind_of(path: Path) -> Kind | None:
    """What a file is, by its first bytes and its name; None where that can't be told.

    Raises BadInput for a pipe, a device or a socket.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return None
        if not stat.S_ISREG(mode):
            what = "a pipe" if stat.S_ISFIFO(mode) else "a device or a socket"
            raise BadInput(f"{path}: {what}, not a file", "save it to a file and give that")
        with open_regular(path) as file:
            head = file.read(_HEAD) or b""  # None: a kernel interface that has nothing to say now
    except OSError:
        return None
    return _kind(head, path.suffix.lower())


def _kind(head: bytes, suffix: str) -> Kind | None:
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    if head.startswith(_ZSTD):
        return REPORT if suffix == ".ncu-repz" else ARCHIVE
    if head.startswith(_SQLITE):
        return TIMELINE if suffix == ".sqlite" else DATABASE
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    return _kind_of_text(head) if head and b"\0" not in head else None


def _kind_of_text(head: bytes) -> Kind | None:
    try:
        head[: -3 if len(head) == _HEAD else None].decode("utf-8")  # a character may be cut
    except UnicodeDecodeError:
        return None
    if head.startswith(_LFS):
        return None
    if schema := _SCHEMA.search(head):
        return _SCHEMAS.get(schema[1].decode(), OUTPUT)
    return RULES if _RULES.search(head) else TEXT


def refuse_other_kinds(path: Path, wanted: str, kinds: Collection[Kind]) -> None:
    """Raise BadInput for a file that is clearly of no kind in `kinds`; `wanted` names those.

    What can't be told, and what is not there, is left to whoever reads it.
    """
    kind = kind_of(path)
    if kind is None or kind in kinds:
        return
    raise BadInput(f"{path}: {kind.name}, not {wanted}", kind.remedy)
