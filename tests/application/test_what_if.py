"""Ceilings of changes: the replay of recorded steps against simulations of the changed program."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace

from profkit.application.causes import CHANGES, quantities, with_findings
from profkit.application.parts import GAPS, HOST_CODE, LAUNCH_BOUND, step_parts
from profkit.application.steps import Steps, first_rank, steady_steps
from profkit.application.what_if import USUAL_HOST, Change, WhatIf
from profkit.rules.checklist import application_items
from profkit.rules.rule_file import shipped_rules
from profkit.timeline.events import Events, MemoryKind
from profkit.timeline.reader import read as read_events
from tests.application import synthetic
from tests.application.stories import (
    STORIES,
    Step,
    Story,
    chains_in_one_stream,
    inline_loader,
    pageable,
    recorded,
    slow,
    step_time,
)
from tests.application.synthetic import MS, PINNED, US, Host, Recording
from tests.conftest import H200

RECORDED = [
    *(H200 / f"sdpa_s512_{name}.sqlite" for name in ("flash", "math")),
    *H200.glob("sdpa_s512/*/timeline.sqlite"),
]
ALL = Change(
    graphs=True,
    pinned=True,
    overlapped=True,
    prefetched=True,
    unsynchronized=True,
    preallocated=True,
    concurrent=True,
)
SINGLE = [
    Change(graphs=True),
    Change(pinned=True),
    Change(overlapped=True),
    Change(prefetched=True),
    Change(unsynchronized=True),
    Change(preallocated=True),
    Change(concurrent=True),
]
UNBOUNDED = {"launch_bound", "synchronization", "serialized_streams", "slow_kernel"}


def named(events: Events) -> list[tuple[str, float]]:
    """The causes in order, each with its ceiling."""
    items = application_items(quantities(events, steady_steps(events), host=1.0), shipped_rules())
    return [(item.rule.category, item.estimate.high) for item in items if item.estimate]


@pytest.mark.parametrize("path", RECORDED, ids=str)
def test_the_replay_of_a_recorded_timeline_takes_what_was_recorded(path: Path) -> None:
    events = read_events(path)
    subject = WhatIf(events, steady_steps(events), host=1.0)
    assert subject.present == pytest.approx(subject.recorded, rel=0.02)


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("name", STORIES)
def test_the_replay_without_a_change_takes_as_long_as_the_program(name: str, side: str) -> None:
    step = getattr(STORIES[name], side)
    events = recorded(step)
    subject = WhatIf(events, steady_steps(events), host=1.0)
    assert subject.recorded == pytest.approx(step_time(step), rel=0.02)
    assert subject.present == pytest.approx(subject.recorded, rel=0.02)
    assert subject.best(Change()) == 1


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_the_planted_cause_is_named_first(story: Story) -> None:
    assert named(recorded(story.before))[0][0] == story.cause


@pytest.mark.parametrize(
    "story", [each for each in STORIES.values() if each.is_complete], ids=lambda each: each.cause
)
def test_the_range_has_what_a_complete_fix_gains(story: Story) -> None:
    gained = step_time(story.before) / step_time(story.after)
    events = recorded(story.before)
    items = application_items(quantities(events, steady_steps(events), host=1.0), shipped_rules())
    (item,) = [item for item in items if item.rule.category == story.cause]
    assert item.range[0] <= gained <= item.range[1] * 1.01


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_the_fixed_cause_is_not_named_again(story: Story) -> None:
    if story.is_complete:
        assert dict(named(recorded(story.after))).get(story.cause, 1.0) < 1.05


def hidden(host: Host, _: int) -> None:
    """Launch-bound: a long kernel beside those that wait for launches."""
    host.launch("beside(float*)", 100 * US, stream=9)
    for _ in range(40):
        host.compute(6 * US)
        host.launch("short(float*)", 3 * US)


def groups_of(events: Events, label: str) -> dict[tuple[int, int], float]:
    kernels = events.kernels
    return {
        (int(name), int(configuration)): 0.1
        for name, configuration in zip(kernels.name, kernels.configuration, strict=True)
        if events.kernel_names[int(name)].label == label
    }


@pytest.mark.parametrize("label", ["beside", "short"])
def test_a_faster_kernel_that_is_hidden_gives_nothing(label: str) -> None:
    events = recorded(hidden)
    change = Change(kernels=groups_of(events, label))
    assert change.kernels
    subject = WhatIf(events, steady_steps(events), host=1.0)
    assert subject.best(change) == pytest.approx(1, abs=1e-3)


def overlapped_copies(host: Host, _: int) -> None:
    host.copy(MS, 20_000_000, source="pinned", stream=9)
    for _ in range(20):
        host.launch("work(float*)", 100 * US)


def test_a_faster_copy_that_is_hidden_gives_nothing() -> None:
    events = recorded(overlapped_copies)
    subject = WhatIf(events, steady_steps(events), host=1.0)
    assert subject.best(Change(copies=0.5)) == pytest.approx(1, abs=1e-3)


def ranks(compute: tuple[int, int], transfer: int, *, beside: bool, steps: int = 12) -> Events:
    """Two ranks that exchange gradients after or during the backward pass."""
    recording = Recording()
    hosts = [Host(recording, process=rank + 1, device=rank, now=MS) for rank in range(2)]
    for _ in range(steps):
        starts = []
        for host, times in zip(hosts, compute, strict=True):
            host.begin = host.now  # type: ignore[attr-defined]
            for layer in range(10):
                _, end = host.launch(f"layer_{layer % 2}(float*)", times // 10)
                if layer == 0:
                    first = end
            where = host.stream(13 if beside else 7)
            call, called = host.call("cudaLaunchKernelExC", 4 * US), host.now
            after = first if beside else end
            start = max(called + US, after, host.free.get(13 if beside else 7, 0))
            starts.append((start, call, where))
        done = max(start for start, *_ in starts) + transfer
        for host, (start, call, where) in zip(hosts, starts, strict=True):
            name, grid = "ncclDevKernel_AllReduce_Sum_f32()", (2, 1, 1)
            recording.kernel(name, start, done, call, where, grid)
            host.free[13 if beside else 7] = done
            host.launch("adam(float*)", 50 * US, after=done)
            host.synchronize()
            recording.range("step", host.begin, host.now, host.thread)  # type: ignore[attr-defined]
    return recording.events()


def time_of(events: Events) -> float:
    steps = steady_steps(events)
    return max(float(each.bounds[-1] - each.bounds[0]) / len(each) for each in steps)


def test_communication_after_the_computation_is_named() -> None:
    before = ranks((2 * MS, 2 * MS), MS, beside=False)
    after = ranks((2 * MS, 2 * MS), MS, beside=True)
    causes = named(before)
    assert causes[0][0] == "exposed_communication"
    gained = time_of(before) / time_of(after)
    assert gained <= causes[0][1] * 1.01
    assert causes[0][1] <= gained * 1.15


def test_ranks_that_wait_for_the_slowest_are_named() -> None:
    before = ranks((3 * MS, MS), 100 * US, beside=False)
    after = ranks((2 * MS, 2 * MS), 100 * US, beside=False)
    causes = named(before)
    assert causes[0][0] == "rank_imbalance"
    assert causes[0][1] == pytest.approx(time_of(before) / time_of(after), rel=0.03)


def test_small_kernels_of_a_rank_have_the_sms_of_its_own_gpu() -> None:
    alone, both = (dict(named(synthetic.ranks([chains_in_one_stream] * n))) for n in (1, 2))
    exchanged = 5 + 100  # µs of the sum and of the collective, beside 96 kernels, 8 at once
    gained = (96 * 50 + exchanged) / (96 / 8 * 50 + exchanged)
    assert alone["serialized_streams"] == pytest.approx(gained, rel=0.1)
    assert both["serialized_streams"] == pytest.approx(alone["serialized_streams"], rel=0.01)


@pytest.mark.parametrize("steps", [3, 12])
def test_a_rank_whose_last_step_is_not_recorded_does_not_wait(steps: int) -> None:
    whole, cut = (synthetic.ranks([slow] * 2, steps, MS, missing=each) for each in (0, 1))
    assert named(cut)[0][0] == named(whole)[0][0] == "exposed_communication"
    assert dict(named(cut)) == pytest.approx(dict(named(whole)), rel=0.02)
    assert [len(each.wall) for each in steady_steps(cut)] == [steps - 1, steps - 2]
    _, notes = findings_and_notes(cut)
    assert any("leave out 1 rank (GPU 1)" in each for each in notes) == (steps == 3)


@pytest.mark.parametrize(
    ("first", "second"), [(inline_loader, pageable), (pageable, inline_loader)]
)
def test_processes_that_no_collective_joins_are_programs_of_their_own(
    first: Step, second: Step
) -> None:
    both = synthetic.ranks([first, second], are_joined=False)
    causes, notes = findings_and_notes(both)
    assert causes == findings_and_notes(synthetic.ranks([first], are_joined=False))[0]
    assert any("which no recorded collective joins" in each for each in notes)


def findings_and_notes(events: Events) -> tuple[list[tuple[str, float]], tuple[str, ...]]:
    """What the checklist of a timeline says: causes with their ceilings, and notes."""
    summary, items = with_findings(events, shipped_rules())
    return [(item.rule.category, item.range[1]) for item in items], summary.report.notes


def pausing(late: set[int], where: str, pause: int) -> Callable[[Host, int], None]:
    """Loading data, 30 kernels and a wait; some steps have a pause of the host in addition."""

    def step(host: Host, number: int) -> None:
        for part, kernels in (("loading", 0), ("launching", 15), ("waiting", 15), ("waited", 0)):
            for _ in range(kernels):
                host.launch("kernel(float*)", 80 * US)
            if part == "loading":
                host.compute(3 * MS)
                host.copy(100 * US, 4_000_000, source="pinned")
            if part == "waiting":
                host.synchronize()
            if part == where and number in late:
                host.compute(pause)

    return step


@pytest.mark.parametrize("late", [{1}, {2}, {3}, {4}, {2, 4}], ids=str)
@pytest.mark.parametrize("where", ["loading", "launching", "waited"])
def test_slow_steps_change_neither_the_median_nor_the_ceiling(late: set[int], where: str) -> None:
    usual, slowed = (recorded(pausing(each, where, 300 * MS), 6) for each in (set(), late))
    median, paused = (first_rank(steady_steps(events)).median for events in (usual, slowed))
    assert paused == pytest.approx(median, rel=0.05)
    (cause, ceiling), (expected, of_usual) = named(slowed)[0], named(usual)[0]
    assert cause == expected == "data_loader"
    assert ceiling == pytest.approx(of_usual, rel=0.05)
    assert paused / ceiling >= 30 * 80e-6  # the kernels stay


def test_a_program_without_repetition_has_no_causes() -> None:
    events = read_events(H200 / "sdpa_s512_math.sqlite")
    assert quantities(events, steady_steps(events)) == {}


# properties, over random programs

operations = some.lists(
    some.one_of(
        some.tuples(some.just("launch"), some.integers(1, 300), some.integers(0, 4)),
        some.tuples(some.just("compute"), some.integers(1, 400), some.just(0)),
        some.tuples(some.just("pageable"), some.integers(1, 300), some.just(0)),
        some.tuples(some.just("pinned"), some.integers(1, 300), some.integers(0, 1)),
        some.tuples(some.just("wait"), some.just(0), some.just(0)),
        some.tuples(some.just("allocate"), some.integers(1, 200), some.just(0)),
    ),
    min_size=1,
    max_size=12,
)


def program(steps: list[tuple[str, int, int]]) -> Callable[[Host, int], None]:
    def step(host: Host, _: int) -> None:
        host.launch("first(float*)", 10 * US)
        for kind, time, kernel in steps:
            match kind:
                case "launch":
                    blocks = (16, 1, 1) if kernel == 4 else (132, 1, 1)
                    host.launch(f"kernel_{kernel}(float*)", time * US, 7 + kernel // 3, blocks)
                case "compute":
                    host.compute(time * US)
                case "pageable":
                    host.copy(time * US, time * 10_000)
                case "pinned":
                    host.copy(time * US, time * 50_000, source="pinned", stream=7 + 2 * kernel)
                case "wait":
                    host.synchronize()
                case _:
                    host.call("cudaMalloc", time * US)

    return step


def what_if(steps: list[tuple[str, int, int]]) -> tuple[Events, tuple[Steps, ...], WhatIf]:
    events = recorded(program(steps), 10)
    found = steady_steps(events)
    return events, found, WhatIf(events, found, host=1.0)


@given(operations)
def test_without_a_change_any_program_takes_what_was_recorded(
    steps: list[tuple[str, int, int]],
) -> None:
    _, _, subject = what_if(steps)
    assert subject.present == pytest.approx(subject.recorded, rel=0.03, abs=2e-6)


@given(operations, some.floats(0.05, 1))
def test_a_faster_kernel_gives_at_most_what_amdahl_allows(
    steps: list[tuple[str, int, int]], share: float
) -> None:
    events, _, subject = what_if(steps)
    kernels = groups_of(events, "first") | groups_of(events, "kernel_0")
    change = Change(kernels=dict.fromkeys(kernels, share))
    busy = sum(work.duration for work in subject.replay.works if work.group in change.kernels) / (
        1e9 * subject.replay.steps
    )
    assert subject.after(change) >= subject.present - busy * (1 - share) - 1e-7


@given(operations, some.lists(some.booleans(), min_size=12, max_size=12), some.floats(0, 2))
def test_no_change_of_the_host_gives_more_than_the_kernels_allow(
    steps: list[tuple[str, int, int]], stays: list[bool], slower: float
) -> None:
    """Any work of the host, wait and copy may fall away, and the rest of it take another time."""
    _, _, subject = what_if(steps)
    after = [
        (kind, int(time * slower) if kind == "compute" else time, kernel)
        for (kind, time, kernel), here in zip(steps, stays, strict=False)
        if here or kind == "launch"
    ]
    most = subject.most(Change(pinned=True, prefetched=True, preallocated=True))
    assert step_time(program(steps)) / step_time(program(after)) <= most * 1.005
    for change in (each for each in SINGLE if each.is_bounded):
        assert subject.best(change) <= most * 1.005


def test_only_changes_that_leave_other_kernels_say_at_most() -> None:
    rules = [rule for rule in shipped_rules() if rule.about == "application"]
    bounded = {name for name, change in CHANGES.items() if change.is_bounded}
    assert {name for rule in rules if rule.bound for name in rule.relieves} == bounded
    assert not Change(prefetched=True, graphs=True).is_bounded


@pytest.mark.parametrize("name", STORIES)
def test_what_is_said_to_be_at_most_is_no_less_than_the_fix_gives(name: str) -> None:
    story = STORIES[name]
    values = quantities(events := recorded(story.before), steady_steps(events), host=1.0)
    items = {item.rule.category: item for item in application_items(values, shipped_rules())}
    bound = items[story.cause].bound
    assert math.isnan(bound) or step_time(story.before) / step_time(story.after) <= bound * 1.005
    assert math.isnan(bound) == (story.cause in UNBOUNDED)


@given(operations, some.floats(0.1, 1), some.floats(0.1, 1))
def test_a_kernel_that_is_made_faster_still_gives_no_less(
    steps: list[tuple[str, int, int]], first: float, second: float
) -> None:
    events, _, subject = what_if(steps)
    kernels = groups_of(events, "kernel_0") | groups_of(events, "kernel_1")
    slower, faster = (
        subject.best(Change(kernels=dict.fromkeys(kernels, share)))
        for share in sorted([first, second], reverse=True)
    )
    assert faster >= slower * (1 - 2e-3)


@given(operations)
def test_all_changes_together_give_no_less_than_each(steps: list[tuple[str, int, int]]) -> None:
    _, _, subject = what_if(steps)
    together = subject.best(ALL)
    for change in SINGLE:
        assert together >= subject.best(change) * (1 - 2e-3)


def awaiting_callback(host: Host, _: int) -> None:
    """As XLA: the thread asks for a callback, and calls nothing until the GPU is done."""
    host.copy(200 * US, 8_000_000, source=PINNED)
    for _ in range(10):
        host.launch("loop_add_fusion", 300 * US)
    host.call("cuLaunchHostFunc", 5 * US)
    host.now = max(host.now, *host.free.values()) + 60 * US
    host.call("cuCtxSetCurrent", US)
    host.compute(2 * MS)


def running_on(host: Host, _: int) -> None:
    host.copy(200 * US, 8_000_000, source=PINNED)
    for _ in range(10):
        host.launch("loop_add_fusion", 300 * US)


def test_a_wait_without_a_call_is_a_wait() -> None:
    events = recorded(awaiting_callback)
    gained = step_time(awaiting_callback) / step_time(running_on)
    subject = WhatIf(events, steady_steps(events), host=1.0)
    assert subject.best(Change(prefetched=True)) == pytest.approx(gained, rel=0.05)
    assert subject.best(Change(kernels=groups_of(events, "loop_add_fusion"))) > 1.5


NORM = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, NormTwoOps>>(T)"
ROOT = "void at::native::vectorized_elementwise_kernel<4, at::native::sqrt_kernel_cuda>(int)"


def reading_norms(host: Host, _: int) -> None:
    for _ in range(20):
        host.launch("gemm(float*)", 30 * US)
    for _ in range(30):
        host.launch(NORM, 3 * US)
        host.launch(ROOT, 2 * US)
        host.copy(2 * US, 4, source="device", target="pageable")
        host.compute(15 * US)


def no_norms(host: Host, _: int) -> None:
    for _ in range(20):
        host.launch("gemm(float*)", 30 * US)
    host.copy(2 * US, 4, source="device", target=PINNED)


def test_what_is_read_is_not_computed_either() -> None:
    events = recorded(reading_norms)
    gained = step_time(reading_norms) / step_time(no_norms)
    subject = WhatIf(events, steady_steps(events), host=1.0)
    assert subject.best(Change(unsynchronized=True)) == pytest.approx(gained, rel=0.1)


def test_a_few_launches_between_two_reads_are_no_graph() -> None:
    causes = dict(named(recorded(reading_norms)))
    assert causes["synchronization"] > causes.get("launch_bound", 1.0)


def uploading(host: Host, _: int) -> None:
    """As torch: an asynchronous copy of a few pageable bytes, and a wait for it."""
    host.launch("work(float*)", 400 * US)
    where = host.stream(7)
    call = host.call("cudaMemcpyAsync", 5 * US)
    start = max(host.now, host.free[where])
    host.free[where] = start + 2 * US
    kind = MemoryKind("host to device", "pageable", "device")
    host.recording.copy(kind, 4_000, start, host.free[where], call, where)
    host.synchronize()
    for _ in range(6):
        host.compute(50 * US)
        host.launch("short(float*)", 10 * US)


def shifted(events: Events, skew: int) -> Events:
    """With a clock of the GPU that is ahead of the host's."""
    kernels, copies = (
        replace(table, start=table.start + skew, end=table.end + skew)
        for table in (events.kernels, events.memory_operations)
    )
    return replace(events, kernels=kernels, memory_operations=copies)


def sending(host: Host, _: int, share: float = 1.0) -> None:
    """A large copy of pageable memory that waits for what was launched before, and the results."""
    host.copy(900 * US, 19_000_000)
    for _ in range(10):
        host.launch("gemm(float*)", round(500 * share) * US)
    host.copy(5 * US, 4_000, source="device", target="pageable")
    host.compute(30 * US)
    for _ in range(20):
        host.launch("gemm(float*)", round(500 * share) * US)


@pytest.mark.parametrize("skew", [-40, -10, -3, 0, 2, 3, 10, 40])
def test_calls_wait_for_their_copies_whatever_the_clocks(skew: int) -> None:
    events = shifted(recorded(sending), skew * US)
    subject = WhatIf(events, steady_steps(events), host=1.0)
    faster = Change(kernels=dict.fromkeys(groups_of(events, "gemm"), 0.2))
    gained = step_time(sending) / step_time(partial(sending, share=0.2))
    assert subject.replay_error == pytest.approx(0, abs=0.01)
    assert subject.best(faster) == pytest.approx(gained, rel=0.02)


@given(some.integers(-30, 30), operations)
def test_no_skew_of_the_clocks_changes_what_a_step_takes(
    skew: int, steps: list[tuple[str, int, int]]
) -> None:
    events = shifted(recorded(program(steps), 10), skew * US)
    subject = WhatIf(events, steady_steps(events), host=1.0)
    assert subject.present == pytest.approx(subject.recorded, rel=0.03, abs=2e-6)


def test_pinned_memory_needs_no_wait_after_a_copy() -> None:
    events = recorded(uploading)
    subject = WhatIf(events, steady_steps(events), host=1.0)
    assert subject.best(Change(pinned=True)) == pytest.approx(790 / 470, rel=0.1)


def test_the_time_of_other_steps_is_not_taken() -> None:
    """Of a pattern of four steps, or on another GPU."""
    step = STORIES["launches"].before
    events = recorded(step)
    steps = steady_steps(events)
    for factor in (0.2, 3.0):
        subject = WhatIf(events, steps, step_time(step) * factor)
        assert subject.present == pytest.approx(WhatIf(events, steps).present)


def dispatching(host: Host, _: int) -> None:
    """As JAX without jit: it asks for a callback and goes on; the kernel ends after that."""
    for _ in range(12):
        host.launch("loop_add_fusion", 12 * US)
        host.call("cuLaunchHostFunc", 5 * US)
        host.compute(250 * US)


def test_a_host_that_issues_slowly_is_launch_bound_by_parts_and_findings() -> None:
    events = recorded(dispatching)
    (steps,) = steady_steps(events)
    parts = step_parts(events, steps)
    idle = {part.name: parts.share(part) for part in parts.group(GAPS)}
    assert idle[LAUNCH_BOUND] > 0.9
    assert idle.get(HOST_CODE, 0) < 0.01
    assert quantities(events, [steps])["host_work"] == 0
    assert named(events)[0][0] == "launch_bound"


def preparing(host: Host, _: int) -> None:
    """Work on data, work on results, and slow launches."""
    host.compute(400 * US)
    host.copy(100 * US, 5_000_000, source=PINNED)
    for _ in range(4):
        host.launch("kernel(float*)", 20 * US)
        host.compute(150 * US)
    host.launch("kernel(float*)", 20 * US)
    host.synchronize()
    host.compute(300 * US)


def test_parts_and_findings_agree_on_the_work_of_the_host() -> None:
    events = recorded(preparing)
    (steps,) = steady_steps(events)
    parts = step_parts(events, steps)
    (host,) = (parts.share(part) for part in parts.group(GAPS) if part.name == HOST_CODE)
    assert host * steps.median == pytest.approx(700e-6, rel=0.05)
    known = quantities(events, [steps])
    assert known["host_work"] == pytest.approx(700e-6, rel=0.05)
    assert known["host_work_share"] == pytest.approx(host, rel=0.05)


def copying_and_waiting(host: Host, _: int) -> None:
    """As torch's copy of pageable memory: the host waits for it, behind the kernels before it."""
    host.copy(400 * US, 4_000_000, queued=True)
    host.synchronize()
    for _ in range(10):
        host.compute(20 * US)
        host.launch("kernel(float*)", 40 * US)


def test_a_wait_for_pageable_memory_is_one_cause() -> None:
    causes = [category for category, _ in named(recorded(copying_and_waiting))]
    assert causes[0] == "pageable_copies"
    assert "synchronization" not in causes


def test_a_small_result_behind_long_kernels_is_no_slow_copy() -> None:
    def step(host: Host, _: int) -> None:
        for _ in range(5):
            host.launch("kernel(float*)", 2 * MS)
        host.copy(16 * US, 458_800, source="device", target="pageable")
        host.compute(2 * MS)

    events = recorded(step)
    subject = WhatIf(events, steady_steps(events), host=1.0)
    assert subject.best(Change(pinned=True)) < 1.01
    assert "pageable_copies" not in dict(named(events))


def test_a_thread_that_asks_while_the_gpu_is_idle_does_not_wait() -> None:
    """As JAX without jit: a callback at once, after which Python works."""

    def step(host: Host, _: int) -> None:
        for _ in range(20):
            host.launch("kernel(float*)", 2 * US, after=host.now + 700 * US)
            host.call("cuLaunchHostFunc", 5 * US)
            host.compute(900 * US)

    events = recorded(step)
    assert quantities(events, steady_steps(events))["host_waits"] == 0


def test_a_pause_that_no_launch_takes_is_work_of_the_host() -> None:
    def pausing(host: Host, _: int) -> None:
        for _ in range(3):
            host.launch("kernel(float*)", 50 * US)
        host.compute(20 * MS)
        host.launch("kernel(float*)", 50 * US)

    events = recorded(pausing)
    (steps,) = steady_steps(events)
    (idle, *_) = step_parts(events, steps).group(GAPS)
    assert idle.name == HOST_CODE
    assert named(events)[0][0] == "data_loader"


def collating(host: Host, _: int) -> None:
    """As a loader of small graphs: a batch in several copies, each with a wait, after a read."""
    host.compute(4 * MS)
    for _ in range(5):
        host.copy(4 * US, 30_000)
        host.synchronize()
    for _ in range(20):
        host.launch("kernel(float*)", 100 * US)
    host.copy(2 * US, 4, source="device", target="pageable")


@pytest.mark.parametrize("name", ["host_wait", "host_work", "allocation"])
def test_shares_of_the_host_are_those_that_a_reader_divides(name: str) -> None:
    def working(host: Host, _: int) -> None:
        host.call("cudaMalloc", 200 * US)
        preparing(host, 0)

    known = quantities(events := recorded(working), steady_steps(events))
    seconds = known["host_work" if name == "host_work" else f"{name}_time"]
    assert known[f"{name}_share"] == pytest.approx(seconds / known["step_time"])
    assert 0.01 < known[f"{name}_share"] < 1


def test_a_batch_that_is_copied_in_parts_is_data() -> None:
    events = recorded(collating)
    subject = WhatIf(events, steady_steps(events), host=1.0)
    assert subject.best(Change(prefetched=True)) == pytest.approx(6.2 / 2.2, rel=0.15)
    (steps,) = steady_steps(events)
    assert quantities(events, [steps])["host_work"] == pytest.approx(4e-3, rel=0.05)
    assert "data_loader" in dict(named(events))


def nearly_hidden(host: Host, _: int) -> None:
    """A host that is the limit in a tenth of a step, and then takes nearly its GPU's time."""
    for _ in range(5):
        host.launch("short(float*)", 4 * US)
        host.compute(90 * US)
    for _ in range(40):
        host.launch("gemm(float*)", 100 * US)
        host.compute(86 * US)
    host.copy(2 * US, 4, source="device", target="pageable")


def test_a_step_that_its_gpu_limits_says_little_of_its_host() -> None:
    events = recorded(nearly_hidden)
    steps, fast = steady_steps(events), Change(kernels=groups_of(events, "gemm"))
    recorded_host, usual = (WhatIf(events, steps, host=h).best(fast) for h in (1.0, USUAL_HOST))
    for factor in (0.98, 1.0, 1.02):  # the same step, at clocks that differ by so much
        known = WhatIf(events, steps, step_time(nearly_hidden) * factor).best(fast)
        assert (recorded_host * usual) ** 0.5 < known < usual
    bound = recorded(dispatching)
    subject = WhatIf(bound, steady_steps(bound), step_time(dispatching) * 0.8)
    assert subject.present == pytest.approx(step_time(dispatching) * 0.8, rel=0.02)


def test_no_launch_hastens_work_that_waits_for_another_gpu() -> None:
    def step(host: Host, _: int) -> None:
        for number in range(10):
            after = host.now + 800 * US if number == 5 else 0
            host.launch("stage(float*)", 20 * US, after=after)
        host.synchronize()

    events = recorded(step)
    subject = WhatIf(events, steady_steps(events), host=1.0)
    assert subject.best(Change(graphs=True)) < 1.15


@pytest.mark.parametrize("direction", ["host to device", "device to host"])
def test_waits_for_a_few_bytes_are_named_in_either_direction(direction: str) -> None:
    source, target = ("pageable", "device")[:: 1 if direction == "host to device" else -1]

    def step(host: Host, _: int) -> None:
        for _ in range(20):
            for _ in range(3):
                host.launch("gemm(float*)", 40 * US)
            host.copy(1 * US, 8, source=source, target=target)
            host.synchronize()
            host.compute(20 * US)

    assert named(recorded(step))[0][0] == "synchronization"
