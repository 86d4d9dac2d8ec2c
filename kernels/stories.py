"""The known stories of targets/apps/stories.yaml, and their recordings cut to some steps."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml
import zstandard

from profkit.core.errors import BadInput

APPLICATIONS = Path("targets/apps")
SIDES = ("before", "after")
STEP = "step"
MOST_STEPS = 8  # of a trimmed timeline, chosen: a median of 7 step times is steady
FEWEST_STEPS = 3  # the fewest with a step that has neighbors on both sides
SIDE_BYTES = 50_000
"""Of a trimmed timeline, compressed: 28 stories of two sides are then below 3 MiB."""
_LEVEL = 19  # of zstd
_PROCESS = ~0xFFFFFF  # of nsys's globalTid, which ends in 24 bits of the thread
_WORK = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
)
_WAITS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
_CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
_RANGES = "NVTX_EVENTS"


class Story(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program's two sides; see the comment of stories.yaml."""

    name: str
    program: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    causes: tuple[str, ...]
    fix: str
    about: str
    arguments: tuple[str, ...] = ()
    complete: bool = False
    control: bool = False
    nodes: bool = False
    whole: bool = False
    gpus: int = 1
    steps: int = 14
    kernels: str = ""


def stories(file: Path = APPLICATIONS / "stories.yaml") -> tuple[Story, ...]:
    """All stories; raises BadInput where the file has another form."""
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
        return msgspec.convert(data["stories"], tuple[Story, ...])
    except (OSError, yaml.YAMLError, KeyError, TypeError, msgspec.ValidationError) as error:
        raise BadInput(f"{file}: {error}", "compare it with the comment at its top") from None


@dataclass(frozen=True)
class Window:
    """A stretch of one process on the recording's clock, in ns."""

    process: int
    start: int
    end: int


def windows(database: sqlite3.Connection, side: int | None, steps: int) -> tuple[Window, ...]:
    """The last but one `steps` steps of a side in each process; none where it has too few."""
    spans = dict[int, tuple[int, int]]()
    if side == 0:  # nsys may have lost its range, the first of the process
        spans = {process: (0, start) for process, start, _ in _ranges(database, "side 1")}
    if side is not None:
        for process, start, end in _ranges(database, f"side {side}"):
            spans[process] = start, end
    begins = dict[int, list[int]]()
    for process, start, _ in _ranges(database, STEP):
        first, last = spans.get(process, (0, 0)) if side is not None else (0, start + 1)
        if first <= start < last:
            begins.setdefault(process, []).append(start)
    return tuple(
        Window(process, starts[-steps - 1], starts[-1])
        for process, starts in sorted(begins.items())
        if len(starts) > steps
    )


def _ranges(database: sqlite3.Connection, name: str) -> list[tuple[int, int, int]]:
    query = f"""SELECT globalTid & {_PROCESS}, start, coalesce("end", start) FROM {_RANGES}
        WHERE coalesce(text, (SELECT value FROM StringIds WHERE id = textId)) = ? ORDER BY start"""
    return database.execute(query, (name,)).fetchall()


def trim(export: Path, target: Path, side: int | None, steps: int) -> bool:
    """Write some steps of an export, as `trim_to`."""
    return trim_to(export, target, lambda database: windows(database, side, steps))


def trim_to(
    export: Path, target: Path, parts_of: Callable[[sqlite3.Connection], tuple[Window, ...]]
) -> bool:
    """Write parts of an export: their calls, the GPU work that these submitted, their ranges.

    False, and no file, where there are none.
    """
    target.unlink(missing_ok=True)
    with closing(sqlite3.connect(target, isolation_level=None)) as new:
        new.execute("ATTACH ? AS old", (f"file:{export.resolve()}?mode=ro",))
        new.execute("PRAGMA journal_mode = OFF")
        tables = dict(new.execute("SELECT name, sql FROM old.sqlite_master WHERE sql <> ''"))
        for name, sql in tables.items():
            new.execute(sql)
            new.execute(f"INSERT INTO main.{name} SELECT * FROM old.{name}")
        new.execute("DETACH old")
        parts = parts_of(new)
        if parts:
            _cut(new, tables, parts)
    if not parts:
        target.unlink()
    return bool(parts)


def _cut(new: sqlite3.Connection, tables: dict[str, Any], parts: tuple[Window, ...]) -> None:
    new.execute("CREATE TEMP TABLE part (process INTEGER, first INTEGER, last INTEGER)")
    rows = [(part.process, part.start, part.end) for part in parts]
    new.executemany("INSERT INTO part VALUES (?, ?, ?)", rows)
    inside = """NOT EXISTS (SELECT 1 FROM part WHERE part.process = {process}
        AND start >= part.first AND start < part.last)"""
    for table, process in (
        (_CALLS, f"globalTid & {_PROCESS}"),
        (_RANGES, f"globalTid & {_PROCESS}"),
        (_WAITS, "globalPid"),
    ):
        if table in tables:
            new.execute(f"DELETE FROM {table} WHERE {inside.format(process=process)}")
    new.execute(
        f"""CREATE TEMP TABLE submitted AS SELECT DISTINCT globalTid & {_PROCESS} AS process,
        correlationId AS id FROM {_CALLS}"""
    )
    new.execute("CREATE INDEX temp.by_id ON submitted (id, process)")
    for table in set(_WORK) & tables.keys():
        new.execute(
            f"""DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM submitted
            WHERE id = correlationId AND process = globalPid)"""
        )
    used = []
    for table, columns in (
        ("CUPTI_ACTIVITY_KIND_KERNEL", ("demangledName", "shortName", "mangledName")),
        (_CALLS, ("nameId",)),
        (_RANGES, ("textId",)),
    ):
        if table in tables:
            present = {row[1] for row in new.execute(f"PRAGMA main.table_info({table})")}
            used += [f"SELECT {column} FROM {table}" for column in columns if column in present]
    new.execute(f"DELETE FROM StringIds WHERE id NOT IN ({' UNION '.join(used)})")
    new.execute("VACUUM")


def trimmed(export: Path, target: Path, side: int | None, limit: int = SIDE_BYTES) -> int:
    """Write as many steps as fit into `limit` bytes as `target`, a .sqlite.zst; their number."""
    plain = target.with_suffix("")
    for steps in range(MOST_STEPS, FEWEST_STEPS - 1, -1):
        if trim(export, plain, side, steps):
            packed = zstandard.ZstdCompressor(level=_LEVEL).compress(plain.read_bytes())
            plain.unlink()
            if len(packed) <= limit or steps == FEWEST_STEPS:
                target.write_bytes(packed)
                return steps
    return 0
