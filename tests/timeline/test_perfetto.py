"""Perfetto traces, read with the package's own definitions."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from profkit.core import extras
from profkit.core.errors import EnvironmentProblem
from profkit.timeline.events import Events
from profkit.timeline.perfetto import write
from profkit.timeline.reader import read
from tests.application.synthetic import Host, Recording, training
from tests.conftest import H200
from tests.timeline.building import Range, kernel, stream, timeline

RUN = H200 / "sdpa_s512" / "20261122T101047Z-5b8ba1" / "timeline.sqlite"
BEGIN, END, INSTANT = 1, 2, 3


@dataclass
class Slice:
    name: str
    start: int
    end: int
    flows: list[int]
    ended_flows: list[int]


@dataclass
class Track:
    path: tuple[str, ...]
    slices: list[Slice] = field(default_factory=list)


def packets(data: bytes) -> Iterator[Any]:
    for packet in protos.Trace.FromString(data).packet:
        if packet.compressed_packets:
            yield from packets(zlib.decompress(packet.compressed_packets))
        else:
            yield packet


def tracks(path: Path) -> list[Track]:
    """Tracks with their slices, as a trace processor makes them: an end closes the last begin."""
    named: dict[int, Track] = {}
    states: dict[int, Any] = {}
    opened: dict[int, list[Slice]] = {}
    for packet in packets(path.read_bytes()):
        sequence = packet.trusted_packet_sequence_id
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            name = (
                descriptor.name or descriptor.process.process_name or descriptor.thread.thread_name
            )
            parent = descriptor.parent_uuid
            above = named[parent].path if parent else ()
            named[descriptor.uuid] = Track((*above, name))
        elif packet.sequence_flags == packet.SEQ_INCREMENTAL_STATE_CLEARED:
            states[sequence] = packet
            opened[sequence] = []
        else:
            assert packet.sequence_flags == packet.SEQ_NEEDS_INCREMENTAL_STATE
            event, state = packet.track_event, states[sequence]
            track = named[state.trace_packet_defaults.track_event_defaults.track_uuid]
            if event.type == END:
                opened[sequence].pop().end = packet.timestamp
                continue
            made = _slice(packet, state.interned_data)
            track.slices.append(made)
            if event.type == BEGIN:
                opened[sequence].append(made)
    assert not any(opened.values())
    return list(named.values())


def _slice(packet: Any, interned: Any) -> Slice:
    event = packet.track_event
    names = {each.iid: each.name for each in interned.event_names}
    return Slice(
        names[event.name_iid],
        packet.timestamp,
        packet.timestamp,
        list(event.flow_ids),
        list(event.terminating_flow_ids),
    )


def written(
    tmp_path: Path, events: Events, steps: Sequence[tuple[str, int, int]] = ()
) -> list[Track]:
    path = tmp_path / "x.pftrace"
    write(events, path, steps=steps)
    return tracks(path)


def slices(made: list[Track], name: str) -> list[Slice]:
    """All slices of tracks whose name begins so, in order."""
    found = [each for track in made if track.path[-1].startswith(name) for each in track.slices]
    return sorted(found, key=lambda each: (each.start, each.end))


@pytest.mark.parametrize("path", [H200 / "sdpa_s512_flash.sqlite", RUN], ids=["export", "run"])
def test_a_recorded_timeline_is_there_whole(tmp_path: Path, path: Path) -> None:
    events = read(path)
    made = written(tmp_path, events)
    kernels, calls, ranges = events.kernels, events.calls, events.ranges
    found = [each for track in made if track.path[-1] == "Stream 7" for each in track.slices]
    assert [each.name for each in found] == [events.kernel_names[n].label for n in kernels.name]
    assert [each.start for each in found] == kernels.start.tolist()
    assert [each.end for each in found] == kernels.end.tolist()
    submitting = slices(made, "CUDA calls")
    assert len(submitting) == len(calls)
    assert [each.start for each in submitting] == calls.start.tolist()
    assert sorted(each.name for each in submitting) == sorted(
        events.call_names[name] for name in calls.name
    )
    assert [(each.name, each.start, each.end) for each in slices(made, "NVTX")] == [
        (events.range_names[name], start, end)
        for name, start, end in zip(
            ranges.name.tolist(), ranges.start.tolist(), ranges.end.tolist(), strict=True
        )
    ]


def test_a_flow_joins_a_call_with_the_kernel_that_it_launched(tmp_path: Path) -> None:
    events = training(steps=3)
    made = written(tmp_path, events, [("step 0", 0, 5), ("step 1", 5, 9)])
    begun = {flow: each for each in slices(made, "CUDA calls") for flow in each.flows}
    kernels = [each for track in made if track.path[-1] == "Stream 7" for each in track.slices]
    assert len(kernels) == len(events.kernels)
    assert len(begun) == len(events.kernels) + len(events.memory_operations)
    for each in kernels:
        (flow,) = each.ended_flows
        assert begun[flow].name == "cudaLaunchKernel"
        assert begun[flow].start <= each.start
    (moved, *_) = slices(made, "Stream 7 memory")
    assert moved.name == "host to device, pageable"
    assert [(each.name, each.start, each.end) for each in slices(made, "Steps")] == [
        ("step 0", 0, 5), ("step 1", 5, 9),
    ]  # fmt: skip
    paths = {track.path for track in made}
    assert ("GPU 0 NVIDIA H200", "Stream 7") in paths


def test_a_graph_of_many_kernels_is_joined_with_its_first(tmp_path: Path) -> None:
    recording = Recording()
    host = Host(recording)
    call = host.call("cudaGraphLaunch", 4_000)
    for n in range(3):
        recording.kernel(f"k{n}()", 10_000 + 100 * n, 10_100 + 100 * n, call, host.stream())
    made = written(tmp_path, recording.events())
    assert [len(each.ended_flows) for each in slices(made, "Stream 7")] == [1, 0, 0]
    host.launch_graph(5, 1_000)
    made = written(tmp_path, recording.events())
    assert [each.name for each in slices(made, "Stream 7 graphs")] == ["CUDA graph 5"]


def test_threads_and_ranges_of_several_processes(tmp_path: Path) -> None:
    recording = Recording()
    for number in (1, 2):
        process = number << 24
        host = Host(recording, process=process, number=number + 10)
        with host.range(f"step of {number}"):
            host.launch("k()", 1_000)
    events = recording.events()
    whole = np.array([-1, 1], np.int32)
    events = replace(events, ranges=replace(events.ranges, thread=whole))
    made = {track.path: [each.name for each in track.slices] for track in written(tmp_path, events)}
    assert made["Process 1", "NVTX start/end"] == ["step of 1"]
    assert made["Thread 12", "NVTX"] == ["step of 2"]
    assert made["Thread 11", "CUDA calls"] == made["Thread 12", "CUDA calls"]
    for number in (1, 2):
        assert made[f"GPU 0 NVIDIA H200 of process {number}", "Stream 7"] == ["k"]


@given(
    times=st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 12), st.sampled_from(["a()", "b()", "c()"])),
        max_size=25,
    )
)
def test_slices_that_overlap_keep_their_times(
    tmp_path_factory: pytest.TempPathFactory, times: list[tuple[int, int, str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "overlap.pftrace"
    items = [
        kernel(begin / 1000, (begin + size) / 1000, name=name, on=stream(3))
        for begin, size, name in times
    ]
    write(timeline(items), path)
    found = [(each.name, each.start, each.end) for each in slices(tracks(path), "Stream 3")]
    assert sorted(found) == sorted((name[0], begin, begin + size) for begin, size, name in times)


def test_times_and_names_of_any_size(tmp_path: Path) -> None:
    recording = Recording()
    place, thread = recording.stream(), recording.thread()
    for n in range(300):
        start = n * 2**50
        call = recording.call(f"call {n}", start, start + 1, thread)
        recording.kernel(f"k{n}()", start + 2, start + 2**49, call, place)
    recording.kernel("odd\udc80()", 2**60, 2**60 + 1, -1, place)
    found = slices(written(tmp_path, recording.events()), "Stream 7")
    assert [each.name for each in found][-2:] == ["k299", "odd?"]
    assert [each.start for each in found[:300]] == [n * 2**50 + 2 for n in range(300)]
    assert [each.end for each in found[:300]] == [n * 2**50 + 2**49 for n in range(300)]
    assert all(each.ended_flows for each in found[:300])


def test_a_long_timeline_is_small(tmp_path: Path) -> None:
    recording = Recording()
    host = Host(recording)
    for n in range(20_000):
        host.launch(f"kernel_{n % 50}(float*)", 3_000)
    events = recording.events()
    made = written(tmp_path, events)
    assert len(slices(made, "Stream 7")) == len(slices(made, "CUDA calls")) == 20_000
    assert (tmp_path / "x.pftrace").stat().st_size < 20 * 2 * 20_000


def test_what_can_not_be_written_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = timeline([kernel(0, 1)])
    with pytest.raises(FileNotFoundError):
        write(events, tmp_path / "none" / "x.pftrace")
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    with pytest.raises(EnvironmentProblem, match="requires perfetto") as refused:
        write(events, tmp_path / "x.pftrace")
    assert "pip install perfetto" in refused.value.remedy
    assert not list(tmp_path.iterdir())


def work(tmp_path: Path, count: int) -> int:
    """Calls of functions while a trace of crossing ranges is written."""
    events = timeline([kernel(0, 1)], ranges=[Range("r", n, n + count) for n in range(count)])
    total = 0

    def called(frame: Any, event: str, argument: Any) -> None:  # noqa: ARG001
        nonlocal total
        total += 1

    sys.setprofile(called)
    try:
        write(events, tmp_path / "x.pftrace")
    finally:
        sys.setprofile(None)
    return total


def test_work_grows_with_crossing_ranges_not_with_their_square(tmp_path: Path) -> None:
    work(tmp_path, 10)  # imports
    assert work(tmp_path, 1600) < 5 * work(tmp_path, 400)
