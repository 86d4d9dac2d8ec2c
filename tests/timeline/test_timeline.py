"""Timelines made by hand or at random: what overlaps counts once, and all time is accounted for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from profkit.timeline.events import Stream
from profkit.timeline.summary import summarize_timeline
from tests.timeline.building import Range, call, copy, kernel, stream, timeline

US = 1e-6

intervals = st.tuples(st.integers(0, 10_000), st.integers(0, 3_000)).map(
    lambda pair: (pair[0] / 1_000, (pair[0] + pair[1]) / 1_000)
)
streams = st.builds(stream, st.integers(1, 4), st.integers(0, 1))


@given(
    st.lists(st.tuples(intervals, streams), max_size=12),
    st.lists(intervals, max_size=4),
    st.lists(intervals, max_size=6),
)
def test_all_time_is_accounted_for(
    kernels: list[tuple[tuple[float, float], Stream]],
    copies: list[tuple[float, float]],
    calls: list[tuple[float, float]],
) -> None:
    made = timeline(
        [kernel(*times, on=place) for times, place in kernels],
        [call(*times) for times in calls],
        [copy(*times, size=1) for times in copies],
    )
    region = summarize_timeline(made).region
    work = [times for times, _ in kernels] + copies
    events = work + calls
    span = max(end for _, end in events) - min(start for start, _ in events) if events else 0
    assert region.span == pytest.approx(span * US, abs=1e-12)
    assert region.busy + region.idle == pytest.approx(region.span, abs=1e-12)
    assert 0 <= region.busy <= region.span + 1e-12
    assert region.busy <= sum(end - start for start, end in work) * US + 1e-12
    if region.span:
        assert 0 <= region.busy_share <= 1
    else:
        assert math.isnan(region.busy_share)
    # Times are whole nanoseconds: count those in which any work ran, one by one.
    covered = set[int]()
    for start, end in work:
        covered.update(range(round(start * 1_000), round(end * 1_000)))
    assert region.busy == pytest.approx(len(covered) * 1e-9, abs=1e-12)


@given(st.lists(intervals, min_size=1, max_size=12))
def test_gaps_hold_no_work(times: list[tuple[float, float]]) -> None:
    region = summarize_timeline(timeline([kernel(*pair) for pair in times])).region
    assert region.gaps.count >= len(region.largest)
    lengths = [gap.duration for gap in region.largest]
    assert lengths == sorted(lengths, reverse=True)
    for gap in region.largest:
        middle = gap.start + gap.duration / 2
        assert gap.duration > 0
        assert any(end * US == pytest.approx(gap.start, abs=1e-12) for _, end in times)
        after = gap.start + gap.duration
        assert any(start * US == pytest.approx(after, abs=1e-12) for start, _ in times)
        assert not any(start * US < middle < end * US for start, end in times)


def test_kernels_of_several_streams_count_once() -> None:
    made = timeline(
        [kernel(0, 10, on=stream(1)), kernel(5, 15, on=stream(2)), kernel(6, 8, on=stream(3))],
        [call(0, 20, "cudaDeviceSynchronize")],
    )
    summary = summarize_timeline(made)
    assert summary.report.kernel_time == pytest.approx(22 * US)
    assert summary.region.busy == pytest.approx(15 * US)
    assert summary.region.busy_share == pytest.approx(0.75)
    assert summary.region.gaps.count == 0


def test_where_the_idle_time_is() -> None:
    made = timeline(
        [kernel(10, 20), kernel(50, 60, name="late()")],
        [call(0, 2), call(22, 32, "cudaMalloc"), call(30, 40, "cudaFree"), call(65, 70)],
        [copy(20, 25, 100)],
    )
    region = summarize_timeline(made).region
    assert (region.lead, region.tail) == pytest.approx((10 * US, 10 * US))
    assert region.busy == pytest.approx(25 * US)
    (gap,) = region.largest
    assert gap.duration == pytest.approx(25 * US)
    assert (gap.after, gap.before) == ("copy host to device", "late()")
    assert gap.call == "cudaFree"
    assert gap.in_calls == pytest.approx(15 / 25)


def test_delays_of_launches() -> None:
    made = timeline(
        [
            kernel(10, 20, launch=call(1, 6)),
            kernel(21, 30, launch=call(7, 12)),
            kernel(42, 50, launch=call(40, 45)),
            kernel(43, 44, on=stream(8)),
        ]
    )
    delays = summarize_timeline(made).delays
    assert (delays.from_call_start.count, delays.stream_gaps.count) == (3, 2)
    assert delays.from_call_start.median == pytest.approx(9 * US)
    returned = delays.after_call_return
    assert (returned.low, returned.high) == pytest.approx((-3 * US, 9 * US))
    assert (delays.stream_gaps.low, delays.stream_gaps.high) == pytest.approx((1 * US, 12 * US))
    assert delays.late == 1


def test_kernels_are_grouped_by_name_and_shape_and_by_range() -> None:
    made = timeline(
        [
            kernel(10, 14, launch=call(2, 3)),
            kernel(20, 22, launch=call(4, 5), grid=(9, 1, 1)),
            kernel(50, 52, launch=call(41, 42)),
            kernel(95, 97),
        ],
        ranges=[Range("epoch", 0, 90), Range("step", 1, 30), Range("step", 40, 80)],
    )
    summary = summarize_timeline(made)
    large, small = summary.groups
    assert (large.grid, large.count, small.count) == ((8, 1, 1), 3, 1)
    assert large.total == pytest.approx(8 * US)
    assert (large.median, large.low, large.high) == pytest.approx((2 * US, 2 * US, 4 * US))
    assert large.share == pytest.approx(0.8)
    steps, outside = summary.ranges
    assert (steps.path, outside.path) == (("epoch", "step"), ())
    assert (steps.entered, steps.launches) == (2, 3)
    assert steps.host_time == pytest.approx(69 * US)
    assert steps.share == pytest.approx(0.8)


def test_without_ranges_there_is_no_table_of_them() -> None:
    assert summarize_timeline(timeline([kernel(0, 1)])).ranges == ()


def test_copies_by_kind_and_memory() -> None:
    made = timeline(
        memory=[
            copy(0, 10, 40_000),
            copy(20, 30, 60_000),
            copy(40, 45, 1_000, source="pinned"),
            copy(50, 51, 8, kind="device to host"),
        ]
    )
    pageable, pinned, back = summarize_timeline(made).memory
    assert (pageable.kind, pageable.source, pageable.bytes) == (
        "host to device",
        "pageable",
        100_000,
    )
    assert pageable.bandwidth == pytest.approx(100_000 / (20 * US))
    assert (pinned.source, pinned.count) == ("pinned", 1)
    assert back.kind == "device to host"


def test_copies_that_overlap_move_their_bytes_in_one_time() -> None:
    made = timeline(memory=[copy(0, 10, 1_000), copy(2, 10, 1_000), copy(30, 40, 1_000)])
    (use,) = summarize_timeline(made).memory
    assert use.total == pytest.approx(28 * US)
    assert use.bandwidth == pytest.approx(3_000 / (20 * US))


def test_calls_by_name() -> None:
    made = timeline(
        [kernel(0, 1)],
        [call(0, 4), call(5, 7), call(8, 20, "cudaMalloc")],
    )
    summary = summarize_timeline(made)
    assert [(use.name, use.count) for use in summary.calls] == [
        ("cudaMalloc", 1), ("cudaLaunchKernel", 2),
    ]  # fmt: skip
    assert summary.calls[1].total == pytest.approx(6 * US)


def test_what_limits_the_reading_is_said() -> None:
    made = timeline(
        [kernel(1, 2), kernel(3, 4, launch=call(3.5, 5))],
        graphs=[(10, 20, stream(3, device=1))],
        ranges=[Range("r", 0, 1e6)],
        untimed=3,
    )
    made = replace(made, ranges=replace(made.ranges, closed=np.array([False])))
    summary = summarize_timeline(made)
    notes = "\n".join(summary.report.notes)
    for words in (
        "graphs traced as a whole: 1",
        "--cuda-graph-trace=node",
        "2 process-GPU pairs",
        "launch calls of 1 of 2",
        "1 of 2 kernels start before their launch call",
        "1 of 1 NVTX ranges have no end",
        "without valid timestamps: 3",
    ):
        assert words in notes
    assert summary.region.busy == pytest.approx(12 * US)


def test_a_timeline_without_gpu_work_is_all_idle() -> None:
    summary = summarize_timeline(timeline(calls=[call(0, 5)]))
    assert (summary.region.busy, summary.region.busy_share) == (0.0, 0.0)
    assert summary.region.idle == pytest.approx(5 * US)
    assert "memsets called: 1, recorded on the GPU: 0" in summary.report.notes[0]
    assert (
        summarize_timeline(timeline(kernels=[kernel(0, 1)]))
        .report.notes[0]
        .startswith("launch calls")
    )
