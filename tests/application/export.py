"""Writes `Events` as an nsys SQLite export, with the columns that profkit reads."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from profkit.core.yaml_files import shipped_yaml
from profkit.timeline.events import Events

_START = 1_000_000_000  # ns, of the first event after the start of the session
_PUSH_POP = 59  # NvtxPushPopRange
_TABLES = {
    "StringIds": "id INTEGER PRIMARY KEY, value TEXT",
    "META_DATA_EXPORT": "name TEXT, value TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER",
    "TARGET_INFO_GPU": "id INTEGER, cuDevice INTEGER, name TEXT, smCount INTEGER, "
    "totalMemory INTEGER, computeMajor INTEGER, computeMinor INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER, end INTEGER, globalTid INTEGER, "
    "correlationId INTEGER, nameId INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER, end INTEGER, deviceId INTEGER, "
    "contextId INTEGER, streamId INTEGER, globalPid INTEGER, correlationId INTEGER, "
    "demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, "
    "blockX INTEGER, blockY INTEGER, blockZ INTEGER, registersPerThread INTEGER, "
    "staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start INTEGER, end INTEGER, deviceId INTEGER, "
    "contextId INTEGER, streamId INTEGER, globalPid INTEGER, correlationId INTEGER, "
    "copyKind INTEGER, srcKind INTEGER, dstKind INTEGER, bytes INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMSET": "start INTEGER, end INTEGER, deviceId INTEGER, "
    "contextId INTEGER, streamId INTEGER, globalPid INTEGER, correlationId INTEGER, bytes INTEGER",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "start INTEGER, end INTEGER, deviceId INTEGER, "
    "contextId INTEGER, streamId INTEGER, globalPid INTEGER, correlationId INTEGER, "
    "graphId INTEGER",
    "NVTX_EVENTS": "start INTEGER, end INTEGER, eventType INTEGER, globalTid INTEGER, "
    "text TEXT, textId INTEGER",
}


def write_export(events: Events, path: Path) -> Path:
    """Write a timeline; it replaces what is there."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        for table, columns in _TABLES.items():
            database.execute(f"CREATE TABLE {table} ({columns})")
        for table, rows in _rows(events).items():
            width = len(_TABLES[table].split(","))
            places = ", ".join("?" * width)
            database.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
    return path


class _Strings(dict[str, int]):
    """The numbers of texts."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self) + 1
        return self[text]


def _rows(events: Events) -> dict[str, Iterable[Sequence[Any]]]:
    names = _Strings()
    exported = shipped_yaml("profkit.timeline", "export.yaml")
    kinds = {text: number for number, text in exported["copy_kinds"].items()}
    memories = {text: number for number, text in exported["memory_kinds"].items()}

    def place(stream: int, call: int, number: int) -> list[int]:
        row = events.streams[stream]
        unknown = 1_000_000 + number
        correlation = unknown if call < 0 else call + 1
        return [row.device, row.context, row.number, row.process << 24, correlation]

    def thread(number: int, process: int = 0) -> int:
        if number < 0:
            return process << 24
        row = events.threads[number]
        return row.process << 24 | row.number

    def spans(table: Any, *columns: str) -> Iterable[list[int]]:
        values = [getattr(table, name).tolist() for name in ("start", "end", *columns)]
        for start, end, *row in zip(*values, strict=True):
            yield [start + _START, end + _START, *row]

    kernels: list[list[Any]] = []
    for start, end, stream, call, name, shape, node in spans(
        events.kernels, "stream", "call", "name", "configuration", "graph_node"
    ):
        named, configuration = events.kernel_names[name], events.configurations[shape]
        kernels.append([
            start, end, *place(stream, call, len(kernels)), names[named.name], names[named.label],
            *configuration.grid, *configuration.block, configuration.registers,
            configuration.shared_static, configuration.shared_dynamic, node or None,
        ])  # fmt: skip
    copies: list[list[Any]] = []
    fills: list[list[Any]] = []
    for start, end, stream, call, kind, size in spans(
        events.memory_operations, "stream", "call", "kind", "size"
    ):
        memory = events.memory_kinds[kind]
        where = place(stream, call, 500_000 + len(copies))
        if memory.kind == "memset":
            fills.append([start, end, *where, size])
        else:
            ends = [memories.get(memory.source), memories.get(memory.target)]
            copies.append([start, end, *where, kinds[memory.kind], *ends, size])
    graphs = [
        [start, end, *place(stream, call, 800_000 + number), graph]
        for number, (start, end, stream, call, graph) in enumerate(
            spans(events.graphs, "stream", "call", "graph")
        )
    ]
    calls = [
        [start, end, thread(where), number, names[events.call_names[name]]]
        for number, (start, end, name, where) in enumerate(spans(events.calls, "name", "thread"), 1)
    ]
    ranges = [
        [start, end, _PUSH_POP, thread(where, process), events.range_names[name], None]
        for start, end, name, where, process in spans(events.ranges, "name", "thread", "process")
    ]
    gpus = [
        [gpu.device, gpu.device, gpu.name, gpu.sm_count, gpu.memory_bytes, *gpu.cc]
        for gpu in events.gpus
    ]
    return {
        "CUPTI_ACTIVITY_KIND_KERNEL": kernels,
        "CUPTI_ACTIVITY_KIND_MEMCPY": copies,
        "CUPTI_ACTIVITY_KIND_MEMSET": fills,
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": graphs,
        "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
        "NVTX_EVENTS": ranges,
        "TARGET_INFO_GPU": gpus,
        "META_DATA_EXPORT": [
            ("EXPORT_PRODUCT_VERSION", events.product_version),
            ("EXPORT_SCHEMA_VERSION", events.schema_version),
        ],
        "StringIds": [(number, text) for text, number in names.items()],
    }
