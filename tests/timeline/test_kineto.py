"""Traces of torch.profiler: what they hold, that they say what an nsys export of the program says,
and what is refused."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profkit.application.application import application_result, read_application
from profkit.application.causes import findings
from profkit.application.steps import steady_steps
from profkit.core.errors import BadInput
from profkit.rules.rule_file import shipped_rules
from profkit.timeline import trace_json
from profkit.timeline.events import (
    KernelName,
    LaunchConfiguration,
    MemoryKind,
    Stream,
    Thread,
    TimelineGpu,
)
from profkit.timeline.nesting import origins as origins_of
from profkit.timeline.reader import read
from tests.conftest import Cli, story_folder
from tests.timeline.kineto import (
    BASE,
    PID,
    START,
    call,
    kernel,
    on_host,
    span,
    steps,
    trace,
    write,
    write_trace,
)  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        "decode_text/before.nodes", "gpt_clip/before", "images_memory/before",
        "loader_hidden_copies/before", "pipeline_streams/before",
    ],
)  # fmt: skip
def test_a_trace_says_what_the_nsys_export_of_the_program_says(name: str, tmp_path: Path) -> None:
    events = read(story_folder("") / f"{name}.sqlite")
    traced = read(write_trace(events, tmp_path / "x.json.gz"))
    results = [application_result(read_application(each), "x") for each in (events, traced)]
    assert results[0] == results[1]
    texts = [
        [
            msgspec.to_builtins((item.rule.name, item.range))
            for item in findings(each, shipped_rules())
        ]
        for each in (events, traced)
    ]
    assert texts[0] == texts[1]


def test_events_are_as_written(tmp_path: Path) -> None:
    gpu = {
        "id": 0, "name": "NVIDIA H100", "totalGlobalMem": 85_000_000_000, "computeMajor": 9,
        "computeMinor": 0, "numSms": 132,
    }  # fmt: skip
    copied = {"device": 0, "context": 1, "stream": 9, "correlation": 3, "bytes": 4096}
    named = "void at::native::reduce_kernel<512, 1>(at::native::Op<float>)"
    events = read(
        write(
            tmp_path / "x.json",
            [
                on_host("user_annotation", "forward", 10, 9_000),
                call(1_000, 3_017, 2),
                on_host("cuda_driver", "cuLaunchKernelEx", 3_500, 4_000, tid=4712, correlation=4),
                kernel(5_003, 7_004, 2, named),
                kernel(9_000, 9_001, 4, "k", **{"graph node id": 8589934592}),
                span("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 8_000, 8_500, **copied),
                span("gpu_memset", "Memset (Device)", 8_600, 8_700, **copied | {"bytes": 64}),
                span("cuda_sync", "Stream Sync", 8_600, 8_800, stream=7),
                span("gpu_user_annotation", "forward", 5_003, 7_004),
                {"ph": "i", "name": "[memory]", "cat": "cpu_instant_event", "ts": 1.0},
            ],
            deviceProperties=[gpu],
        )
    )
    assert events.origin_ns == BASE + START + 10
    assert events.created == datetime.fromtimestamp(BASE / 1e9, UTC) + timedelta(
        microseconds=START // 1000
    )
    process = PID << 24
    assert events.threads == (Thread(process, PID), Thread(process, 4712))
    assert events.streams == (Stream(process, 0, 1, 7), Stream(process, 0, 1, 9))
    assert events.gpus == (TimelineGpu(0, "NVIDIA H100", (9, 0), 132, 85_000_000_000),)
    kernels, copies, calls = events.kernels, events.memory_operations, events.calls
    assert (kernels.start + 10).tolist() == [5_003, 9_000]
    assert (kernels.end + 10).tolist() == [7_004, 9_001]
    assert kernels.call.tolist() == [0, 1]
    assert kernels.graph_node.tolist() == [0, 8589934592]
    assert events.kernel_names == (KernelName(named, "reduce_kernel"), KernelName("k", "k"))
    assert events.configurations == (LaunchConfiguration((8, 2, 1), (64, 1, 1), 40, 0, 1040),)
    assert [events.memory_kinds[kind] for kind in copies.kind] == [
        MemoryKind("host to device", "pinned", "device"), MemoryKind("memset", "", ""),
    ]  # fmt: skip
    assert copies.size.tolist() == [4096, 64]
    assert [events.call_names[name] for name in calls.name] == [
        "cudaLaunchKernel", "cuLaunchKernelEx",
    ]  # fmt: skip
    assert events.range_names == ("forward",)


def test_profiler_steps_are_steps(tmp_path: Path, profkit_cli: Cli) -> None:
    path = write(tmp_path / "x.json.gz", steps(6))
    result = profkit_cli("timeline", str(path), "--format", "json")
    step = json.loads(result.stdout)
    shown = profkit_cli("timeline", str(path)).stdout
    assert '"ProfilerStep"' in shown
    assert "profile --app -- PROGRAM" in shown  # nsys records no annotations of torch
    assert step == json.loads(
        profkit_cli("timeline", str(path), "--nvtx", "ProfilerStep", "--format", "json").stdout
    )
    (found,) = steady_steps(read(path))
    assert found.wall.tolist() == [100_000] * 5
    for verb in ("analyze", "checklist"):
        profkit_cli(verb, str(path))
    log = tmp_path / "log"
    log.mkdir()
    write(log / "host_1.2.pt.trace.json.gz", steps(6))  # as tensorboard_trace_handler names it
    profkit_cli("timeline", log)
    assert "a timeline, not a report" in profkit_cli("diff", path, path, status=5).stderr


def test_a_host_that_launches_says_what_is_taken_of_its_time(
    tmp_path: Path, profkit_cli: Cli
) -> None:
    """Kernels of 10 µs, each launched 15 µs after the one before."""
    shown = profkit_cli("timeline", str(write(tmp_path / "x.json", steps(6)))).stdout
    assert "Without torch.profiler" in shown
    assert "0.65 of its time, as measured for nsys" in " ".join(shown.split())


def test_the_number_0_joins_no_call_and_no_kernel(tmp_path: Path) -> None:
    events = steps(6)
    for event in events:
        event["args"].update(correlation=0)
    unjoined = read(write(tmp_path / "x.json", events))
    assert set(unjoined.kernels.call.tolist()) == {-1}
    (found,) = steady_steps(unjoined)
    assert found.wall.tolist() == [100_000] * 5


@pytest.mark.parametrize(("count", "found"), [(1, [100_000]), (2, [100_000])])
def test_few_steps_are_not_taken_for_their_layers(
    count: int, found: list[int], tmp_path: Path
) -> None:
    """Of a repeating pattern of 24 equal layers, a step would be one layer."""
    events = steps(count, launches=0)
    for step in range(count):
        for layer in range(24):
            begin = step * 100_000 + 4_000 * layer
            for number in range(2):
                start, correlation = begin + 2_000 * number, 1 + step * 48 + 2 * layer + number
                events.append(call(start, start + 500, correlation))
                events.append(kernel(start + 1_000, start + 2_000, correlation, f"k{number}"))
    (each,) = steady_steps(read(write(tmp_path / "x.json", events)))
    assert str(each.basis) == 'range "ProfilerStep"'
    assert [round(time, -4) for time in each.wall.tolist()] == found


def test_torch_without_a_gpu_is_one_line(tmp_path: Path, profkit_cli: Cli) -> None:
    torch = pytest.importorskip("torch")
    with torch.profiler.profile(with_stack=True) as profiler:
        torch.ones(3).sum()
    profiler.export_chrome_trace(str(tmp_path / "x.json"))
    (tmp_path / "x.json.gz").write_bytes(gzip.compress((tmp_path / "x.json").read_bytes()))
    for name in ("x.json", "x.json.gz"):
        for verb in ("timeline", "analyze", "checklist"):
            result = profkit_cli(verb, str(tmp_path / name), status=5)
            (line,) = result.stderr.splitlines()
            assert "without GPU activity" in line
            assert "ProfilerActivity.CUDA" in line


def test_kernels_of_a_graph_belong_to_its_launch(tmp_path: Path) -> None:
    """Also in traces of CUDA before 12, which name no node."""
    launches = [call(1_000, 2_000, 1, "cudaGraphLaunch"), call(3_000, 4_000, 2)]
    kernels = [kernel(5_000, 6_000, 1), kernel(6_000, 7_000, 1), kernel(8_000, 9_000, 2)]
    for each in kernels:
        del each["args"]["graph node id"]
    events = read(write(tmp_path / "x.json", launches + kernels))
    assert events.kernels.call.tolist() == [0, 0, 1]
    assert (events.kernels.graph_node != 0).tolist() == [True, True, False]


def test_operators_are_told_of_kernels_and_no_steps(tmp_path: Path) -> None:
    events = steps(4)
    for step in range(4):
        begin = step * 100_000
        events.append(on_host("cpu_op", "aten::batch_norm", begin + 500, begin + 80_000))
        events.append(on_host("cpu_op", "aten::native_batch_norm", begin + 600, begin + 10_000))
    made = read(write(tmp_path / "x.json", events))
    assert made.operators.start[:2].tolist() == [500, 600]
    origins = origins_of(made, np.arange(2, dtype=np.int32))
    assert [origins.paths[path] for path in origins.path] == [
        ("ProfilerStep", "aten::batch_norm", "aten::native_batch_norm"),
        ("ProfilerStep", "aten::batch_norm"),
    ]
    (found,) = steady_steps(made)
    assert found.basis.range == "ProfilerStep"


def test_old_categories_and_times_since_1970_are_read(tmp_path: Path) -> None:
    """As torch 1.8 to 2.2 wrote them; a double would round the last to 250 ns."""
    text = """{"schemaVersion": 1, "traceEvents": [
        {"ph": "X", "cat": "Operator", "name": "ProfilerStep#1", "pid": 1, "tid": "1",
         "ts": 1713819345432123, "dur": 90, "args": {}},
        {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
         "ts": 1713819345432123, "dur": 5, "args": {"correlation": 9}},
        {"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": 7,
         "ts": 1713819345432130.123, "dur": 2.001,
         "args": {"device": 0, "stream": 7, "correlation": 9, "warps per SM": inf}}]}"""
    path = tmp_path / "x.json"
    path.write_text(text)
    events = read(path)
    assert (events.kernels.start[0], events.kernels.end[0]) == (7_123, 9_124)
    assert events.kernels.call.tolist() == [0]
    assert events.range_names == ("ProfilerStep",)
    assert events.created is not None
    assert events.created.year == 2024


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"layer_0"', '"py {"device": "cpu"}(12): run"'), ('"layer_0"', '"C:\\users\\dee"'),
        ("4.5", "nan"), ("4.5", "-inf"), ("4.5", "Infinity"),
    ],
)  # fmt: skip
def test_invalid_json_of_kineto_is_read(old: str, new: str, tmp_path: Path) -> None:
    head = (
        '{"traceEvents": [\n{"ph": "X", "cat": "kernel", "name": "layer_0", "pid": 0, "tid": 7,\n'
    )
    args = '"args": {"correlation": 1, "blocks per SM": 4.5}}'
    text = f'{head}"ts": 1.5, "dur": 2.25, {args}, {{"ph": "M"}}]}}'
    path = tmp_path / "x.json"
    path.write_text(text.replace(old, new))
    assert read(path).kernels.end.tolist() == [2250]


def test_bytes_that_are_no_text_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", [kernel(0, 5_000, 1, "k@")])
    path.write_bytes(path.read_bytes().replace(b"k@", b"k\xff"))
    assert read(path).kernel_names[0].name == "k\ufffd"


@pytest.mark.parametrize("size", [40, 100, 333, 5_000])
def test_parts_of_a_file_make_the_same_timeline(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with arguments that look like events, facts after the events and events in any order."""
    events = steps(6)
    events[3]["args"]["inputs"] = [{"ph": "X"}, {"ph": "X", "x": "}, {"}, {"traceEvents": []}]
    random.Random(5).shuffle(events)
    expected = read(write(tmp_path / "x.json", steps(6)))
    gpus = [{"id": 0, "name": "GPU"}, {"id": 1, "name": "other"}]
    text = json.dumps(trace(events) | {"deviceProperties": gpus})
    text = json.dumps({"args": {"traceEvents": [1]}})[:-1] + ", " + text[1:]
    (tmp_path / "y.json").write_text(text)
    monkeypatch.setattr(trace_json, "_PART", size)
    monkeypatch.setattr(trace_json, "_NEAR", size // 3)
    made = read(tmp_path / "y.json")
    for name in ("start", "end", "call"):
        assert getattr(made.kernels, name).tolist() == getattr(expected.kernels, name).tolist()
    names = [[each.kernel_names[name] for name in each.kernels.name] for each in (made, expected)]
    assert names[0] == names[1]
    assert [gpu.name for gpu in made.gpus] == ["GPU"]


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_a_file_that_is_cut_off_is_refused(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"x{suffix}", steps(2))
    data = path.read_bytes()
    for size in [0, 1, 2, 10, *range(20, len(data) - 3, len(data) // 40)]:
        path.write_bytes(data[:size])
        with pytest.raises(BadInput):
            read(path)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "an empty file"),
        (b"[1, 2]", "without traceEvents"),
        (b'{"a": {"traceEvents": []}}', "without traceEvents"),
        (b'{"traceEvents": []}', "without GPU activity"),
        (b'{"traceEvents": [{"ph": "X"} {"ph": "X"}]}', "not valid JSON"),
        (b'{"traceEvents": [1]}', "not valid JSON"),
        (b'{"traceEvents": ' + b"[" * 100_000, "cut off|not valid JSON"),
        (gzip.compress(b'{"traceEvents": []}')[:-9], "cut off or damaged"),
        (b"\x1f\x8b" + bytes(40), "cut off or damaged"),
        (gzip.compress(b'{"traceEvents": [' + b" " * (100 << 20), 1), "no event ends"),
    ],
)
def test_what_is_no_trace_is_refused(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    with pytest.raises(BadInput, match=words):
        read(path)


def test_traces_of_several_processes_and_of_jax_are_refused(tmp_path: Path) -> None:
    other = call(1_000, 2_000, 1) | {"pid": PID + 1}
    with pytest.raises(BadInput, match="2 processes"):
        read(write(tmp_path / "x.json", [call(0, 500, 1), other, kernel(3_000, 4_000, 1)]))
    named = {"ph": "M", "pid": 701, "name": "process_name", "args": {"name": "/device:GPU:0"}}
    with pytest.raises(BadInput, match=r"jax\.profiler"):
        read(write(tmp_path / "x.json", [named, kernel(3_000, 4_000, 1)]))


@pytest.mark.parametrize("size", [-1, 1 << 60, "many"])
def test_bytes_that_no_memory_has_are_refused(size: object, tmp_path: Path) -> None:
    copied = span("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 0, 10, bytes=size)
    with pytest.raises(BadInput, match="bytes"):
        read(write(tmp_path / "x.json", [copied]))


@pytest.mark.parametrize(
    "times",
    [{"ts": None}, {"ts": "1 s"}, {"dur": "nan"}, {"dur": -1.5}, {"dur": None}],
)
def test_events_without_times_are_counted(times: dict[str, object], tmp_path: Path) -> None:
    events = read(write(tmp_path / "x.json", [*steps(2), kernel(0, 10, 1) | times]))
    assert len(events.kernels) == 10
    assert events.untimed == 1


@pytest.mark.parametrize("field", ["ts", "dur"])
def test_a_trace_without_any_valid_time_is_not_said_to_lack_gpu_activity(
    field: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "x.json", [kernel(0, 10, 1) | {field: "soon"}] * 3)
    with pytest.raises(BadInput, match=r"no valid time \(ts, dur\) of 3 events on the GPU"):
        read(path)


def as_texts(text: str) -> bytes:
    return re.sub(r'"(ts|dur)": ([0-9.]+)', r'"\1": "\2"', text).encode()


def as_array(text: str) -> bytes:
    return json.dumps(json.loads(text)["traceEvents"]).encode()


@pytest.mark.parametrize("form", [as_texts, as_array, lambda text: b"\xef\xbb\xbf" + text.encode()])
def test_other_forms_of_the_same_trace_are_read(
    form: Callable[[str], bytes], tmp_path: Path, profkit_cli: Cli
) -> None:
    path = write(tmp_path / "x.json", steps(6), baseTimeNanoseconds=0)
    expected = read(path)
    path.write_bytes(form(path.read_text()))
    made = read(path)
    for name in ("start", "end", "call"):
        assert getattr(made.kernels, name).tolist() == getattr(expected.kernels, name).tolist()
    assert made.untimed == 0
    assert profkit_cli("timeline", path).exit_code == 0


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_trace_of_another_encoding_is_refused(encoding: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", steps(2))
    path.write_bytes(path.read_text().encode(encoding))
    with pytest.raises(BadInput, match="a text of UTF-16 or UTF-32, not UTF-8"):
        read(path)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_fields_of_any_type_are_read_or_refused(data: st.DataObject, tmp_path: Path) -> None:
    """And other events stay what they are."""
    spoiled = data.draw(st.sampled_from(steps(1)))
    fields = spoiled if data.draw(st.booleans()) else spoiled["args"]
    if fields:
        fields[data.draw(st.sampled_from(sorted(fields)))] = data.draw(ANYTHING)
    try:
        events = read(write(tmp_path / "x.json", [*steps(3), spoiled]))
    except BadInput:
        return
    assert len(events.kernels) in {15, 16}


def test_groups_name_the_operators_that_launch_them(tmp_path: Path, profkit_cli: Cli) -> None:
    """In a graph, those that are around its capture."""
    events = steps(6)
    for step in range(6):
        begin = step * 100_000
        events.append(on_host("cpu_op", "aten::layer", begin + 500, begin + 90_000))
    path = write(tmp_path / "x.json", events)
    result = profkit_cli("timeline", path, "--format", "json")
    (group,) = json.loads(result.stdout)["groups"]
    assert [caller["name"] for caller in group["callers"]] == ["aten::layer"]
