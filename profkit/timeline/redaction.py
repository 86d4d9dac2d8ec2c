"""Removal of private data from an nsys SQLite export.

A capture holds every environment variable of the profiled process, command lines, host and user
names, paths, and the names of everything that ran on the machine. An export is therefore
rewritten with allow-listed content only; everything else, in this schema version or a later one,
is dropped.
"""

import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from profkit.core.atomic_file import replacement
from profkit.core.errors import BadInput, refusal
from profkit.timeline import export
from profkit.timeline.messages import FIELDS, LARGEST_BLOB, RANGE_PREFIX

_ENUMS = frozenset(export.EXPORTED["enums"])
_KEPT: Mapping[str, tuple[str, ...]] = {
    **{
        table: (*columns["read"], *columns.get("kept", ()))
        for table, columns in export.EXPORTED["tables"].items()
        if table != export.DIAGNOSTICS  # free text
    },
    **dict.fromkeys(_ENUMS, ("id", "name", "label")),
}
_TEXT = export.TEXT_COLUMNS | {(table, column) for table in _ENUMS for column in ("name", "label")}
_EXPORT_KEYS = tuple(export.EXPORTED["export_keys"])
_NAMES = [
    (table, column) for table, columns in export.EXPORTED["names"].items() for column in columns
]
_SIDE_FILES = ("-wal", "-shm", "-journal")


def scrub(path: str | Path) -> None:
    """Replace an export by one without private data; `read` gives the same timeline from both,
    without nsys's warnings.

    What stays: kernels, CUDA calls, copies and NVTX ranges with their names, the
    GPU's name and sizes, sizes of NCCL's messages, nsys's version and the time of the recording.
    Names of kernels and NVTX ranges are the program's own and stay as they are. The new file
    replaces the old one in one step once it is whole.

    Raises BadInput when the file is absent, damaged, not an nsys export, or can't be replaced; it
    is then unchanged.
    """
    path = Path(path)
    with export.open_export(path, with_log=True):
        pass  # whole
    target = path.resolve()
    remedy = "make its folder writable or copy it"
    with refusal(f"{path}: can't be replaced", BadInput, remedy):
        with replacement(target) as fresh:
            _write(path, target, fresh)
            shutil.copymode(target, fresh)
        for suffix in _SIDE_FILES:
            target.with_name(target.name + suffix).unlink(missing_ok=True)


def _write(path: Path, source: Path, fresh: Path) -> None:
    try:
        with closing(sqlite3.connect(fresh.as_uri(), uri=True, isolation_level=None)) as new:
            new.execute("PRAGMA journal_mode = OFF")
            new.execute("PRAGMA secure_delete = ON")
            new.execute("PRAGMA trusted_schema = OFF")
            new.execute("ATTACH ? AS old", (f"{source.as_uri()}?mode=ro",))
            new.execute("BEGIN")
            for table, columns in _columns(new).items():
                _copy(new, table, columns)
            new.execute("COMMIT")
            new.execute("DETACH old")
            new.execute("VACUUM")
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        raise BadInput(
            f"{path}: can't be rewritten (the export is damaged or the disk is full)",
            "check the free space, or export it again with `nsys export --type sqlite`",
        ) from None


def _columns(new: sqlite3.Connection) -> Mapping[str, tuple[str, ...]]:
    """What the old file has of the tables and columns on the list; the strings come last."""
    tables = new.execute("SELECT name FROM old.sqlite_master WHERE type = 'table'").fetchall()
    columns = {}
    for table in sorted({name for (name,) in tables} & _KEPT.keys()):
        info = {row[1] for row in new.execute(f"PRAGMA old.table_info({table})")}
        columns[table] = tuple(column for column in _KEPT[table] if column in info)
    strings = {export.STRINGS: columns.pop(export.STRINGS, ())}
    return {table: names for table, names in (columns | strings).items() if names}


def _copy(new: sqlite3.Connection, table: str, columns: tuple[str, ...]) -> None:
    """One table; a value of another type than its column's is left out, as it could be anything."""
    declared, values = [], []
    for column in columns:
        kind = "TEXT" if (table, column) in _TEXT else "INTEGER"
        if (table, column) in export.BLOB_COLUMNS:
            declared.append(f'"{column}" BLOB')
            values.append(_message_blob(new, column))
            continue
        is_key = column == "id" and (table == export.STRINGS or table in _ENUMS)
        declared.append(f'"{column}" {kind}{" PRIMARY KEY" if is_key else ""}')
        values.append(f"""CASE WHEN typeof("{column}") = '{kind.lower()}' THEN "{column}" END""")
    new.execute(f"CREATE TABLE main.{table} ({', '.join(declared)})")
    source = f"SELECT {', '.join(values)} FROM old.{table} NOT INDEXED {_rows(new, table)}"
    new.execute(f"INSERT INTO main.{table} {source}")


def _message_blob(new: sqlite3.Connection, column: str) -> str:
    """The blob of a range of NCCL, which names only a communicator, ranks, sizes and the kind of
    reduction; NULL of any other."""
    present = {row[1] for row in new.execute(f"PRAGMA old.table_info({export.RANGES})")}
    names = [
        name
        for needed, name in (
            ("text", "text"),
            ("textId", f"(SELECT value FROM old.{export.STRINGS} WHERE id = textId)"),
        )
        if needed in present
    ]
    name = f"coalesce({', '.join([*names, 'NULL', 'NULL'])})"
    return (
        f"""CASE WHEN typeof("{column}") = 'blob' AND length("{column}") <= {LARGEST_BLOB} """
        f"""AND {name} GLOB '{RANGE_PREFIX}[A-Z]*' THEN "{column}" END"""
    )


def _rows(new: sqlite3.Connection, table: str) -> str:
    """Which rows of a table stay, as an SQL condition; "" for all."""
    if table == export.EXPORT:
        return f"WHERE name IN {_EXPORT_KEYS}"
    if table == export.PAYLOAD_FIELDS:
        return f"WHERE name IN {FIELDS}"
    if table == export.RANGES:
        return f"WHERE eventType IN ({export.PUSH_POP}, {export.START_END})"
    if table == export.STRINGS:
        used = " UNION ".join(
            f"SELECT {column} FROM main.{owner}"
            for owner, column in _NAMES
            if column in {row[1] for row in new.execute(f"PRAGMA main.table_info({owner})")}
        )
        return f"WHERE id IN ({used})" if used else "WHERE 0"
    return ""
