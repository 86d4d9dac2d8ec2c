"""Parts of a step: they sum to its wall time, and known parts are given back."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from profkit.application.application import read_application, table
from profkit.application.drawing import view_data
from profkit.application.parts import StepParts, step_parts
from profkit.application.ranking import ranking
from profkit.application.steps import BasisKind, StepBasis, Steps, steady_steps
from profkit.application.view import application_document
from profkit.timeline import intervals
from profkit.timeline.events import Events, KernelName, MemoryKind
from profkit.ui.markdown import document_markdown
from tests.application.synthetic import DEVICE, MS, PAGEABLE, PINNED, US, Host, Recording, training


def only(events: Events) -> StepParts:
    steps = steady_steps(events)
    assert len(steps) == 1
    return step_parts(events, steps[0])


def medians(parts: StepParts) -> dict[tuple[str, str], float]:
    """µs per step of each part that has time."""
    return {
        (part.group, part.name): float(np.median(part.times)) / US
        for part in parts.parts
        if part.times.any()
    }


def hidden(parts: StepParts, name: str) -> float:
    return next(float(np.median(part.hidden)) / US for part in parts.parts if part.name == name)


def test_a_training_step_has_its_parts() -> None:
    assert medians(only(training(host_time=3 * MS))) == {
        ("kernels", "GEMM, BF16"): 720,
        ("kernels", "attention"): 240,
        ("kernels", "norm"): 60,
        ("kernels", "optimizer"): 40,
        ("copies", "host to device, pageable"): 30,
        ("idle", "host code without CUDA calls"): 3000,
        ("idle", "launch-bound"): 5,  # from the first launch call to its kernel
        ("idle", "in copy calls"): 5,
    }


def test_gaps_before_work_without_a_recorded_call_have_no_cause() -> None:
    events = training(host_time=3 * MS)
    (steps,) = steady_steps(events)
    unknown = np.full(len(events.kernels), -1, dtype=np.int32)
    copies = replace(events.memory_operations, call=unknown[: len(events.memory_operations)])
    events = replace(
        events, kernels=replace(events.kernels, call=unknown), memory_operations=copies
    )
    parts = step_parts(events, steps)
    assert {name for group, name in medians(parts) if group == "idle"} == {"unknown cause"}
    assert np.sum([part.times for part in parts.parts], axis=0) == pytest.approx(parts.wall)


def launching(kernel_time: int, *, wait: bool = False) -> Events:
    """Kernels that are shorter than the launch of the next one."""
    host = Host(Recording())
    for _ in range(20):
        host.copy(2 * US, 64, source=PINNED)
        for name in "abcdefgh":
            host.compute(6 * US)
            host.launch(f"{name}()", kernel_time)
            if wait:
                host.synchronize("cudaDeviceSynchronize")
    return host.recording.events()


def test_short_kernels_are_launch_bound() -> None:
    parts = medians(only(launching(3 * US)))
    assert parts["idle", "launch-bound"] == 8 * 7 + 1  # 10 µs a launch, less 3 of the kernel
    assert parts["idle", "in copy calls"] == 1
    assert sum(parts.values()) == 8 * 10 + 4


def test_long_kernels_hide_their_launches() -> None:
    assert not any(group == "idle" for group, _ in medians(only(launching(30 * US))))


def test_idle_time_after_a_wait_is_that_of_the_synchronization() -> None:
    parts = medians(only(launching(30 * US, wait=True)))
    assert parts["idle", "after a synchronization"] >= 7 * 10
    assert ("idle", "launch-bound") not in parts or parts["idle", "launch-bound"] < 15


@pytest.mark.parametrize("api", ["cuda", "hip"])
def test_allocation_is_told_apart(api: str) -> None:
    host = Host(Recording())
    for _ in range(20):
        host.call(f"{api}Malloc", 400 * US)
        host.launch("a()", 20 * US)
        host.launch("b()", 20 * US)
        host.call(f"{api}Free", 100 * US)
        host.call("cudaHostRegister", 60 * US)
    parts = medians(only(host.recording.events()))
    assert parts["idle", "memory allocation"] == pytest.approx(400 + 100, abs=45)
    assert parts["idle", "other CUDA calls"] == pytest.approx(60, abs=45)


def communicating(overlap: bool) -> Events:
    host = Host(Recording())
    for _ in range(12):
        host.copy(5 * US, 64, source=PINNED)
        _, done = host.launch("backward()", 400 * US)
        begin = done - 300 * US if overlap else done
        host.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(T)", 200 * US, stream=20, after=begin)
        reduced = host.free[host.stream(20)]
        host.launch("adam_kernel()", 50 * US, after=reduced)
        host.synchronize()
    return host.recording.events()


def test_exposed_communication_is_a_part() -> None:
    parts = only(communicating(overlap=False))
    assert medians(parts)["communication", "all-reduce"] == 200
    assert hidden(parts, "all-reduce") == 0


def test_overlapped_communication_is_hidden() -> None:
    parts = only(communicating(overlap=True))
    assert ("communication", "all-reduce") not in medians(parts)
    assert hidden(parts, "all-reduce") == 200


def test_a_rank_that_waits_for_another_is_told_apart() -> None:
    recording = Recording()
    hosts = [Host(recording, process=rank + 1, device=rank) for rank in range(2)]
    for _ in range(12):
        for rank, host in enumerate(hosts):
            host.launch("backward()", (300 + 100 * rank) * US)
        ready = [host.free[host.stream()] for host in hosts]
        for host, own in zip(hosts, ready, strict=True):
            time = max(ready) - own + 50 * US
            host.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(T)", time)
            host.synchronize()
        for host in hosts:
            host.now = max(other.now for other in hosts)
    events = recording.events()
    ranks = [step_parts(events, steps) for steps in steady_steps(events)]
    first, second = map(medians, ranks)
    assert first["communication", "waiting for another rank"] == 100
    assert first["communication", "all-reduce"] == 50
    assert hidden(ranks[0], "all-reduce") == 0
    assert ("communication", "waiting for another rank") not in second


def test_ranks_that_never_meet_do_not_wait_for_each_other() -> None:
    """Two communicators of two ranks each, of which the second exchanges 400 µs later."""
    recording = Recording()
    for rank in range(4):
        host = Host(recording, process=rank + 1, device=rank, now=(400 * US if rank > 1 else 0))
        for _ in range(12):
            host.launch("backward()", 100 * US)
            host.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(T)", 200 * US)
            host.synchronize()
            host.compute(600 * US)
    application = read_application(recording.events())
    first = medians(application.processes[0].parts)
    assert first["communication", "all-reduce"] == 200
    assert ("communication", "waiting for another rank") not in first
    notes = document_markdown(application_document(application, "x.sqlite"))
    assert "its time has waits for ranks whose start is not known" in notes


def test_a_gpu_that_two_processes_share_is_not_idle_by_the_host() -> None:
    """Each has its kernel of 500 µs run while that of the other waits."""
    recording = Recording()
    for process in (1, 2):
        host = Host(recording, process=process)
        for step in range(12):
            host.now = step * MS
            with host.range("step"):
                begin = host.now + (process - 1) * 500 * US
                host.launch("kernel()", 490 * US, after=begin + 10 * US)
    application = read_application(recording.events())
    second = medians(application.processes[1].parts)
    assert second["idle", "between queued work"] == pytest.approx(500, abs=10)
    assert second.get(("idle", "launch-bound"), 0) < 15
    notes = document_markdown(application_document(application, "x.sqlite"))
    assert "other processes keep GPU 0 busy in 49.0% of the time" in notes


def test_launches_shorter_than_the_timer_tells_are_counted() -> None:
    host = Host(Recording())
    for _ in range(12):
        host.launch("long()", 100 * US)
        for number in range(4):
            host.launch("short()", number % 2)
    events = host.recording.events()
    uses = ranking(events, only(events)).kernels
    assert [use.launches for use in uses] == [11, 44]


def test_a_stream_that_waits_for_an_event_is_no_synchronization_of_the_host() -> None:
    host = Host(Recording())
    for _ in range(12):
        for name in "abcdefgh":
            host.launch(f"{name}()", 2 * US)
            host.call("cuStreamWaitEvent", 2 * US)
            host.compute(30 * US)
        host.compute(20 * US)
    parts = medians(only(host.recording.events()))
    assert parts["idle", "launch-bound"] >= 8 * 25
    assert ("idle", "after a synchronization") not in parts


def test_kernels_that_overlap_share_the_time() -> None:
    host = Host(Recording())
    for _ in range(12):
        host.launch("gemm()", 200 * US)
        host.launch("softmax()", 100 * US, stream=8)
        host.synchronize()
        host.compute(500 * US)
    parts = only(host.recording.events())
    shared = medians(parts)
    assert shared["kernels", "softmax"] == 50
    assert shared["kernels", "GEMM"] == 150
    assert hidden(parts, "softmax") == 50


def wild(seed: int) -> Events:
    """Work of all kinds on several streams with random times, submitted by two threads."""
    source = random.Random(seed)
    recording = Recording()
    streams = [recording.stream(number=number) for number in (7, 8, 9)]
    threads = [recording.thread(number=number) for number in (1, 2)]
    kinds = [
        MemoryKind("host to device", PAGEABLE, DEVICE),
        MemoryKind("device to host", DEVICE, PINNED),
        MemoryKind("memset", "", DEVICE),
    ]
    names = ["gemm()", "softmax()", "ncclDevKernel_AllReduce(T)", "ncclDevKernel_Broadcast(T)"]
    now = 0
    for _ in range(60):
        now += source.randrange(60 * US)
        name = source.choice(["cudaLaunchKernel", "cudaMalloc", "cudaStreamSynchronize", "cuX"])
        call = recording.call(name, now, now + source.randrange(1, 40 * US), source.choice(threads))
        call = -1 if source.random() < 0.1 else call
        start = now + source.randrange(90 * US)
        end, stream = start + source.randrange(80 * US), source.choice(streams)
        if source.random() < 0.6:
            recording.kernel(source.choice(names), start, end, call, stream)
        elif source.random() < 0.8:
            recording.copy(source.choice(kinds), 100, start, end, call, stream)
        else:
            recording.graph(1, start, end, call, stream)
    return recording.events()


def cut(events: Events, seed: int) -> Steps:
    """Steps at random times."""
    source = random.Random(seed)
    last = int(max(events.kernels.end.max(), 1))
    bounds = np.array(sorted(source.sample(range(last), 5)), dtype=np.int64)
    typical = np.array([source.random() < 0.8 for _ in range(4)])
    typical[0] = True
    return Steps(1, 0, bounds, bounds, typical, StepBasis(BasisKind.whole))


@settings(max_examples=2 * settings().max_examples)
@given(seed=st.integers(0, 10**9))
def test_parts_sum_to_the_wall_time(seed: int) -> None:
    events = wild(seed)
    parts = step_parts(events, cut(events, seed))
    total = np.sum([part.times for part in parts.parts], axis=0)
    assert total == pytest.approx(parts.wall, abs=1e-3)
    assert all((part.times >= -1e-3).all() for part in parts.parts)
    assert all((part.hidden >= -1e-3).all() for part in parts.parts)


@given(seed=st.integers(0, 10**9))
def test_any_timeline_has_a_table(seed: int) -> None:
    application = read_application(wild(seed))
    process = application.processes[0]
    rows = table(process)
    assert sum(row.share for row in rows[:-1] if row.depth == 0) == pytest.approx(1)
    assert view_data(application).tracks


@given(seed=st.integers(0, 10**9))
def test_chunks_change_nothing(seed: int) -> None:
    events = wild(seed)
    steps = cut(events, seed)
    whole = step_parts(events, steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("profkit.application.parts.MOST_WORK", 1)
        chunked = step_parts(events, steps)
    groups = {(part.group, part.name): part.times for part in whole.parts if part.group != "idle"}
    for part in chunked.parts:
        if part.group != "idle":  # the usual delay of a launch is that of the chunk
            assert part.times == pytest.approx(groups[part.group, part.name], abs=1e-3)
    assert chunked.kernel_time == pytest.approx(whole.kernel_time, abs=1e-3)


@given(seed=st.integers(0, 10**9))
def test_names_that_mean_nothing_change_nothing(seed: int) -> None:
    events = wild(seed)
    steps = cut(events, seed)
    order = list(range(len(events.kernel_names)))
    random.Random(seed).shuffle(order)
    places = np.argsort(order)
    kernels = replace(events.kernels, name=places[events.kernels.name].astype(np.int32))
    names = tuple(events.kernel_names[number] for number in order)
    renumbered = replace(events, kernels=kernels, kernel_names=names)
    first, second = step_parts(events, steps), step_parts(renumbered, steps)
    assert medians(first) == medians(second)


@settings(max_examples=2 * settings().max_examples)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=12),
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=12),
)
def test_covers_are_sets_of_times(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    def times(pairs: list[tuple[int, int]]) -> set[int]:
        return {time for start, length in pairs for time in range(start, start + length)}

    def cover(pairs: list[tuple[int, int]]) -> intervals.Cover:
        rows = sorted((start, start + length) for start, length in pairs)
        start = np.array([row[0] for row in rows], dtype=np.int64)
        return intervals.union(start, np.array([row[1] for row in rows], dtype=np.int64))

    def elements(cover: intervals.Cover) -> set[int]:
        return {time for start, end in zip(*cover, strict=True) for time in range(start, end)}

    a, b = cover(first), cover(second)
    assert elements(intervals.either(a, b)) == times(first) | times(second)
    assert elements(intervals.common(a, b)) == times(first) & times(second)
    assert elements(intervals.without(a, b)) == times(first) - times(second)
    moments = np.arange(90, dtype=np.int64)
    below = [sum(time < moment for time in times(first)) for moment in range(90)]
    assert intervals.covered(a, moments).tolist() == below


def test_ranking_names_launches_that_represent_kernels() -> None:
    events = training(nvtx="step")
    parts = only(events)
    ranked = ranking(events, parts, 0.9)
    names = [events.kernel_names[use.name].name for use in ranked.kernels]
    assert names[0] == "sm90_xmma_gemm_bf16_backward(Params)"
    assert ranked.explained == pytest.approx((480 + 240 + 240) / 1060)
    first = ranked.picks[0]
    assert first.share == pytest.approx(480 / 1100)
    assert first.nvtx == ("step",)
    launches = [events.kernel_names[name].name for name in events.kernels.name]
    assert launches[first.launch_index] == names[0]
    assert launches[: first.launch_index].count(names[0]) == first.skip
    assert len(ranking(events, parts, 0.4).picks) == 1  # most of the largest group


def test_a_kernel_of_several_shapes_has_two_picks() -> None:
    host = Host(Recording())
    for _ in range(12):
        host.copy(5 * US, 64)
        host.launch("gemm()", 200 * US, grid=(64, 1, 1))
        host.launch("gemm()", 150 * US, grid=(32, 1, 1))
        host.launch("gemm()", 10 * US, grid=(16, 1, 1))
        host.launch("ncclDevKernel_AllReduce(T)", 500 * US)
    events = host.recording.events()
    picks = ranking(events, only(events)).picks
    grids = [events.configurations[pick.configuration].grid[0] for pick in picks]
    assert grids == [64, 32]  # and no collective
    assert all(isinstance(name, KernelName) for name in events.kernel_names)
