"""Rows of events as a recording holds them: the columns that each row has for itself, and what many
rows share. Tables and columns are named as in nsys's SQLite export."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain, compress, count
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from profkit.core.errors import BadInput
from profkit.timeline import export
from profkit.timeline.events import Indices, Times
from profkit.timeline.messages import Payload
from profkit.timeline.pages import UNKNOWN

LATEST = 1 << 62
"""ns, of any time: those since 1970 until 2116."""
NO_TIME = UNKNOWN + 1
"""Earlier than any start."""
LARGEST_SIZE = 1 << 50
"""Bytes, chosen: more than any memory."""
_MIXED = np.uint64(0x9E3779B97F4A7C15)  # odd, with bits all over: 2^64 by the golden ratio
_HALF = np.uint64(32)  # bits
_MOST_VALUES = 1 << 24  # in rows that differ by more than time; each takes some 60 bytes

PLACE = ("deviceId", "contextId", "streamId", "globalPid")
NAMES = ("demangledName", "shortName", "mangledName")
SIZES = (
    "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
    "registersPerThread", "staticSharedMemory", "dynamicSharedMemory",
)  # fmt: skip
GPU_COLUMNS = ("id", "cuDevice", "name", "computeMajor", "computeMinor", "smCount", "totalMemory")
NODE_COLUMNS = ("graphNodeId", "originalGraphNodeId", "start", "globalTid")
_RANGE_SHAPE = (("start", "end"), ("eventType", "globalTid", "text", "textId"))
SHAPES = {
    export.KERNELS: (("start", "end", "correlationId", "graphNodeId"), (*PLACE, *NAMES, *SIZES)),
    export.CALLS: (("start", "end", "correlationId"), ("globalTid", "nameId")),
    export.COPIES: (
        ("start", "end", "correlationId", "bytes"),
        (*PLACE, "copyKind", "srcKind", "dstKind"),
    ),
    export.FILLS: (("start", "end", "correlationId", "bytes"), PLACE),
    export.GRAPHS: (("start", "end", "correlationId", "graphId"), PLACE),
    export.RANGES: _RANGE_SHAPE,
    export.OPERATORS: _RANGE_SHAPE,
}
"""Of each table of events the columns with a number for each event, and those that repeat."""

Key: TypeAlias = tuple[Any, ...]
Numbers: TypeAlias = npt.NDArray[np.int64]


class Rows(Struct, frozen=True, eq=False):
    """Rows of a table: `numbers` by column, and what repeats as an index into `keys`."""

    numbers: dict[str, Numbers]
    code: Indices
    keys: Sequence[Key]

    def __len__(self) -> int:
        return len(self.code)

    def each(self, values: Iterable[int]) -> Indices:
        """A value of every row, from those of the keys."""
        return np.array(list(values), np.int32)[self.code]

    def each_long(self, values: Iterable[int]) -> Times:
        return np.array(list(values), np.int64)[self.code]

    def known(self, column: str) -> Times:
        """A column with 0 where it is unknown."""
        numbers = self.numbers[column]
        return np.where(numbers == UNKNOWN, 0, numbers)


class Collected:
    """Rows of a table as they are read, in parts."""

    def __init__(self, path: Path, table: str) -> None:
        self.table = table
        self._path = path
        self._names, key_names = SHAPES[table]
        self._most = _MOST_VALUES // len(key_names)
        self._codes = numbered()
        self._of_hash: dict[int, int] = {}
        self._numbers: list[list[Numbers]] = []
        self._code: list[Indices] = []
        self.untimed = 0

    def timed(self, start: Numbers, end: Numbers) -> npt.NDArray[np.bool_]:
        """Which rows have times; CUPTI writes an end of 0 for what it can't time, and a range that
        was never ended has none."""
        is_open = (end == UNKNOWN) & (self.table == export.RANGES)
        is_left_out = (end == 0) & (self.table != export.RANGES)
        ended = (end >= start) & (end <= LATEST) & ~is_left_out
        timed: npt.NDArray[np.bool_] = (start >= -LATEST) & (start <= LATEST) & (ended | is_open)
        self.untimed += int((~timed).sum())
        return timed

    def codes(self, keys: Iterable[Key]) -> Indices:
        return np.fromiter(map(self._codes.__getitem__, keys), np.int32)

    def codes_of_numbers(self, columns: Sequence[Numbers]) -> Indices:
        """The codes of keys that are rows of columns."""
        hashed = np.zeros(len(columns[0]), np.uint64)
        for column in columns:
            hashed = (hashed ^ column.view(np.uint64)) * _MIXED
            hashed ^= hashed >> _HALF
        different, firsts, alike = np.unique(hashed, return_index=True, return_inverse=True)
        appearing = np.argsort(firsts)
        codes = np.empty(len(different), np.int32)
        values = (column[firsts[appearing]].tolist() for column in columns)
        hashes = different[appearing].tolist()
        for place, number, key in zip(
            appearing.tolist(), hashes, zip(*values, strict=True), strict=True
        ):
            if (code := self._of_hash.get(number)) is None:
                known = tuple(None if value == UNKNOWN else value for value in key)
                code = self._of_hash[number] = self._codes[known]
            codes[place] = code
        return codes[alike]

    def take(self, rows: Sequence[Key]) -> None:
        """Take rows: the numbers of each, then its key."""
        width = len(self._names)
        number_of, key_of = itemgetter(slice(width)), itemgetter(slice(width, None))
        flat = np.fromiter(chain.from_iterable(map(number_of, rows)), np.int64)
        columns = flat.reshape(-1, width).T
        timed = self.timed(columns[0], columns[1])
        codes = self.codes(map(key_of, compress(rows, timed)))
        self.add([column[timed] for column in columns], codes)

    def add(self, numbers: list[Numbers], code: Indices) -> None:
        if len(self._codes) > self._most:
            raise BadInput(f"{self._path}: {self.table} has too many different rows", export.LESS)
        self._numbers.append(numbers)
        self._code.append(code)

    def in_order(self) -> Rows:
        """The rows in order of start, then of end."""
        none: list[Numbers] = [np.empty(0, np.int64)] * len(self._names)
        columns = [np.concatenate(parts) for parts in zip(none, *self._numbers, strict=True)]
        code = np.concatenate([np.empty(0, np.int32), *self._code])
        numbers = dict(zip(self._names, columns, strict=True))
        order = np.lexsort((numbers["end"], numbers["start"]))
        return Rows(
            {name: column[order] for name, column in numbers.items()},
            code[order],
            tuple(self._codes),
        )


def numbered() -> defaultdict[Any, int]:
    """The index of each item, in order of appearance."""
    return defaultdict(count().__next__)


class Message(Struct, frozen=True):
    """A call of NCCL: start and end, its thread, its name or the number of that text."""

    start: int
    end: int
    thread: int
    text: str
    text_id: int | None
    payload: Payload


class Recorded(Struct, frozen=True, eq=False):
    """What a file holds: rows by table, the texts that they name by number, and facts.

    `gpus` have the values of GPU_COLUMNS, `nodes` of CUDA graphs as they were made those of
    NODE_COLUMNS; `untimed` counts rows without valid times, left out.
    """

    rows: Mapping[str, Rows]
    texts: Mapping[int, str]
    untimed: int
    gpus: Sequence[Key]
    product_version: str = ""
    schema_version: str = ""
    created: datetime | None = None
    messages: Sequence[Message] = ()
    nodes: Sequence[Key] = ()
    diagnostics: tuple[str, ...] = ()
    profiler: str = "nsys"


def text_of(value: object) -> str:
    """Of what may be no text nothing."""
    return value if isinstance(value, str) else ""
