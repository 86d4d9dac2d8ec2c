"""NVTX payloads in an nsys export, in the layout that nsys writes for NCCL's ranges."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

DOMAIN, ALL_REDUCE, START, USER = 1, 16777217, 16777218, 16777219
"""A domain, and numbers of schemas."""
INT, UINT64, SIZE = 5, 18, 22  # NVTX_PAYLOAD_ENTRY_TYPE_*
_FIELDS = (
    (ALL_REDUCE, 0, UINT64, "NCCL communicator ID", None),
    (ALL_REDUCE, 1, SIZE, "Message size [bytes]", 8),
    (ALL_REDUCE, 2, 16777216, "Reduction operation", 16),
    (START, 0, UINT64, "NCCL communicator ID", None),
    (START, 1, INT, "No. of ranks", 8),
    (START, 2, INT, "Rank", 12),
    (USER, 0, UINT64, "Password", None),
)


def blob(schema: int, payload: bytes) -> bytes:
    """A payload after its head of domain, schema, size and the size of the head."""
    return struct.pack("<QQQQ", DOMAIN, schema, len(payload), 32) + payload


def all_reduce(size: int, communicator: int = 0xABC) -> bytes:
    return blob(ALL_REDUCE, struct.pack("<QQii", communicator, size, 0, 0))


def start(ranks: int, communicator: int = 0xABC) -> bytes:
    return blob(START, struct.pack("<Qii", communicator, ranks, 0))


def add_payloads(path: Path, payloads: Iterable[tuple[int, bytes]]) -> None:
    """Give ranges, by their rowid, a payload, in an export without any."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("ALTER TABLE NVTX_EVENTS ADD COLUMN binaryData BLOB")
        database.execute(
            "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER, schemaId INTEGER, "
            "idx INTEGER, flags INTEGER, type INTEGER, name TEXT, description TEXT, "
            "arrayOrUnionDetail INTEGER, offset INTEGER)"
        )
        database.executemany(
            "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId, schemaId, idx, type, name, offset) "
            f"VALUES ({DOMAIN}, ?, ?, ?, ?, ?)",
            _FIELDS,
        )
        database.executemany(
            "UPDATE NVTX_EVENTS SET binaryData = ? WHERE rowid = ?",
            ((data, row) for row, data in payloads),
        )


def rows_of(path: Path, name: str) -> list[int]:
    """The rowids of ranges of a name, in order of start."""
    query = """SELECT rowid FROM NVTX_EVENTS WHERE coalesce(text, (SELECT value FROM StringIds
        WHERE id = textId)) = ? ORDER BY start"""
    with closing(sqlite3.connect(path)) as database:
        return [row for (row,) in database.execute(query, (name,))]
