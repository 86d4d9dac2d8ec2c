"""An Nsight Systems export (`nsys export --type sqlite`), checked and open for reading.

nsys creates tables on demand and adds columns with each schema version: an absent table means no
such events, an absent column that the value is unknown.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.core.errors import BadInput
from profkit.core.regular_file import open_regular
from profkit.core.yaml_files import shipped_yaml

if TYPE_CHECKING:
    import sqlite3

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
FILLS = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
RANGES = "NVTX_EVENTS"
OPERATORS = "OPERATORS"  # in no export: operators of a framework, in traces of torch.profiler
NODES = "CUDA_GRAPH_NODE_EVENTS"
PAYLOAD_FIELDS = "NVTX_PAYLOAD_SCHEMA_ENTRIES"
GPUS = "TARGET_INFO_GPU"
SESSION_START = "TARGET_INFO_SESSION_START_TIME"
EXPORT = "META_DATA_EXPORT"
DIAGNOSTICS = "DIAGNOSTIC_EVENT"
OF_TRACING = "severity IN (2, 3) AND text GLOB '*CUDA*' AND NOT text GLOB '*Unified Memory*'"
"""Which diagnostics are nsys's warnings and errors about tracing CUDA, in SQL."""
STRINGS = "StringIds"
PUSH_POP, START_END = 59, 60
EXPORTED = shipped_yaml("profkit.timeline", "export.yaml")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    table: tuple(columns["read"]) for table, columns in EXPORTED["tables"].items()
}
TEXT_COLUMNS = frozenset(
    (table, column)
    for table, columns in EXPORTED["tables"].items()
    for column in columns.get("text", ())
)
BLOB_COLUMNS = frozenset(
    (table, column)
    for table, columns in EXPORTED["tables"].items()
    for column in columns.get("blob", ())
)

_LARGEST = 8 << 30  # bytes, chosen: reading takes two minutes
_MOST_ROWS = 50_000_000  # in the tables that are read; each takes 3 µs and 100 bytes
_MOST_TEXT = 256 << 20  # bytes in the columns of text that are read
_LONGEST_TEXT = 1 << 20  # bytes of one; names of generated kernels have some 10 kB
_LONGEST_VALUE = 256 << 20  # bytes of any other value, such as a program's output
_STEPS = 50_000_000, 50  # of SQLite's machine, and for each byte of the file: a check takes 1 to 3
LESS = "record less: `nsys profile --duration SECONDS -t cuda,nvtx`"
RECORD = "record with `nsys profile -t cuda,nvtx`, then `nsys export --type sqlite FILE`"
AGAIN = "export it again with `nsys export --type sqlite`"
_MAGIC = b"SQLite format 3\0"
_VERSIONS, _LOGGED = slice(18, 20), 2  # where the header says that there may be a write-ahead log


@contextmanager
def open_export(path: Path, *, with_log: bool = False) -> Iterator[sqlite3.Connection]:
    """An export, open for reading only, whose tables SQLite has checked, but not its indices: no
    query may use one.

    `with_log` takes what waits in a write-ahead log too, and leaves SQLite's files beside it.
    Raises BadInput, also from the `with` block, when it can't be read or is not an export.
    """
    import sqlite3

    head = _refuse_other_kinds(path)
    address = f"{path.resolve().as_uri()}?mode=ro"
    if _LOGGED in head[_VERSIONS] and not with_log:
        _refuse_log(path)
        address += "&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            _limit(path, database)
            database.execute("BEGIN")
            tables = columns_of(database).keys()
            if STRINGS not in tables or len(tables) < 2:
                raise BadInput(f"{path}: an SQLite database, not an nsys export", RECORD)
            _check_extent(path, database)
            for table in tables:
                if database.execute(f"PRAGMA quick_check({table})").fetchone() != ("ok",):
                    raise _damaged(path)
            yield database
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_CANTOPEN")):
            message = "can't be read (locked by another program, or its folder is not accessible)"
            raise BadInput(f"{path}: {message}", "copy the file and read the copy") from None
        raise _damaged(path) from None


def _limit(path: Path, database: sqlite3.Connection) -> None:
    """Limit the cost of any query: the schema is part of the file, and may compute anything."""
    import sqlite3

    database.text_factory = partial(str, encoding="utf-8", errors="replace")
    database.execute("PRAGMA trusted_schema = OFF")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    database.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100)
    interval = 1_000_000
    intervals = iter(range((_STEPS[0] + _STEPS[1] * path.stat().st_size) // interval))
    database.set_progress_handler(lambda: next(intervals, None) is None, interval)


def _check_extent(path: Path, database: sqlite3.Connection) -> None:
    """Raise BadInput for more rows or text than are read."""
    import sqlite3

    rows = text = 0
    for table, columns in columns_of(database).items():
        texts = [column for column in columns if (table, column) in TEXT_COLUMNS]
        sizes = [f'coalesce(sum(length(CAST("{column}" AS BLOB))), 0)' for column in texts]
        count, *lengths = database.execute(
            f"SELECT {', '.join(['count(*)', *sizes])} FROM {table} NOT INDEXED"
        ).fetchone()
        rows, text = rows + count, text + sum(lengths)
    if rows > _MOST_ROWS:
        raise BadInput(f"{path}: {rows:,} events and names, at most {_MOST_ROWS:,}", LESS)
    if text > _MOST_TEXT:
        raise BadInput(
            f"{path}: {text / 2**20:,.0f} MiB of names, at most {_MOST_TEXT >> 20} MiB", LESS
        )
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_TEXT)


def _refuse_log(path: Path) -> None:
    """Raise BadInput where rows wait in a write-ahead log beside a database."""
    log = path.resolve().with_name(f"{path.resolve().name}-wal")
    try:
        waiting = log.stat().st_size > 0
    except OSError:
        return
    if waiting:
        raise BadInput(
            f"{path}: a part of it is still in {log.name} beside it",
            "close the program that writes it, or: sqlite3 FILE 'PRAGMA journal_mode = DELETE'",
        )


def _refuse_other_kinds(path: Path) -> bytes:
    """The first bytes of a file that may be an export. Raises BadInput for another."""
    try:
        with open_regular(path) as file:
            head, size = file.read(64) or b"", os.fstat(file.fileno()).st_size  # None: not now
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file", "check the path") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: a directory, not an export", "pass the .sqlite file") from None
    except OSError as error:
        message = f"{path}: can't be read ({error.strerror})"
        raise BadInput(message, "check its permissions") from None
    export = "export it with `nsys export --type sqlite FILE`"
    is_pointer = head.startswith(b"version https://git-lfs")
    refusals = (
        (not head, "empty file", RECORD),
        (is_pointer, "a git-LFS pointer, not the export itself", "fetch it with `git lfs pull`"),
        (path.suffix in {".nsys-rep", ".qdrep"}, "an nsys report, not its SQLite export", export),
        (not head.startswith(_MAGIC), "not an SQLite file, hence not an nsys export", RECORD),
        (size > _LARGEST, f"an export of more than {_LARGEST / 2**30:g} GiB", LESS),
    )
    for refused, message, remedy in refusals:
        if refused:
            raise BadInput(f"{path}: {message}", remedy)
    return head


def columns_of(database: sqlite3.Connection) -> Mapping[str, frozenset[str]]:
    """The tables of an export that `read` knows, each with those of its columns that it knows."""
    tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    columns = {}
    for table in sorted({name for (name,) in tables} & set(COLUMNS)):
        info = database.execute(f"PRAGMA table_info({table})")
        columns[table] = frozenset(row[1] for row in info) & set(COLUMNS[table])
    return columns


def _damaged(path: Path) -> BadInput:
    return BadInput(f"{path}: the export is damaged", f"copy it again or {AGAIN}")
