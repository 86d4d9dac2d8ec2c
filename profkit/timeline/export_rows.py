"""What an nsys export holds, as rows; what is absent or of another type is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from profkit.core.errors import BadInput
from profkit.core.integrity import check_unchanged
from profkit.core.regular_file import open_regular
from profkit.timeline import export
from profkit.timeline.messages import LARGEST_BLOB, payload_of, schemas_of
from profkit.timeline.pages import UNKNOWN, OtherFormat, whole_numbers
from profkit.timeline.rows import (
    GPU_COLUMNS,
    LARGEST_SIZE,
    LATEST,
    NAMES,
    NO_TIME,
    NODE_COLUMNS,
    SHAPES,
    Collected,
    Key,
    Message,
    Recorded,
    Rows,
    text_of,
)

if TYPE_CHECKING:
    import sqlite3

_NS = 1e9  # nanoseconds per second
_CHUNK = 20_000  # rows, chosen: their Python objects take some 20 MB
_UNKNOWN = f"({UNKNOWN + 1} - 1)"  # SQLite takes the number itself for a floating one


def recorded_by_nsys(path: Path) -> Recorded:
    """What an export holds. Raises BadInput when the file is absent, empty, damaged, of another
    kind, or different from the manifest in its folder."""
    with export.open_export(path) as database, open_regular(path) as file:
        check_unchanged(path)
        return _Export(path, database, file.fileno()).recorded()


class _Export:
    def __init__(self, path: Path, database: sqlite3.Connection, file: int) -> None:
        self._path = path
        self._database = database
        self._file = file
        self._columns = export.columns_of(database)
        self._untimed = 0

    def recorded(self) -> Recorded:
        rows = {table: self._timed(table) for table in SHAPES}
        texts = self._texts(rows)
        for table in (export.COPIES, export.FILLS):
            self._check_bytes(table, rows[table])
        facts: dict[Any, Any] = dict(self._all(export.EXPORT, ("name", "value")))
        return Recorded(
            rows=rows,
            texts=texts,
            untimed=self._untimed,
            gpus=tuple(self._all(export.GPUS, GPU_COLUMNS)),
            product_version=text_of(facts.get("EXPORT_PRODUCT_VERSION")),
            schema_version=text_of(facts.get("EXPORT_SCHEMA_VERSION")),
            created=self._created(),
            messages=self._messages(),
            nodes=tuple(self._all(export.NODES, NODE_COLUMNS)),
            diagnostics=self._diagnostics(),
        )

    def _all(self, table: str, columns: Sequence[str]) -> Iterable[Key]:
        """These columns of all rows, None where a column is absent; numbers are integers."""
        if table not in self._columns:
            return ()
        values = ", ".join(self._value(table, column) for column in columns)
        return self._database.execute(f"SELECT {values} FROM {table} NOT INDEXED")

    def _value(self, table: str, column: str) -> str:
        """A column's value in SQL, NULL where it has another type than the column should; an end
        of another type is none that was left out."""
        if column not in self._columns[table]:
            return "NULL"
        if (table, column) in export.TEXT_COLUMNS:
            return f'"{column}"'
        if column == "end":
            end = f"WHEN 'integer' THEN max(end, {NO_TIME}) WHEN 'null' THEN NULL ELSE {NO_TIME}"
            return f"CASE typeof(end) {end} END"
        return f"""CASE typeof("{column}") WHEN 'integer' THEN "{column}" END"""

    def _timed(self, table: str) -> Rows:
        """Rows with a start and an end, in their order; CUPTI writes 0 for what it can't time."""
        if table not in self._columns:
            return Collected(self._path, table).in_order()
        of_ranges = {"eventType", "globalTid"} if table == export.RANGES else set()
        required = {"start", "end"} | of_ranges
        if lacking := required - self._columns[table]:
            message = f"{self._path}: {table} has no column {', '.join(sorted(lacking))}"
            raise BadInput(message, f"{export.AGAIN} from a newer nsys")
        rows = Collected(self._path, table)
        try:
            self._take_pages(rows)
        except OtherFormat:
            rows = Collected(self._path, table)
            self._query(rows)
        self._untimed += rows.untimed
        return rows.in_order()

    def _take_pages(self, rows: Collected) -> None:
        """Take a table's rows from the pages of the file. Raises OtherFormat where that fails."""
        if rows.table == export.RANGES:  # among other events, and with texts
            raise OtherFormat
        shape = SHAPES[rows.table]
        columns = [name for name in (*shape[0], *shape[1]) if name in self._columns[rows.table]]
        for values in whole_numbers(self._database, self._file, rows.table, columns):
            known = dict(zip(columns, values, strict=True))
            timed = rows.timed(known["start"], known["end"])
            if not np.all(timed):
                known = {name: column[timed] for name, column in known.items()}
            absent = np.full(len(known["start"]), UNKNOWN)
            numbers, keys = ([known.get(name, absent) for name in names] for names in shape)
            rows.add(numbers, rows.codes_of_numbers(keys))

    def _query(self, rows: Collected) -> None:
        """Take a table's rows by a query."""
        numbers, keys = SHAPES[rows.table]
        values = [f"ifnull({self._value(rows.table, name)}, {_UNKNOWN})" for name in numbers]
        values += [self._value(rows.table, name) for name in keys]
        cursor = self._database.execute(
            f"SELECT {', '.join(values)} FROM {rows.table} NOT INDEXED {_ranges(rows.table)}"
        )
        while chunk := cursor.fetchmany(_CHUNK):
            rows.take(chunk)

    def _texts(self, rows: Mapping[str, Rows]) -> dict[int, str]:
        """The strings that events name."""
        columns = {export.KERNELS: NAMES, export.CALLS: ("nameId",), export.RANGES: ("textId",)}
        wanted = {
            key[SHAPES[table][1].index(name)]
            for table, names in columns.items()
            for name in names
            for key in rows[table].keys
        }
        named = self._all(export.STRINGS, ("id", "value"))
        return {key: text for key, text in named if key in wanted and isinstance(text, str)}

    def _check_bytes(self, table: str, rows: Rows) -> None:
        """Raise BadInput for a row of copies or fills without its bytes, where others have them."""
        if "bytes" not in self._columns.get(table, ()):
            return
        size = rows.numbers["bytes"]
        wrong = np.flatnonzero((size < 0) | (size > LARGEST_SIZE))
        if len(wrong):
            (count,) = size[wrong[:1]].tolist()
            known = "no number" if count == UNKNOWN else f"{count:,}"
            message = f"{self._path}: {table} has {known} for the bytes of a row"
            raise BadInput(message, export.AGAIN)

    def _messages(self) -> list[Message]:
        schemas = schemas_of(
            self._all(export.PAYLOAD_FIELDS, ("domainId", "schemaId", "type", "name", "offset"))
        )
        if not schemas or "binaryData" not in self._columns.get(export.RANGES, ()):
            return []
        names = ("start", "end", "globalTid", "text", "textId")
        values = [self._value(export.RANGES, name) for name in names]
        cursor = self._database.execute(
            f"SELECT {', '.join(values)}, binaryData FROM {export.RANGES} NOT INDEXED "
            f"{_ranges(export.RANGES)} AND typeof(start) = 'integer' AND typeof(end) = 'integer' "
            f"AND start >= {-LATEST} AND end BETWEEN start AND {LATEST} "
            f"AND typeof(binaryData) = 'blob' AND length(binaryData) <= {LARGEST_BLOB} "
            "ORDER BY 1, 2"
        )
        payloads = ((*row, payload_of(blob, schemas)) for *row, blob in cursor)
        return [
            Message(start, end, thread, text_of(text), text_id, payload)
            for start, end, thread, text, text_id, payload in payloads
            if payload is not None
        ]

    def _diagnostics(self) -> tuple[str, ...]:
        """What nsys warned of, errors first, each once."""
        if not self._columns.get(export.DIAGNOSTICS, frozenset()) >= {"severity", "text"}:
            return ()
        rows = self._database.execute(
            f"SELECT DISTINCT text FROM {export.DIAGNOSTICS} NOT INDEXED "
            f"WHERE {export.OF_TRACING} ORDER BY severity DESC"
        )
        return tuple(text_of(text) for (text,) in rows)

    def _created(self) -> datetime | None:
        for (ns,) in self._all(export.SESSION_START, ("utcEpochNs",)):
            try:
                return datetime.fromtimestamp(ns / _NS, UTC) if ns else None
            except (OverflowError, ValueError, OSError):
                return None
        return None


def _ranges(table: str) -> str:
    """The condition for rows that are ranges of a thread, where a table has other events too."""
    if table != export.RANGES:
        return ""
    kinds = f"eventType IN ({export.PUSH_POP}, {export.START_END})"
    return f"WHERE {kinds} AND typeof(globalTid) = 'integer'"
