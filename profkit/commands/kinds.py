"""What kind of file a path is, and which verb takes it."""

import re
import stat
from pathlib import Path
from typing import Annotated, NamedTuple

from profkit.core.errors import BadInput
from profkit.core.regular_file import open_regular
from profkit.timeline import TRACES

_HEAD = 1 << 16  # bytes looked at: what profkit writes has its schema in the first hundred
_SCHEMA = re.compile(rb'"schema"\s*:\s*"profkit\.([a-z_-]+)/')
_TRACE = re.compile(rb'"(?:traceEvents|deviceProperties)"\s*:\s*\[|\A\s*\[\s*\{[^{}]*"ph"\s*:\s*"')
_RULES = re.compile(rb"^rules\s*:", re.MULTILINE)

_MAGIC = {
    b"NVR\0": "report",
    b"\x89PNG": "picture",
    b"\xff\xd8\xff": "picture",
    b"%PDF": "pdf",
    b"\x1f\x8b": "archive",
    b"PK\x03\x04": "archive",
    b"\xfd7zXZ": "archive",
}
_ZSTD, _SQLITE = b"\x28\xb5\x2f\xfd", b"SQLite format 3\0"
_NSYS_TABLES = (b"StringIds", b"TARGET_INFO", b"CUPTI_ACTIVITY")  # named in an export's first page
RECORDINGS = (b"NVR\0", _ZSTD, _SQLITE)
_LFS = b"version https://git-lfs"  # in place of a file of any kind, which its reader reports
_SCHEMAS = {
    "time": "latencies", "cell": "latencies", "ceilings": "ceilings", "try": "trial",
    "try_kernels": "kernel trial",
}  # fmt: skip
_SUFFIXES = {".nsys-rep": "timeline", ".qdrep": "timeline", ".svg": "picture", ".py": "target"}


def kind_of(path: Path) -> str | None:
    """The kind of a file by its first bytes and its name; None where that is unknown.

    Raises BadInput for a pipe, a device or a socket.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return None
        if not stat.S_ISREG(mode):
            name = "a pipe" if stat.S_ISFIFO(mode) else "a device or a socket"
            raise BadInput(f"{path}: {name}, not a file", "save it to a file and give that")
        with open_regular(path) as file:
            head = file.read(_HEAD) or b""  # None: a kernel interface without data now
    except OSError:
        return None
    suffix = path.suffix.lower()
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return "timeline" if kind == "archive" and path.name.endswith(TRACES) else kind
    if head.startswith(_ZSTD):
        return "report" if suffix == ".ncu-repz" else "archive"
    if head.startswith(_SQLITE):
        return "timeline" if any(table in head for table in _NSYS_TABLES) else "database"
    return _SUFFIXES.get(suffix) or _kind_of_text(head)


def _kind_of_text(head: bytes) -> str | None:
    if not head or b"\0" in head or head.startswith(_LFS):
        return None
    try:
        head[: -3 if len(head) == _HEAD else None].decode("utf-8")  # a character may be cut
    except UnicodeDecodeError:
        return None
    if schema := _SCHEMA.search(head):
        return _SCHEMAS.get(schema[1].decode(), "output")
    if _TRACE.search(head):
        return "timeline"
    return "rules" if _RULES.search(head) else "text"


class Input(NamedTuple):
    """What a verb reads: its name in a sentence, and the kinds of files that it may be."""

    name: str
    kinds: frozenset[str]

    def check(self, path: Path) -> None:
        """Raise BadInput for a file that is clearly of another kind.

        Unknown kinds and missing files are left to the reader.
        """
        kind = kind_of(path)
        if kind is not None and kind not in self.kinds:
            from profkit.core.yaml_files import shipped_yaml

            name, remedy = shipped_yaml("profkit.commands", "kinds.yaml")[kind]
            raise BadInput(f"{path}: {name}, not {self.name}", remedy)


_MADE = frozenset({"ceilings", "latencies", "output", "rules", "text"})
Ceilings = Annotated[Path, Input("measured ceilings", frozenset({"ceilings", "text"}))]
Claims = Annotated[Path, Input("a file of claims", _MADE)]
Latencies = Annotated[Path, Input("saved latencies", frozenset({"latencies", "text"}))]
Program = Annotated[str, Input("a target script or a program", _MADE | {"target"})]
RawLatencies = Annotated[Path, Input("raw latencies", _MADE | {"target"})]
_REPORTS = frozenset({"archive", "database", "report"})
Recording = Annotated[Path, Input("a report or a timeline", _REPORTS | {"timeline"})]
ReportFile = Annotated[Path, Input("a report", _REPORTS)]
RulesFile = Annotated[Path, Input("a rules file", frozenset({"rules", "text"}))]
_TRIALS = frozenset({"trial", "kernel trial", "text"})
ProgramTrial = Annotated[Path, Input("a trial of a program", _TRIALS - {"kernel trial"})]
Trial = Annotated[Path, Input("what profkit try wrote", _TRIALS)]
Script = Annotated[str, Input("a target script (.py)", frozenset({"target"}))]
