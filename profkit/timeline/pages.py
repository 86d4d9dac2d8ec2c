"""Whole numbers from the pages of an SQLite file, some ten times faster than through queries.

The format is that of sqlite.org/fileformat2.html. Only what most tables are is read: rows that lie
in one page each, with a value in every column. For all else there is the query.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from profkit.core.regular_file import read_at

if TYPE_CHECKING:
    import sqlite3

UNKNOWN = np.iinfo(np.int64).min
"""Stands for NULL."""

_Bytes: TypeAlias = npt.NDArray[np.uint8]
_Numbers: TypeAlias = npt.NDArray[np.int64]

_INTERIOR, _LEAF = 5, 13  # types of pages of a table
_HEADER = {_INTERIOR: 12, _LEAF: 8}  # bytes before the pointers to cells
_READ = 1 << 19  # bytes at a time, chosen: with their numbers they stay in a CPU's cache
_DEEPEST = 20  # levels; more pages than a file can have
_LONGEST = 445  # bytes of a row that is in one page whatever its size
_WINDOW = 8  # bytes of the longest number
_VERSIONS, _NO_LOG = 18, b"\1\1"  # where the header says that no write-ahead log is in use
_NULL, _ZERO, _ONE = 0, 8, 9  # types of values without bytes
_TYPES = 128  # of one byte
_SIZES = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0, *(n // 2 for n in range(116))], np.uint8)
"""Bytes of a value by its type; 7 is a floating point number, from 12 on are blobs and texts."""
_SHIFTS = np.where(_SIZES > 0, 64 - 8 * np.minimum(_SIZES.astype(np.int64), 8), 0)
_IS_WHOLE = np.isin(np.arange(_TYPES), (0, 1, 2, 3, 4, 5, 6, _ZERO, _ONE))


class OtherFormat(Exception):
    """A table is not of the usual form."""


def whole_numbers(
    database: sqlite3.Connection, file: int, table: str, columns: Sequence[str]
) -> Iterator[list[_Numbers]]:
    """The columns of a table, some thousand rows at a time; UNKNOWN where a value is NULL.

    `file` is the database's file, opened for reading. SQLite has checked the table in the same
    transaction (`PRAGMA quick_check`): pages, pointers and numbers of rows are then as they should
    be. Raises OtherFormat where the table has to be read by a query, also after a part of it.
    """
    _require(read_at(file, 2, _VERSIONS) == _NO_LOG)
    info = database.execute(f"PRAGMA table_xinfo({table})").fetchall()
    _require(not any(key or hidden for *_, key, hidden in info))
    order = [name for _, name, *_ in info]
    wanted = [order.index(name) for name in columns]
    ((root,),) = database.execute(
        "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)
    )
    ((size,),) = database.execute("PRAGMA page_size")
    try:
        for chunk in _read(file, _leaves(file, root, size), size):
            yield _columns(chunk, len(order), wanted)
    except IndexError:
        raise OtherFormat from None


def _read(file: int, pages: _Numbers, size: int) -> Iterator[_Bytes]:
    """Pages by number, one a row, some at a time."""
    for first in range(0, len(pages), _READ // size):
        numbers = pages[first : first + _READ // size]
        runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
        data = b"".join(read_at(file, len(run) * size, (int(run[0]) - 1) * size) for run in runs)
        _require(len(data) == len(numbers) * size)
        yield np.frombuffer(data, np.uint8).reshape(-1, size)


def _leaves(file: int, root: int, size: int) -> _Numbers:
    """The pages with the rows of a table, in order."""
    pages = np.array([root], np.int64)
    most = os.fstat(file).st_size // size
    for _ in range(_DEEPEST):
        _require(bool(np.all(pages > 0)))
        if next(_read(file, pages[:1], size))[0, 0] != _INTERIOR:
            return pages
        below: list[_Numbers] = []
        for chunk in _read(file, pages, size):
            below.append(_below(chunk))
            _require(sum(map(len, below)) <= most)
        pages = np.concatenate(below)
    raise OtherFormat


def _below(pages: _Bytes) -> _Numbers:
    """The pages below interior ones: one for each cell, and a last one in each header."""
    size, data = pages.shape[1], pages.ravel()
    cells = _cells(pages, _INTERIOR)
    lasts = np.searchsorted(cells // size, np.arange(len(pages)), "right")
    return np.insert(
        _number(data, cells, 4), lasts, _number(data, np.arange(len(pages)) * size + 8, 4)
    )


def _cells(pages: _Bytes, kind: int) -> _Numbers:
    """Where the cells of pages begin."""
    _require(bool(np.all(pages[:, 0] == kind)))
    size = pages.shape[1]
    counts = pages[:, 3].astype(np.int64) << 8 | pages[:, 4]
    page = np.repeat(np.arange(len(pages)) * size, counts)
    index = np.arange(len(page)) - np.repeat(np.cumsum(counts) - counts, counts)
    return page + _number(pages.ravel(), page + _HEADER[kind] + 2 * index, 2)


def _number(data: _Bytes, places: _Numbers, size: int) -> _Numbers:
    """Unsigned numbers at places."""
    number = np.zeros(len(places), np.int64)
    for offset in range(size):
        number = number << 8 | data[places + offset]
    return number


def _columns(pages: _Bytes, count: int, wanted: Sequence[int]) -> list[_Numbers]:
    """Columns of the rows in leaf pages whose rows have `count` values, with types of one byte."""
    data = pages.ravel()
    place = _cells(pages, _LEAF)
    is_long = data[place] >= 0x80  # the length of a row: of one or two bytes
    length = np.where(
        is_long, (data[place] & 0x7F).astype(np.int64) << 7 | data[place + is_long], data[place]
    )
    place = place + is_long
    more = data[place] >= 0x80
    _require(not np.any(is_long & more))
    place = place + 1
    for _ in range(_WINDOW):  # the row's number: bytes but the last have a high bit
        more = data[place] >= 0x80
        if not np.any(more):
            break
        place = place + more
    place = place + 1
    _require(bool(np.all(length <= _LONGEST) and np.all(data[place] == count + 1)))
    kinds = data[place[:, None] + np.arange(1, count + 1)]
    _require(bool(np.all(kinds < _TYPES)))
    sizes = _SIZES[kinds]
    ends = np.cumsum(sizes, axis=1, dtype=np.int32) + (place + count + 1)[:, None]
    _require(bool(np.all(ends[:, -1] == place + length) and np.all(ends[:, -1] <= len(data))))
    padded = np.concatenate([np.zeros(_WINDOW, np.uint8), data])
    words = np.ndarray((len(data) + 1,), ">i8", padded, strides=(1,))
    return [_values(words, kinds[:, column], ends[:, column]) for column in wanted]


def _values(words: _Numbers, kinds: _Bytes, ends: _Numbers) -> _Numbers:
    """Numbers by their types and ends; the word of a place is that of the 8 bytes before it."""
    _require(bool(np.all(_IS_WHOLE[kinds])))
    shift = _SHIFTS[kinds]
    number = words[ends].astype(np.int64) << shift >> shift
    _require(not np.any(number == UNKNOWN))
    for kind, value in ((_NULL, UNKNOWN), (_ZERO, 0), (_ONE, 1)):
        number[kinds == kind] = value
    return number


def _require(holds: bool) -> None:
    if not holds:
        raise OtherFormat
