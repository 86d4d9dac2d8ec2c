"""Bus bandwidth of collectives, by the formulas of NCCL's tests."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from profkit.application.collectives import Exchange, exchanges
from profkit.application.parts import step_parts
from profkit.application.steps import steady_steps
from profkit.timeline.events import Events, Messages
from profkit.timeline.reader import read
from tests.application.synthetic import MS, US, Host, Recording
from tests.conftest import Cli, story_folder
from tests.timeline import payloads

STEPS = 6
SIZE = 100_000_000  # bytes
TIME = 500 * US


def recorded(
    kernel: str,
    calls: Sequence[str],
    ranks: int = 2,
    told: int = 0,
    late: int = 0,
    pairs: bool = False,
) -> Events:
    """Ranks that compute and exchange; a step launches the kernel after these calls as a group, or
    in the last one. `told` ranks are the communicator's; rank 1 is `late`, or with a communicator
    for each of two `pairs` the second pair."""
    recording = Recording()
    messages: list[tuple[int, int, str, int]] = []
    communicators: dict[int, int] = {}
    for rank in range(ranks):
        host = Host(recording, process=rank + 1, device=rank, number=100 + rank)
        own = late if rank >= 1 + pairs else 0
        communicators[host.thread] = 1 + (rank // 2 if pairs else 0)
        for step in range(STEPS):
            host.now = (2 * step + 1) * MS
            begin = host.now + 400 * US
            with host.range("step"):
                host.launch("gemm()", 300 * US)
                host.compute(own)
                for number, name in enumerate(calls, 1):
                    called = host.now
                    with host.range(name):
                        host.compute(10 * US)
                        if number == len(calls):
                            call = host.call("cudaLaunchKernelExC", 5 * US)
                            stream = recording.stream(rank + 1, rank, 9)
                            end = begin + (own if pairs else late) + TIME
                            recording.kernel(kernel, begin + own, end, call, stream)
                    messages.append((called, host.now, name, host.thread))
    events = recording.events()
    messages.sort()
    return replace(
        events,
        messages=Messages(
            np.array([row[0] for row in messages]),
            np.array([row[1] for row in messages]),
            name=np.array([events.range_names.index(row[2]) for row in messages], np.int32),
            thread=np.array([row[3] for row in messages], np.int32),
            size=np.full(len(messages), SIZE),
            ranks=np.full(len(messages), told),
            communicator=np.array([communicators[row[3]] for row in messages]),
        ),
    )


def only(events: Events) -> Exchange:
    (exchange,) = exchanges(events, steady_steps(events)[0]).values()
    return exchange


@pytest.mark.parametrize(
    ("kernel", "call", "ranks", "factor"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", "ncclAllReduce", 2, 1.0),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", "ncclAllReduce", 4, 1.5),
        ("ncclDevKernel_AllGather_RING_LL()", "ncclAllGather", 4, 3.0),  # the call names one rank's
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL()", "ncclReduceScatter", 4, 3.0),
        ("ncclDevKernel_Broadcast_RING_LL()", "ncclBroadcast", 4, 1.0),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL()", "ncclReduce", 4, 1.0),
    ],
)
def test_the_bus_bandwidth_is_that_of_nccls_tests(
    kernel: str, call: str, ranks: int, factor: float
) -> None:
    exchange = only(recorded(kernel, [call], ranks))
    assert exchange.ranks == ranks
    assert exchange.size == SIZE
    assert exchange.bandwidth == pytest.approx(factor * SIZE / (TIME / 1e9), rel=0.05)
    assert exchange.link == 450e9  # half of 900 GB/s, which counts both directions
    assert not exchange.waits


def test_the_wait_for_a_late_rank_is_no_transfer() -> None:
    """Its kernels of 500 µs run for 800 µs on the rank that comes first."""
    exchange = only(recorded("ncclDevKernel_AllReduce_Sum()", ["ncclAllReduce"], late=300 * US))
    assert exchange.bandwidth == pytest.approx(SIZE / (TIME / 1e9), rel=0.05)


def test_ranks_of_another_communicator_are_not_awaited() -> None:
    """Two pairs, whose exchanges overlap in time."""
    events = recorded(
        "ncclDevKernel_AllReduce_Sum()", ["ncclAllReduce"], 4, told=2, late=300 * US, pairs=True
    )
    exchange = only(events)
    assert exchange.bandwidth == pytest.approx(SIZE / (TIME / 1e9), rel=0.05)
    assert not exchange.waits
    parts = step_parts(events, steady_steps(events)[0])
    assert "waiting for another rank" not in {part.name for part in parts.parts}


@pytest.mark.parametrize(
    ("kernel", "call"),
    [
        ("ncclDevKernel_Broadcast_RING_LL()", "ncclBroadcast"),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL()", "ncclReduce"),
        ("ncclDevKernel_SendRecv()", "ncclSend"),
    ],
)
def test_a_sender_that_ends_before_the_receiver_starts_tells_no_bandwidth(
    kernel: str, call: str
) -> None:
    """It left the data in a buffer: over a loopback its own time gave 43 GB/s."""
    events = recorded(kernel, [call])
    kernels = events.kernels
    second = np.array([stream.device for stream in events.streams])[kernels.stream] == 1
    start = kernels.start + np.where(second, TIME + 100 * US, 0)
    end = kernels.end + np.where(second, TIME + 100 * US, 0)
    exchange = only(replace(events, kernels=replace(kernels, start=start, end=end)))
    assert math.isnan(exchange.bandwidth)
    assert "before the others have its data" in exchange.reason


def test_a_communicator_over_machines_is_not_compared_with_nvlink() -> None:
    exchange = only(recorded("ncclDevKernel_AllReduce_Sum()", ["ncclAllReduce"], told=16))
    assert exchange.ranks == 16
    assert exchange.bandwidth == pytest.approx(30 / 16 * SIZE / (TIME / 1e9), rel=0.05)
    assert exchange.link == 0
    assert exchange.waits


def test_ranks_on_one_gpu_are_not_compared_with_nvlink() -> None:
    events = recorded("ncclDevKernel_AllReduce_Sum()", ["ncclAllReduce"])
    exchange = only(replace(events, gpus=events.gpus[:1]))
    assert exchange.bandwidth == pytest.approx(SIZE / (TIME / 1e9), rel=0.05)
    assert exchange.link == 0


def test_one_recorded_rank_does_not_say_how_many_there_are() -> None:
    events = recorded("ncclDevKernel_AllReduce_Sum()", ["ncclAllReduce"], ranks=1)
    assert "ranks are not recorded" in only(events).reason


def grouped(events: Events) -> Events:
    """The same where calls return at once, and a group's end launches their kernels."""
    messages = events.messages
    return replace(events, messages=replace(messages, end=messages.start + 1))


def test_a_group_that_one_kernel_runs_is_summed() -> None:
    events = grouped(recorded("ncclDevKernel_AllReduce_Sum()", ["ncclAllReduce"] * 3))
    assert only(events).size == 3 * SIZE


def test_sends_and_receives_count_in_one_direction() -> None:
    events = grouped(recorded("ncclDevKernel_SendRecv()", ["ncclSend", "ncclRecv"]))
    assert only(events).size == SIZE


def test_an_all_to_all_sends_its_size_to_each_other_rank() -> None:
    """NCCL 2.28 names 2 MiB for 4 MiB that two ranks exchange."""
    events = grouped(recorded("ncclDevKernel_SendRecv()", ["ncclAlltoAll"], 4, told=4))
    assert only(events).size == 3 * SIZE


def test_a_captured_call_is_of_no_later_kernel() -> None:
    """A CUDA graph replays what calls named when it was captured."""
    events = grouped(recorded("ncclDevKernel_AllReduce_Sum()", ["ncclAllReduce"]))
    nodes = np.ones_like(events.kernels.graph_node)
    events = replace(events, kernels=replace(events.kernels, graph_node=nodes))
    assert "CUDA graphs" in only(events).reason


def test_a_recorded_program_with_sizes_shows_its_bus_bandwidth(
    profkit_cli: Cli, tmp_path: Path
) -> None:
    """Gradients of a step are 64 messages; their kernels alone say how long they took."""
    path = tmp_path / "timeline.sqlite"
    shutil.copyfile(story_folder("data_parallel_exposed") / "before.sqlite", path)
    rows = payloads.rows_of(path, "ncclAllReduce")
    payloads.add_payloads(path, [(row, payloads.all_reduce(20_000_000)) for row in rows])
    events = read(path)
    steps = steady_steps(events)[0]
    exchange = exchanges(events, steps)["all-reduce"]
    names = [events.kernel_names[name].name for name in events.kernels.name]
    rows_of = [
        [
            row
            for row, name in enumerate(names)
            if "nccl" in name and events.streams[events.kernels.stream[row]].device == device
        ]
        for device in (0, 1)
    ]
    time = count = 0
    for pair in zip(*rows_of, strict=True):
        begin, own = int(events.kernels.start[list(pair)].max()), pair[steps.device]
        step = int(np.searchsorted(steps.bounds, events.kernels.start[own], side="right")) - 1
        if 0 <= step < len(steps) and steps.typical[step]:
            time += int(events.kernels.end[own]) - begin
            count += 1
    assert exchange.bandwidth == pytest.approx(count * 20e6 / time * 1e9)
    shown = profkit_cli("timeline", path, "--format", "markdown").stdout
    assert f"all-reduce: bus bandwidth {exchange.bandwidth / 1e9:.0f} GB/s: messages of" in shown
    assert "of NVLink's 450 GB/s in one direction" in shown


def test_a_recorded_program_without_sizes_says_how_to_get_them(profkit_cli: Cli) -> None:
    path = story_folder("data_parallel_exposed") / "before.sqlite"
    shown = profkit_cli("timeline", path, "--format", "markdown").stdout
    assert "all-reduce: bus bandwidth unknown: NCCL's NVTX ranges are here without" in shown
    events = replace(read(path), range_names=("step",) * 100)
    assert "trace nvtx" in exchanges(events, steady_steps(events)[0])["all-reduce"].reason
