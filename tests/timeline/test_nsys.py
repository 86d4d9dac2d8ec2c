"""Exports made by hand: what belongs to what, what schemas lack, and what scrubbing leaves."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from profkit.core.errors import BadInput
from profkit.timeline import nesting
from profkit.timeline.events import (
    Events,
    Intervals,
    KernelName,
    LaunchConfiguration,
    MemoryKind,
    Stream,
    Thread,
)  # fmt: skip
from profkit.timeline.nesting import MOST_AROUND, Nesting
from profkit.timeline.reader import read
from profkit.timeline.redaction import scrub
from tests.conftest import H200, NIGHTLY

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]
FLASH = H200 / "sdpa_s512_flash.sqlite"
SECRET = "hunter2-of-ann-at-buildhost"

STRINGS = {1: "void k<int>(int *)", 2: "k", 3: "_Z1kIiEvPi", 4: "cudaLaunchKernel_v7000", 5: "step"}
STRINGS |= {6: "cuMemcpyHtoDAsync_v2", 7: "cudaMemsetAsync_v3020"}
PROCESS, OTHER = 446 << 24, 500 << 24


def export(path: Path, tables: Tables) -> Path:
    """An SQLite file with these tables; columns are the keys of a table's first row."""
    with closing(sqlite3.connect(path)) as database:
        for table, rows in tables.items():
            columns = ", ".join(f'"{column}"' for column in rows[0])
            marks = ", ".join("?" for _ in rows[0])
            database.execute(f"CREATE TABLE {table} ({columns})")
            database.executemany(
                f"INSERT INTO {table} VALUES ({marks})", [tuple(row.values()) for row in rows]
            )
        database.commit()
    return path


def strings(more: Mapping[int, str] | None = None) -> list[Row]:
    return [{"id": key, "value": text} for key, text in (STRINGS | dict(more or {})).items()]


def kernel(start: int, end: int, correlation: int, process: int = PROCESS) -> Row:
    sizes = {"gridX": 8, "gridY": 2, "gridZ": 1, "blockX": 64, "blockY": 1, "blockZ": 1}
    names = {"demangledName": 1, "shortName": 2, "mangledName": 3}
    place = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": process}
    more = {"registersPerThread": 40, "staticSharedMemory": 16, "dynamicSharedMemory": 1024}
    ids = {"correlationId": correlation}
    return {"start": start, "end": end, **place, **ids, **names, **sizes, **more}


def call(
    start: int, end: int, correlation: int, thread: int = 446, process: int = PROCESS, name: int = 4
) -> Row:
    ids = {"globalTid": process | thread, "correlationId": correlation, "nameId": name}
    return {"start": start, "end": end, **ids}


def nvtx(
    start: int, end: int | None, text: str | None, *, kind: int = 59, thread: int = 446,
    process: int = PROCESS, text_id: int | None = None,
) -> Row:  # fmt: skip
    ids = {"eventType": kind, "globalTid": process | thread}
    return {"start": start, "end": end, **ids, "text": text, "textId": text_id}


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Events]:
    """Read an export of these kernels, calls and other tables."""

    def make(
        kernels: Sequence[Row] = (), calls: Sequence[Row] = (), ranges: Sequence[Row] = (),
        **others: Sequence[Row],
    ) -> Events:  # fmt: skip
        tables = {
            "StringIds": strings(),
            "CUPTI_ACTIVITY_KIND_KERNEL": kernels,
            "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
            "NVTX_EVENTS": ranges,
            **others,
        }
        return read(
            export(tmp_path / "made.sqlite", {k: rows for k, rows in tables.items() if rows})
        )

    return make


def nested(timeline: Events) -> Nesting:
    return nesting.around(timeline, timeline.kernels.call)


def around(timeline: Events) -> list[list[str]]:
    made = nested(timeline)
    return [list(made.paths[path]) for path in made.path]


def test_a_kernel_as_recorded(made: Callable[..., Events]) -> None:
    timeline = made([kernel(2_000, 5_000, 9)], [call(1_000, 1_500, 9)])
    kernels, calls = timeline.kernels, timeline.calls
    assert timeline.origin_ns == 1_000
    assert (kernels.start.tolist(), kernels.end.tolist()) == ([1_000], [4_000])
    (place,) = kernels.name
    assert timeline.kernel_names[place] == KernelName("void k<int>(int *)", "k")
    (place,) = kernels.configuration
    assert timeline.configurations[place] == LaunchConfiguration(
        (8, 2, 1), (64, 1, 1), registers=40, shared_static=16, shared_dynamic=1024
    )
    assert timeline.streams == (Stream(PROCESS, 0, 1, 7),)
    assert kernels.graph_node.tolist() == [0]
    assert kernels.call.tolist() == [0]
    assert [timeline.call_names[name] for name in calls.name] == ["cudaLaunchKernel"]
    assert (calls.end - calls.start).tolist() == [500]
    assert [timeline.threads[thread] for thread in calls.thread] == [Thread(PROCESS, 446)]
    assert (timeline.product_version, timeline.created, timeline.gpus) == ("", None, ())


def test_ranges_count_around_the_launch_not_around_the_kernel(
    made: Callable[..., Events],
) -> None:
    timeline = made(
        [kernel(500, 900, 1), kernel(1_000, 1_100, 2)],
        [call(100, 120, 1), call(300, 320, 2)],
        [nvtx(50, 200, "launched here"), nvtx(450, 1_200, "runs here")],
    )
    assert around(timeline) == [["launched here"], []]


def test_ranges_nest_outermost_first_and_must_enclose_the_whole_call(
    made: Callable[..., Events],
) -> None:
    timeline = made(
        [kernel(500, 900, 1)],
        [call(100, 120, 1)],
        [
            nvtx(90, 130, "inner"),
            nvtx(10, 400, None, text_id=5),
            nvtx(20, 110, "ends within the call"),
            nvtx(105, 300, "begins within the call"),
            nvtx(95, 99, "over before it"),
            nvtx(100, 120, "just it"),
        ],
    )
    assert around(timeline) == [["step", "inner", "just it"]]


_TIMES = st.tuples(st.integers(1, 60), st.integers(0, 60)).map(lambda t: (t[0], t[0] + t[1]))


@given(
    ranges=st.lists(st.tuples(_TIMES, st.sampled_from([59, 60])), max_size=30),
    calls=st.lists(_TIMES, min_size=1, max_size=10),
)
def test_ranges_around_a_call_are_those_that_enclose_it(
    tmp_path_factory: pytest.TempPathFactory,
    ranges: list[tuple[tuple[int, int], int]],
    calls: list[tuple[int, int]],
) -> None:
    path = tmp_path_factory.mktemp("ranges") / "made.sqlite"
    tables = {
        "StringIds": strings(),
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(500 + n, 600, n) for n in range(len(calls))],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [call(*times, n) for n, times in enumerate(calls)],
        "NVTX_EVENTS": [nvtx(*times, f"{n}", kind=kind) for n, (times, kind) in enumerate(ranges)],
    }
    timeline = read(export(path, {name: rows for name, rows in tables.items() if rows}))
    for names, (start, end) in zip(around(timeline), calls, strict=True):
        enclosing = sorted(
            (begin, -last, kind, n)
            for n, ((begin, last), kind) in enumerate(ranges)
            if begin <= start and end <= last
        )
        assert names == [f"{n}" for *_, n in enclosing][-MOST_AROUND:]


@pytest.mark.parametrize("end", [10**9, None])
def test_many_ranges_around_many_calls_take_no_time_of_their_product(
    made: Callable[..., Events], end: int | None
) -> None:
    """Each call used to hold every range around it: 5.4 GB for 40,000 of each."""
    count = 5000
    timeline = made(
        [kernel(10 * n + 108, 10 * n + 109, n) for n in range(count)],
        [call(10 * n + 105, 10 * n + 108, n) for n in range(count)],
        [nvtx(10 * n + 100, end, f"{n}", kind=60) for n in range(count)],
    )
    nests = nested(timeline)
    assert nests.innermost.tolist() == list(range(count))
    assert [nests.paths[path][-1] for path in nests.path] == [f"{n}" for n in range(count)]
    assert max(map(len, nests.paths)) <= MOST_AROUND


def test_pushed_ranges_belong_to_their_thread_started_ones_to_their_process(
    made: Callable[..., Events],
) -> None:
    timeline = made(
        [kernel(500, 900, 1), kernel(500, 900, 2)],
        [call(100, 120, 1, thread=446), call(100, 120, 2, thread=447)],
        [
            nvtx(0, 200, "thread 446"),
            nvtx(10, 200, "process", kind=60, thread=448),
            nvtx(20, 200, "other process", kind=60, process=OTHER),
            nvtx(30, 200, "a mark", kind=34),
        ],
    )
    assert around(timeline) == [["thread 446", "process"], ["process"]]


def test_the_same_correlation_number_in_two_processes(made: Callable[..., Events]) -> None:
    timeline = made(
        [kernel(500, 900, 1), kernel(950, 990, 1, OTHER)],
        [call(100, 120, 1), call(300, 330, 1, 500, OTHER)],
        [nvtx(90, 200, "first"), nvtx(290, 400, "second", thread=500, process=OTHER)],
    )
    assert around(timeline) == [["first"], ["second"]]
    assert timeline.calls.start[timeline.kernels.call].tolist() == [10, 210]


def test_a_range_that_never_ends_lasts_to_the_end(made: Callable[..., Events]) -> None:
    timeline = made(
        [kernel(500, 900, 1)], [call(100, 120, 1)], [nvtx(50, None, "open"), nvtx(60, 200, "x")]
    )
    assert around(timeline) == [["open", "x"]]
    ranges = timeline.ranges
    assert [timeline.range_names[name] for name in ranges.name] == ["open", "x"]
    assert ranges.closed.tolist() == [False, True]
    assert (ranges.end - ranges.start).tolist() == [850, 140]


def test_copies_fills_and_graphs(made: Callable[..., Events]) -> None:
    place = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": PROCESS}
    copy = {"start": 200, "end": 300, **place, "correlationId": 1, "bytes": 4096, "copyKind": 1}
    timeline = made(
        [],
        [call(100, 120, 1, name=6), call(130, 140, 2, name=7)],
        CUPTI_ACTIVITY_KIND_MEMCPY=[copy | {"srcKind": 0, "dstKind": 2}],
        CUPTI_ACTIVITY_KIND_MEMSET=[
            {"start": 150, "end": 180, **place, "correlationId": 2, "bytes": 64, "memKind": 2}
        ],
        CUPTI_ACTIVITY_KIND_GRAPH_TRACE=[
            {"start": 400, "end": 500, **place, "correlationId": 3, "graphId": 1}
        ],
    )
    memory, graphs = timeline.memory_operations, timeline.graphs
    assert [timeline.memory_kinds[kind] for kind in memory.kind] == [
        MemoryKind("memset", "", ""), MemoryKind("host to device", "pageable", "device"),
    ]  # fmt: skip
    assert memory.size.tolist() == [64, 4096]
    assert (memory.end - memory.start).tolist() == [30, 100]
    names = timeline.calls.name[memory.call]
    assert [timeline.call_names[name] for name in names] == [
        "cudaMemsetAsync", "cuMemcpyHtoDAsync_v2",
    ]  # fmt: skip
    assert ((graphs.end - graphs.start).tolist(), graphs.graph.tolist()) == ([100], [1])


def test_columns_that_another_schema_lacks_are_unknown(made: Callable[..., Events]) -> None:
    timeline = made(
        [{"start": 500, "end": 900, "correlationId": 1, "shortName": 2}],
        [{"start": 100, "end": 120, "correlationId": 1}],
        TARGET_INFO_GPU=[{"name": "NVIDIA H200"}],
        TARGET_INFO_SESSION_START_TIME=[{"utcTime": "2026-11-20T09:33:39"}],
        META_DATA_EXPORT=[{"name": "EXPORT_SCHEMA_VERSION", "value": "9.1"}],
    )
    assert timeline.kernel_names == (KernelName("k", "k"),)
    assert timeline.configurations == (LaunchConfiguration((0, 0, 0), (0, 0, 0), 0, 0, 0),)
    assert timeline.kernels.call.tolist() == [0]
    assert timeline.schema_version == "9.1"
    assert [(gpu.name, gpu.sm_count) for gpu in timeline.gpus] == [("NVIDIA H200", 0)]


def test_events_without_valid_times_are_left_out_and_counted(made: Callable[..., Events]) -> None:
    timeline = made(
        [kernel(500, 900, 1), kernel(0, 0, 2), kernel(700, 0, 3), kernel(9, 8, 4)],
        [call(100, 120, 1), {**call(1, 1, 2), "start": None}],
    )
    assert (len(timeline.kernels), len(timeline.calls), timeline.untimed) == (1, 1, 4)
    assert timeline.origin_ns == 100


def test_kernels_of_a_graph_name_their_node(made: Callable[..., Events]) -> None:
    nodes: list[Row] = [{**kernel(5, 9, 1), "graphNodeId": 1 << 40}]
    nodes += [{**kernel(10, 12, 1), "graphNodeId": None}]
    assert made(nodes).kernels.graph_node.tolist() == [1 << 40, 0]


def test_kernels_of_a_graph_are_of_the_ranges_around_their_capture(
    made: Callable[..., Events],
) -> None:
    """Node 21 of the executable graph is a copy of 11, which the second call made and which was
    destroyed later; 22 is of none that is known."""
    calls = [call(10, 20, 1), call(30, 40, 2), call(50, 60, 3)]
    ranges = [nvtx(5, 45, "capture"), nvtx(29, 41, "layer"), nvtx(49, 70, "step")]
    kernels: list[Row] = [
        {**kernel(70 + node, 71 + node, 3), "graphNodeId": node or None} for node in (21, 22, 0)
    ]
    nodes: list[tuple[int, int, int | None]] = [(80, 11, None), (15, 10, None), (35, 11, None)]
    nodes += [(46, 20, 10), (46, 21, 11), (47, 22, 12)]
    table = [
        {"start": time, "globalTid": PROCESS | 446, "graphNodeId": node, "originalGraphNodeId": of}
        for time, node, of in nodes
    ]
    timeline = made(kernels, calls, ranges, CUDA_GRAPH_NODE_EVENTS=table)
    assert timeline.kernels.graph_node.tolist() == [0, 21, 22]
    assert timeline.captures.tolist() == [-1, 1, -1]
    origins = nesting.origins(timeline, np.arange(3, dtype=np.int32))
    named = [origins.paths[path] for path in origins.path]
    assert named == [("step",), ("capture", "layer"), ("step",)]
    assert around(timeline) == [["step"]] * 3
    scrub(timeline.path)
    assert same(read(timeline.path), timeline)


def test_a_text_among_numbers_is_unknown(made: Callable[..., Events]) -> None:
    timeline = made([{**kernel(5, 9, 1), "gridX": "text"}, kernel(10, 12, 1), kernel(10, 12, 1)])
    assert [shape.grid for shape in timeline.configurations] == [(0, 2, 1), (8, 2, 1)]
    assert timeline.kernels.configuration.tolist() == [0, 1, 1]


@pytest.mark.skipif(not NIGHTLY, reason="takes 10 s: make test-nightly")
def test_too_many_launch_configurations_are_refused(tmp_path: Path) -> None:
    tables = {"StringIds": strings(), "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(1, 2, 1)]}
    path = export(tmp_path / "many.sqlite", tables)
    with closing(sqlite3.connect(path)) as database:
        row: Row = {**kernel(1, 2, 1), "gridX": "n"}
        values = ", ".join(map(str, row.values()))
        database.execute(
            "WITH t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 1100000) "
            f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT {values} FROM t"
        )
        database.commit()
    assert "too many different rows" in refused(path)


def test_a_missing_name_is_said(made: Callable[..., Events]) -> None:
    timeline = made(
        [{**kernel(1, 2, 1), "demangledName": 90, "shortName": 91, "mangledName": None}]
    )
    assert timeline.kernel_names[0].name == "(name not in the export)"


def same(one: Any, other: Any) -> bool:
    """Whether events are equal, arrays element by element."""
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if not isinstance(one, (Events, Intervals)):
        return bool(one == other)
    names = one.__struct_fields__
    return all(same(getattr(one, name), getattr(other, name)) for name in names)


def refused(path: Path) -> str:
    with pytest.raises(BadInput) as caught:
        read(path)
    assert caught.value.exit_code == 5
    assert caught.value.remedy
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def test_what_is_no_export_is_refused_in_one_line(tmp_path: Path) -> None:
    def file(name: str, data: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    assert "no such file" in refused(tmp_path / "none.sqlite")
    assert "a directory" in refused(tmp_path)
    assert "empty file" in refused(file("empty.sqlite", b""))
    assert "not an SQLite file" in refused(file("text.sqlite", b"kernel,time\n"))
    assert "git lfs pull" in refused(file("lfs.sqlite", b"version https://git-lfs.github.com/spec"))
    assert "nsys export --type sqlite" in refused(file("x.nsys-rep", b"PK\3\4"))
    assert "not an SQLite file" in refused(H200 / "known.ncu-repz")
    other = export(tmp_path / "other.sqlite", {"songs": [{"title": "x"}]})
    assert "not an nsys export" in refused(other)


def test_an_export_without_events_is_refused(tmp_path: Path) -> None:
    path = export(
        tmp_path / "none.sqlite",
        {"StringIds": strings(), "META_DATA_EXPORT": [{"name": "x", "value": "y"}]},
    )
    assert "neither CUDA activity" in refused(path)


def test_a_table_without_times_is_refused(tmp_path: Path) -> None:
    path = export(
        tmp_path / "new.sqlite",
        {"StringIds": strings(), "CUPTI_ACTIVITY_KIND_KERNEL": [{"begin": 1, "end": 2}]},
    )
    assert "has no column start" in refused(path)


@pytest.mark.parametrize("kept", [100, 4096, 60_000, 110_000])
def test_an_export_cut_short_is_damaged(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "cut.sqlite"
    path.write_bytes(FLASH.read_bytes()[:kept])
    assert "damaged" in refused(path)


def test_flipped_bytes_never_end_in_a_traceback(tmp_path: Path) -> None:
    path = tmp_path / "flipped.sqlite"
    whole = FLASH.read_bytes()
    chance = random.Random(7)
    refusals = 0
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(40):
            data[chance.randrange(16, len(data))] = chance.randrange(256)
        path.write_bytes(data)
        try:
            read(path)
        except BadInput:
            refusals += 1
    assert refusals > 30


def test_reading_leaves_the_file_and_its_folder_alone(tmp_path: Path) -> None:
    path = tmp_path / "a #1?.sqlite"
    shutil.copy(FLASH, path)
    path.chmod(0o400)
    before = path.read_bytes()
    assert len(read(path).kernels) == 5
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def private(tmp_path: Path) -> Path:
    """A real export with a secret in every table and place that a capture could have it in."""
    path = tmp_path / "private.sqlite"
    shutil.copy(FLASH, path)
    with closing(sqlite3.connect(path)) as database:
        for table, columns in {
            "META_DATA_CAPTURE": "name TEXT, value TEXT",
            "TARGET_INFO_SYSTEM_ENV": "globalVid INTEGER, devStateName TEXT, name TEXT, value TEXT",
            "TARGET_INFO_SESSION": "hostName TEXT, userName TEXT",
            "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
            "ThreadNames": "nameId INTEGER, priority INTEGER, globalTid INTEGER",
            "DIAGNOSTIC_EVENT": "timestamp INTEGER, text TEXT",
            "PROCESS_STREAMS": "globalPid INTEGER, filenameId INTEGER, contentId INTEGER",
            "TABLE_OF_A_LATER_VERSION": "anything BLOB",
        }.items():
            count = columns.count(",") + 1
            marks = ", ".join("?" for _ in range(count))
            database.execute(f"CREATE TABLE {table} ({columns})")
            for name in ("PROCESS_0:ENVIRONMENT_VARIABLE", SECRET, f"TOKEN={SECRET}"):
                database.execute(
                    f"INSERT INTO {table} VALUES ({marks})", [name, *[SECRET] * (count - 1)]
                )
        database.execute(f"INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_HOST', '{SECRET}')")
        database.execute(f"INSERT INTO StringIds VALUES (90001, '/home/{SECRET}/train.py')")
        database.execute("INSERT INTO ThreadNames VALUES (90001, 0, 1)")
        database.execute(f"UPDATE TARGET_INFO_GPU SET uuid = '{SECRET}', ctxswDevPath = '{SECRET}'")
        database.execute(f"UPDATE TARGET_INFO_SESSION_START_TIME SET localTime = '{SECRET}'")
        database.execute(f"UPDATE NVTX_EVENTS SET jsonText = '{SECRET}', jsonTextId = 90001")
        database.execute(
            "INSERT INTO NVTX_EVENTS (start, eventType, text, globalTid) VALUES (?, 34, ?, ?)",
            (3569797042, SECRET, 281482459349438),
        )
        database.execute(f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET cacheConfig = '{SECRET}'")
        database.execute(f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET launchType = '{SECRET}'")
        database.execute(f"CREATE VIEW leak AS SELECT '{SECRET}' AS value")
        database.execute(f"CREATE TABLE gone AS SELECT '{SECRET}' || value AS value FROM StringIds")
        database.commit()
        database.execute("PRAGMA secure_delete = OFF")
        database.execute("DROP TABLE gone")
        database.commit()
    return path


def test_scrubbing_leaves_no_byte_of_what_is_private(tmp_path: Path) -> None:
    path = private(tmp_path)
    path.chmod(0o640)
    assert path.read_bytes().count(SECRET.encode()) > 500
    for suffix in ("-shm", "-journal-of-another"):
        path.with_name(path.name + suffix).write_text(SECRET)
    before = read(path)
    scrub(path)
    data = path.read_bytes()
    assert SECRET.encode() not in data
    assert SECRET.encode("utf-16-le") not in data
    for trace in (b"vsock", b"dlopen(", b"PyObject_", b"1312d340", b"0000:00:06.0", b"pthread_"):
        assert trace not in data
    assert same(read(path), before)
    assert path.stat().st_mode & 0o777 == 0o640
    assert {item.name for item in tmp_path.iterdir()} == {
        path.name, f"{path.name}-journal-of-another",
    }  # fmt: skip


def test_scrubbing_keeps_only_strings_that_something_names(tmp_path: Path) -> None:
    path = private(tmp_path)
    scrub(path)
    with closing(sqlite3.connect(path)) as database:
        kept = {name for (name,) in database.execute("SELECT value FROM StringIds")}
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    timeline = read(path)
    assert {item.name for item in timeline.kernel_names} <= kept
    assert len(kept) == 17
    assert {name for name in tables if not name.startswith(("ENUM_", "CUPTI_ACTIVITY_"))} == {
        "META_DATA_EXPORT",
        "NVTX_EVENTS",
        "StringIds",
        "TARGET_INFO_GPU",
        "TARGET_INFO_SESSION_START_TIME",
    }


def test_scrubbing_twice_changes_nothing_more(tmp_path: Path) -> None:
    path = private(tmp_path)
    scrub(path)
    once = read(path)
    size = path.stat().st_size
    scrub(path)
    assert same(read(path), once)
    assert path.stat().st_size == size


def test_scrubbing_through_a_link_changes_the_file_it_names(tmp_path: Path) -> None:
    path = private(tmp_path)
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    scrub(link)
    assert link.is_symlink()
    assert SECRET.encode() not in path.read_bytes()


def test_what_waits_in_a_write_ahead_log_is_scrubbed_too(tmp_path: Path) -> None:
    path = private(tmp_path)
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute(f"INSERT INTO META_DATA_CAPTURE VALUES ('wal', '{SECRET}')")
    writer.commit()
    copied = tmp_path / "copied.sqlite"
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{copied}{suffix}")
    writer.close()
    expected = replace(read(path), path=copied)
    scrub(copied)
    left = [item for item in tmp_path.iterdir() if item.name.startswith("copied")]
    assert left == [copied]
    assert SECRET.encode() not in copied.read_bytes()
    assert same(read(copied), expected)


def test_what_is_no_export_is_not_scrubbed(tmp_path: Path) -> None:
    path = export(tmp_path / "songs.sqlite", {"songs": [{"title": "x"}]})
    before = path.read_bytes()
    with pytest.raises(BadInput):
        scrub(path)
    with pytest.raises(BadInput, match="no such file"):
        scrub(tmp_path / "none.sqlite")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_log_is_refused_and_an_export_with_an_empty_one_leaves_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "a.sqlite"
    shutil.copy(FLASH, path)
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("INSERT INTO META_DATA_EXPORT VALUES ('x', 'y')")
        writer.commit()
        assert "is still in a.sqlite-wal" in refused(path)
    assert list(folder.iterdir()) == [path]
    assert same(read(path), replace(read(FLASH), path=path))
    assert list(folder.iterdir()) == [path]


@pytest.mark.parametrize("wrong", ["text", "12", b"12", 12.5, float("nan"), -(1 << 63), None])
@pytest.mark.parametrize("column", ["start", "end"])
def test_a_time_that_is_none_is_no_time(
    made: Callable[..., Events], column: str, wrong: Any
) -> None:
    timeline = made(
        [kernel(500, 900, 1), {**kernel(500, 900, 2), column: wrong}],
        ranges=[nvtx(100, 900, "a"), {**nvtx(100, 900, "b"), column: wrong}],
    )
    assert timeline.kernels.start.tolist() == [400]
    never_ended = column == "end" and (wrong is None or wrong != wrong)  # NaN is NULL in SQLite
    assert (len(timeline.ranges), timeline.untimed) == ((2, 1) if never_ended else (1, 2))


@pytest.mark.parametrize("start", [-(1 << 62), 0, 900])
def test_times_that_are_far_apart_are_refused(tmp_path: Path, start: int) -> None:
    rows = [kernel(start, 900, 1), kernel(5, 1 << 62, 2)]
    tables = {"StringIds": strings(), "CUPTI_ACTIVITY_KIND_KERNEL": rows}
    assert "days apart, at most 104" in refused(export(tmp_path / "far.sqlite", tables))


@pytest.mark.parametrize("wrong", [-1, 1 << 62, None, "text", 1.5])
def test_copies_of_bytes_that_are_none_are_refused(tmp_path: Path, wrong: object) -> None:
    copy: Row = {"start": 1, "end": 9, "deviceId": 0, "bytes": wrong, "copyKind": 1}
    tables = {"StringIds": strings(), "CUPTI_ACTIVITY_KIND_MEMCPY": [copy]}
    assert "for the bytes of a row" in refused(export(tmp_path / "copies.sqlite", tables))


def test_numbers_of_a_gpu_that_no_gpu_has_are_unknown(made: Callable[..., Events]) -> None:
    gpu = {"id": 0, "name": "X", "smCount": -4, "totalMemory": "much", "computeMajor": 9}
    timeline = made([kernel(5, 9, 1)], TARGET_INFO_GPU=[gpu | {"computeMinor": None}])
    assert [(each.sm_count, each.memory_bytes) for each in timeline.gpus] == [(0, 0)]


def test_an_index_is_not_used(tmp_path: Path) -> None:
    """SQLite takes a damaged index for the table."""
    tables = {"StringIds": strings(), "NVTX_EVENTS": [nvtx(5, 123_456, "r")]}
    path = export(tmp_path / "index.sqlite", tables)
    columns = "eventType, globalTid, start, end, text, textId"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"CREATE INDEX i ON NVTX_EVENTS ({columns})")
        database.commit()
        ((root,),) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'i'")
        ((size,),) = database.execute("PRAGMA page_size")
    data = bytearray(path.read_bytes())
    data[data.index((123_456).to_bytes(3, "big"), (root - 1) * size) + 2] += 1
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as database:
        ((end,),) = database.execute("SELECT end FROM NVTX_EVENTS WHERE eventType = 59")
    assert end == 123_457
    assert read(path).ranges.end.tolist() == [123_451]
