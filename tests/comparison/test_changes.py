"""Times under ncu, what keeps them from being compared, what else changed, and lines of source."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from profkit.capture.correctness import Declared
from profkit.comparison.changes import changes, one_sided
from profkit.comparison.comparability import (
    Aspect,
    Obstacle,
    collected_apart,
    kernels_apart,
    only_the_clock,
    problem_of,
    reports_apart,
)
from profkit.comparison.line_changes import line_changes
from profkit.comparison.repeats import NOISE, Change, judge
from profkit.core.work import Work
from profkit.report.source_lines import LineCost
from profkit.report.summary import Group, LaunchSummary, ReportSummary, groups
from tests.comparing import work
from tests.conftest import h200


def launch(values: Mapping[str, float], at: int = 0) -> LaunchSummary:
    known = h200("known").summary.launches[0]
    told = dataclasses.replace(known.launch, index=at)
    return dataclasses.replace(known, launch=told, values={**known.values, **values})


def group(times: Sequence[float], **values: float) -> Group:
    (made,) = groups([launch({"duration": time, **values}, at) for at, time in enumerate(times)])
    return made


def obstacles(before: Group, after: Group) -> list[Aspect]:
    return [obstacle.aspect for obstacle in kernels_apart(before, after)]


# --- is it real?


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (100e-6, 98e-6, Change.same),
        (98e-6, 100e-6, Change.same),
        (100e-6, 90e-6, Change.improved),
        (90e-6, 100e-6, Change.regressed),
    ],
)
def test_one_launch_each_against_the_noise(before: float, after: float, change: Change) -> None:
    found = judge(group([before]), group([after]))
    assert found.change is change
    assert found.speedup == pytest.approx(before / after)
    assert found.range[0] < found.speedup < found.range[1]


def test_repeats_that_scatter_more_than_they_differ_are_inconclusive() -> None:
    before = group([100e-6, 120e-6, 90e-6, 130e-6, 95e-6, 125e-6])
    after = group([95e-6, 115e-6, 85e-6, 125e-6, 90e-6, 120e-6])
    assert judge(before, after).change is Change.inconclusive
    far = group([10e-6, 12e-6, 9e-6, 13e-6, 9.5e-6, 12.5e-6])
    assert judge(before, far).change is Change.improved


@given(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0))
def test_a_verdict_mirrors(before: float, after: float) -> None:
    mirror = {Change.improved: Change.regressed, Change.regressed: Change.improved}
    there, back = judge(group([before]), group([after])), judge(group([after]), group([before]))
    assert back.change is mirror.get(there.change, there.change)
    assert back.speedup == pytest.approx(1 / there.speedup)


def test_cycles_are_compared_where_the_clock_differs() -> None:
    before, after = group([100e-6], sm_clock=2e9), group([200e-6], sm_clock=1e9)
    assert judge(before, after, in_cycles=True).speedup == pytest.approx(1)
    assert abs(judge(before, after).speedup - 0.5) < NOISE


# --- may they be compared?


def test_the_clock_alone_leaves_cycles() -> None:
    apart = kernels_apart(group([1e-3], sm_clock=1.98e9), group([1e-3], sm_clock=1.7e9))
    assert apart == (Obstacle(Aspect.clock, "1980 MHz", "1700 MHz"),)
    assert only_the_clock(apart)
    both = kernels_apart(
        group([1e-3], sm_clock=1.98e9, dram_clock=3.2e9),
        group([1e-3], sm_clock=1.7e9, dram_clock=2.6e9),
    )
    assert not only_the_clock(both)
    assert not kernels_apart(group([1e-3], sm_clock=1.98e9), group([1e-3], sm_clock=1.95e9))


def test_problem_size_by_work_or_by_what_the_runs_declare() -> None:
    small, large = (group([1e-3], **work(size)) for size in (1, 10))
    assert obstacles(small, large) == [Aspect.problem]
    one, other = (
        problem_of(Declared(name="gemm", dtype="float16", work=Work(1e9, 1e6), shapes={"n": size}))
        for size in (8, 9)
    )
    assert not kernels_apart(small, large, (one, one))
    (told,) = kernels_apart(small, small, (one, other))
    assert told.aspect is Aspect.problem
    assert "n=8" in told.before
    assert "n=9" in told.after
    assert kernels_apart(small, large, (one, None))
    assert problem_of(Declared(name="gemm")) is None


ALL_WORK = tuple(name for name in work(1) if not name.endswith(("_size", "sector", "predicated")))


@pytest.mark.parametrize("equal", ["flop", "dram_read_bytes", "global_load_sectors"])
@pytest.mark.parametrize("threads", [0.125, 1, 4])
def test_equal_work_is_one_problem_whatever_the_threads(equal: str, threads: float) -> None:
    """A fix changes threads, traffic and instructions, each its own way; not all of the work."""
    before = dict(work(1))
    after = {name: value * (1.3 + at) for at, (name, value) in enumerate(before.items())}
    after |= {name: before[name] for name in before if name not in ALL_WORK}
    after |= {"grid_size": before["grid_size"] * threads, equal: before[equal]}
    assert not obstacles(group([1e-3], **before), group([1e-3], **after))
    assert not obstacles(group([1e-3], **after), group([1e-3], **before))


@given(st.floats(1.05, 100), st.booleans(), st.booleans())
def test_a_size_that_moves_all_work_is_another_problem(
    size: float, persistent: bool, has_flop: bool
) -> None:
    """Also of a persistent kernel, whose threads are the same for each size."""
    sides = [dict(work(one)) for one in (1, size)]
    for side in sides:
        side["flop"] *= has_flop
        if persistent:
            side["grid_size"] = 132.0
    before, after = (group([1e-3], **side) for side in sides)
    assert obstacles(before, after) == obstacles(after, before) == [Aspect.problem]


def test_a_reduction_of_twice_the_input_is_another_problem() -> None:
    """The output has the same size, which is no evidence of the problem's size."""
    output = {"global_store_sectors": 1.0}
    before, after = (group([1e-3], **{**work(size), **output}) for size in (1, 2))
    assert obstacles(before, after) == [Aspect.problem]
    integers = [{**work(size), **output, "flop": 0.0} for size in (1, 2)]
    assert obstacles(*(group([1e-3], **one) for one in integers)) == [Aspect.problem]


def test_other_threads_without_counters_of_work_are_not_taken_for_one_problem() -> None:
    bare = dict.fromkeys((*ALL_WORK, "async_copy_bytes"), math.nan)
    one, other = (group([1e-3], **{**work(size), **bare}) for size in (1, 2))
    assert obstacles(one, other) == [Aspect.problem]
    assert not obstacles(one, one)
    sides = [(7814.0, 128.0), (3907.0, 256.0)]  # of a million, in whole blocks
    grids = [{"grid_size": grid, "block_size": block} for grid, block in sides]
    assert not obstacles(*(group([1e-3], **{**work(1), **bare, **grid}) for grid in grids))


def test_short_launches_repeat_less_exactly() -> None:
    """Pairs of launches of one kernel on an H200, ncu 2025.3: 2.14 and 2.53 µs, 8.3 and 8.5 µs."""
    for before, after in ((2.144e-6, 2.528e-6), (2.272e-6, 2.592e-6), (8.256e-6, 8.512e-6)):
        assert judge(group([before]), group([after])).change is Change.same
    assert judge(group([214.4e-6]), group([252.8e-6])).change is Change.regressed
    assert judge(group([4e-6]), group([2e-6])).change is Change.improved


def test_counters_that_failed_are_no_time() -> None:
    assert obstacles(group([float("nan")]), group([1e-3])) == [Aspect.counters]


def test_reports_recorded_otherwise() -> None:
    base = h200("known").summary

    def other(**changed: Any) -> ReportSummary:
        return structs.replace(base, session=structs.replace(base.session, **changed))

    def reasons(report: ReportSummary) -> list[Aspect]:
        return [obstacle.aspect for obstacle in reports_apart(base, report)]

    assert not reasons(base)
    assert reasons(other(cache_control="none")) == [Aspect.cache_control]
    assert reasons(other(clock_control="base")) == [Aspect.clock_control]
    assert reasons(other(ncu_version="2026.1.0.0")) == [Aspect.ncu_version]
    assert not reasons(other(ncu_version="2025.2.0.0"))
    smaller = other(options={**base.session.options, "set": "basic"})
    assert not reasons(smaller)
    assert collected_apart(base, smaller) == Obstacle(Aspect.collected, "set full", "set basic")
    assert collected_apart(base, base) is None
    assert not reasons(other(ncu_version="", cache_control=""))


# --- what else changed


def test_settings_always_count_and_small_counts_do_not() -> None:
    before = launch({"registers_per_thread": 53, "instructions_executed": 1e6, "dram_bytes": 1e9})
    after = launch({"registers_per_thread": 54, "instructions_executed": 1.01e6, "dram_bytes": 2e9})
    found = {one.name: one for one in changes(before, after)}
    assert found["registers_per_thread"].shown
    assert not found["instructions_executed"].shown
    assert found["dram_bytes"].shown
    assert found["dram_bytes"].weight == pytest.approx(0.5)


def test_a_part_without_weight_in_its_whole_is_hidden() -> None:
    before = launch({"instructions_executed": 1e9, "barrier_instructions": 10})
    after = launch({"instructions_executed": 1e9, "barrier_instructions": 1000})
    (found,) = (one for one in changes(before, after) if one.name == "barrier_instructions")
    assert not found.shown


def test_nothing_changed_is_an_empty_list() -> None:
    one = h200("sdpa_s512_flash").summary.launches[0]
    assert changes(one, one) == ()
    assert one_sided(one, one) == ()


def test_what_one_side_lacks_is_listed_with_the_reason() -> None:
    whole = h200("sdpa_s512_flash").summary.launches[0]
    basic = h200("sdpa_s512_flash_set_basic").summary.launches[0]
    found = {one.name: one for one in one_sided(whole, basic)}
    assert found["l1_hit_rate"].side == "before"
    assert "not collected" in found["l1_hit_rate"].why
    assert "l1_hit_rate" not in {one.name for one in changes(whole, basic)}


# --- lines of source

TEXTS = ["a = 1;", "b = a * 2;", "loop {", "}", "store(b);", "sync();"]


def costs(lines: Sequence[tuple[str, float]], file: str = "k.cu") -> list[LineCost]:
    return [LineCost(file, at, text, spent) for at, (text, spent) in enumerate(lines, start=1)]


def test_lines_are_aligned_by_their_text() -> None:
    before = costs([("load();", 5e-6), ("b = a * 2;", 1e-6), ("store(b);", 4e-6)], "old.cu")
    after = costs(
        [("// new", 0.5e-6), ("load();", 1e-6), ("b  = a * 2;", 1e-6), ("store(c);", 2e-6)],
        "new.cu",
    )
    found = line_changes(before, after)
    assert [(one.line_before, one.line_after, one.text) for one in found[:3]] == [
        (1, 2, "load();"), (3, None, "store(b);"), (None, 4, "store(c);")
    ]  # fmt: skip


@given(
    st.lists(st.tuples(st.sampled_from(TEXTS), st.floats(1e-9, 1e-3)), max_size=12),
    st.lists(st.tuples(st.sampled_from(TEXTS), st.floats(1e-9, 1e-3)), max_size=12),
)
def test_line_changes_add_up(one: list[tuple[str, float]], other: list[tuple[str, float]]) -> None:
    found = line_changes(costs(one), costs(other))
    change = sum(spent for _, spent in other) - sum(spent for _, spent in one)
    assert sum(line.change for line in found) == pytest.approx(change, abs=1e-12)
    assert len([line for line in found if line.line_before]) == len(one)
    assert len([line for line in found if line.line_after]) == len(other)


@given(
    st.lists(st.tuples(st.sampled_from([*TEXTS, ""]), st.floats(1e-9, 1e-3)), max_size=12),
    st.lists(st.tuples(st.sampled_from([*TEXTS, ""]), st.floats(1e-9, 1e-3)), max_size=12),
)
def test_swapping_the_sides_mirrors_the_lines(
    one: list[tuple[str, float]], other: list[tuple[str, float]]
) -> None:
    there, back = line_changes(costs(one), costs(other)), line_changes(costs(other), costs(one))
    assert {(line.line_before, line.line_after, line.change) for line in there} == {
        (line.line_after, line.line_before, -line.change) for line in back
    }
