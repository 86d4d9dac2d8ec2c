"""Properties of the engine that hold for any counters."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from profkit.report.catalog import catalog
from profkit.report.checks import NOT_COLLECTED, NOT_HERE, NOT_IN_VERSION
from profkit.report.floors import LAUNCH, SHORTEST, WORTH, floors
from profkit.report.summary import LaunchSummary, ReportSummary, groups
from profkit.rules import finding_text as words
from profkit.rules.checklist import checklist
from profkit.rules.engine import NOMINAL, diagnose, explain
from profkit.rules.finding import UnevaluatedRule
from profkit.rules.rule_file import CONTEXT, Rule, shipped_rules, with_own
from profkit.rules.samples import LONG_CODE
from tests.conftest import h200

Values = Mapping[str, float]

OF_KERNELS = [rule for rule in shipped_rules() if rule.about == "kernel"]
READ = sorted({name for rule in OF_KERNELS for name in rule.names} - {*CONTEXT, "duration"})
RULE = """\
rules:
- name: {name}
  category: {category}
  title: t
  explanation: e
  when: ["{when}"]
  {gives}
  actions: [a]
  verify: [v]
"""


def report(
    kernels: Sequence[Values],
    missing: Mapping[str, str] | None = None,
    names: Sequence[str] = (),
) -> ReportSummary:
    """A report of one launch a kernel, or of launches of kernels of these `names`."""
    launch = h200("known").summary.launches[0]
    launches = tuple(
        dataclasses.replace(
            launch,
            launch=dataclasses.replace(
                launch.launch, index=at, name=names[at] if names else f"kernel_{at}"
            ),
            values=values,
            missing=missing or {},
        )
        for at, values in enumerate(kernels)
    )
    whole = h200("known").summary
    return structs.replace(
        whole, launches=launches, groups=groups(launches), recorded=len(launches)
    )


@pytest.fixture
def rule(tmp_path: Path) -> Rule:
    return own(tmp_path)


def own(
    folder: Path,
    name: str = "own",
    when: str = "dram_busy > 0.5 and stall_wait > 1",
    gives: str = "time: 0.5",
    category: str = "dram_bandwidth",
) -> Rule:
    file = folder / "own.yaml"
    text = RULE.format(name=name, when=when, gives=gives, category=category)
    file.write_text(text, encoding="utf-8")
    return with_own(file)[-1]


def value(unit: str) -> st.SearchStrategy[float]:
    share = st.floats(0, 1.2) | st.sampled_from([0.0, 1.0])
    return share if unit == "1" else st.floats(0, 1e12) | st.sampled_from([0.0, 1.0, 32.0, 132.0])


kernels = st.lists(
    st.fixed_dictionaries(
        {"duration": st.floats(1e-7, 10)},
        optional={name: value(catalog().quantities[name].unit) for name in READ},
    ),
    min_size=1,
    max_size=4,
)


@given(kernels)
@example([{"duration": 1e-3, "warp_latency": 2e-222, "stall_barrier": 1.0, "dram_busy": 0.5}])
def test_estimates_are_bounded(recorded: list[dict[str, float]]) -> None:
    summary = report(recorded)
    found = diagnose(summary, shipped_rules())
    for finding in found.findings:
        estimate = finding.estimate
        if estimate is None:
            assert finding.saved == 0
            nominal = finding.rule.name in NOMINAL
            assert nominal or not finding.rule.formulas or finding.bound >= WORTH
            continue
        assert estimate.likely >= WORTH
        assert finding.group
        assert finding.launch is not None
        duration = finding.group.typical.duration
        assert 1 <= estimate.low <= estimate.likely * (1 + 1e-9)
        assert estimate.likely <= estimate.high * (1 + 1e-9)
        assert estimate.run >= 1
        assert estimate.confidence in {"high", "medium", "low"}
        if finding.rule.spans == "chain":
            continue
        assert duration / estimate.likely >= estimate.bound_seconds * (1 - 1e-9)
        unrelieved = [
            floor.seconds
            for floor in floors(finding.group.typical.values)
            if floor.resource not in finding.rule.relieves
        ]
        highest = min(max(unrelieved, default=0.0), duration)
        assert duration / estimate.likely >= highest * (1 - 1e-9)
        assert estimate.high <= found.headrooms[finding.launch].factor * (1 + 1e-9)
        assert 0 <= finding.saved < finding.group.total
    saved = [(finding.standing or finding).saved for finding in found.findings]
    assert saved == sorted(saved, reverse=True)
    keys = {(f.rule.first, f.rule.category, f.kernel) for f in found.findings}
    assert len(keys) == len(found.findings)


@settings(max_examples=settings().max_examples // 2)
@given(kernels, st.sampled_from(READ))
def test_a_rule_that_misses_what_it_needs_does_not_fire(
    recorded: list[dict[str, float]], name: str
) -> None:
    """Where no condition is false, a missing quantity of a plain comparison leaves it open."""
    for values in recorded:
        values.pop(name, None)
    summary = report(recorded)
    for rule in OF_KERNELS:
        for trial in explain(summary, rule):
            states = [condition.holds for condition in trial.conditions]
            assert (trial.finding is not None) == all(state is True for state in states)


def test_what_is_missing_leaves_a_rule_open(rule: Rule) -> None:
    summary = report([{"duration": 1e-4, "dram_busy": 0.8}], {"stall_wait": NOT_COLLECTED})
    found = diagnose(summary, [rule])
    assert found.findings == ()
    (open_,) = checklist(summary, [rule]).unevaluated
    assert found.unknown == {"own": open_}
    assert open_ == UnevaluatedRule(
        "own", 1, ("stall_wait",), {"stall_wait": NOT_COLLECTED}, ("WarpStateStats",)
    )


def test_what_is_missing_does_not_matter_where_another_side_is_false(rule: Rule) -> None:
    found = diagnose(report([{"duration": 1e-4, "dram_busy": 0.2}]), [rule])
    assert found.findings == ()
    assert found.unknown == {}


def test_ranking_is_by_time_saved_over_the_report(rule: Rule) -> None:
    fires = {"dram_busy": 0.6, "stall_wait": 2.0}
    found = diagnose(report([{"duration": t, **fires} for t in (1e-5, 3e-5, 2e-5)]), [rule])
    assert [finding.kernel for finding in found.findings] == [
        "kernel_1",
        "kernel_2",
        "kernel_0",
    ]
    first = found.findings[0].estimate
    assert first is not None
    assert first.bounded_by == "DRAM"
    assert first.likely == pytest.approx(0.87 * 0.95 / 0.6)  # what kernels usually reach
    saved = 3e-5 * (1 - 0.6 / 0.95 / 0.87)
    assert first.run == pytest.approx(6e-5 / (6e-5 - saved))


def test_disabled_rules_and_categories_are_not_tried(tmp_path: Path) -> None:
    rules = [own(tmp_path, "one"), own(tmp_path, "two", category="memory_latency")]
    summary = report([{"duration": 1e-4, "dram_busy": 0.6, "stall_wait": 2.0}])
    assert [i.rule.name for i in checklist(summary, rules, disabled=["one"]).items] == ["two"]
    left = checklist(summary, rules, disabled=["memory_latency", "one"])
    assert (left.items, left.rules) == ((), 0)


def test_kernels_without_a_duration_are_skipped(rule: Rule) -> None:
    fires = {"dram_busy": 0.6, "stall_wait": 2.0}
    summary = report([{"duration": math.nan, **fires}, {"duration": 1e-5, **fires}])
    found = checklist(summary, [rule])
    (item,) = found.items
    assert item.group is not None
    assert item.group.name == "kernel_1"
    assert (found.kernels, found.skipped) == (1, 1)
    none = checklist(report([{"duration": math.nan, **fires}]), [rule])
    assert (none.items, none.kernels, none.skipped) == ((), 0, 1)


def test_samples_are_looked_at_where_all_else_holds(tmp_path: Path) -> None:
    asked: list[str] = []

    def sampling(launch: LaunchSummary) -> str:
        asked.append(launch.name)
        return LONG_CODE

    wanted = own(tmp_path, when="linked_share > 0.5 and dram_busy > 0 or dram_busy > 0.5")
    found = diagnose(report([{"duration": 1e-3, "dram_busy": 0.6}]), [wanted], sampling=sampling)
    assert [finding.rule for finding in found.findings] == [wanted]
    assert asked == ["kernel_0"]
    asked.clear()
    first = own(tmp_path, when='linked_share > 0.5", "dram_busy > 0.5')
    kernels = [{"duration": 1e-3, "dram_busy": busy} for busy in (0.9, 0.1)]
    assert diagnose(report(kernels), [first], sampling=sampling).findings == ()
    assert asked == ["kernel_0"]


STREAMING = {
    "duration": 1e-3,
    "dram_busy": 0.9,
    "l2_busy": 0.5,
    "l1_busy": 0.3,
    "issue_busy": 0.2,
    "dram_bytes": 2e9,
    "dram_read_bytes": 1e9,
    "dram_write_bytes": 1e9,
    "l2_write_bytes": 1e9,
    "instructions_executed": 1e8,
    "tensor_instructions": 0.0,
    "global_load_requests": 1e9 / 128,
    "global_load_sectors_per_request": 4.0,
}
FUSING = next(rule for rule in OF_KERNELS if rule.spans == "chain")


def of_kernels(names: Sequence[str], durations: Sequence[float] = ()) -> ReportSummary:
    """Launches of kernels that read and write as much as one another, in this order."""
    times = durations or [1e-3] * len(names)
    return report([{**STREAMING, "duration": time} for time in times], names=list(names))


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(1e-6, 1.0)), min_size=1, max_size=8),
    st.floats(0.0, 1.0),
)
def test_no_saving_exceeds_the_time_of_the_launches_it_concerns(
    launches: list[tuple[str, float]], left: float
) -> None:
    summary = of_kernels([name for name, _ in launches], [time for _, time in launches])
    rules = [structs.replace(FUSING, left=left), FUSING]
    for rule in rules:
        for finding in diagnose(summary, [rule]).findings:
            assert finding.estimate is not None
            seconds = sum(launch.duration for launch in finding.estimate.launches)
            assert len({launch.index for launch in finding.estimate.launches}) >= 2
            assert finding.saved <= seconds * (1 + 1e-9)
            assert summary.total / finding.estimate.run >= (summary.total - seconds) * 0.999
            assert finding.estimate.run <= 1 / (1 - finding.saved / summary.total) * 1.000001


def test_an_estimate_below_the_least_is_no_finding(tmp_path: Path) -> None:
    quiet = own(tmp_path, "quiet", when="dram_busy > 0.5", gives="time: 0.985")
    loud = own(tmp_path, "loud", when="dram_busy > 0.5", gives="time: 0.97", category="tail_effect")
    summary = report([{"duration": 1e-3, "dram_busy": 0.6}])
    found = checklist(summary, [quiet, loud])
    assert [(item.rank, item.rule.name) for item in found.findings] == [(1, "loud")]


def test_a_kernel_without_a_finding_is_named_beside_those_with_one(tmp_path: Path) -> None:
    rule = own(tmp_path, when="stall_wait > 1")
    summary = report([{"duration": 1e-3, "stall_wait": wait} for wait in (2.0, 0.0)])
    ((kernel, _),) = words.without_finding(checklist(summary, [rule]), summary.groups)
    assert kernel.startswith("kernel_1")


@pytest.mark.parametrize(
    "gives",
    [
        "time: 1 - stall_wait / warp_latency",
        "relieves: {dram_busy: 1 - stall_wait}",
        "takes: {tensor_busy: stall_wait}",
    ],
)
def test_no_estimate_without_what_it_is_made_of(tmp_path: Path, gives: str) -> None:
    rule = own(tmp_path, when="dram_busy > 0.5", gives=gives)
    found = diagnose(report([{"duration": 1e-3, "dram_busy": 0.9}]), [rule])
    assert found.findings == ()
    assert "stall_wait" in found.unknown[rule.name].missing


def test_no_estimate_where_a_resource_that_bounds_every_kernel_is_missing(tmp_path: Path) -> None:
    rule = own(tmp_path, when="l2_busy > 0.5")
    values = {"duration": 1e-3, "l2_busy": 0.9}
    found = diagnose(report([values], {"dram_busy": NOT_COLLECTED}), [rule])
    assert found.unknown[rule.name].missing == ("dram_busy",)
    assert all(finding.range[0] == 1.0 and finding.lacking for finding in found.findings)


@pytest.mark.parametrize("reason", [NOT_COLLECTED, NOT_IN_VERSION, "the counter returned no value"])
def test_every_rule_that_lacks_data_is_listed_whatever_the_reason(rule: Rule, reason: str) -> None:
    summary = report([{"duration": 1e-4, "dram_busy": 0.8}], {"stall_wait": reason})
    found = checklist(summary, [rule])
    assert [(one.rule, one.kernels, one.reasons) for one in found.unevaluated] == [
        ("own", 1, {"stall_wait": reason})
    ]


def test_a_unit_that_the_gpu_does_not_have_is_not_busy(tmp_path: Path) -> None:
    rule = own(tmp_path, when="tma_busy > 0.5 or dram_busy > 0.5")
    summary = report([{"duration": 1e-4, "dram_busy": 0.2}], {"tma_busy": NOT_HERE})
    assert diagnose(summary, [rule]).unknown == {}


@example([{"duration": 1.0, "stall_wait": 1.0, "warp_latency": 5e-324}])
@given(kernels)
def test_a_rule_is_fired_refused_or_listed_with_what_it_lacks(
    recorded: list[dict[str, float]],
) -> None:
    summary = report(recorded)
    found = diagnose(summary, OF_KERNELS)
    for rule in OF_KERNELS:
        still_open = [
            trial
            for trial in explain(summary, rule)
            if False not in (states := [condition.holds for condition in trial.conditions])
            if None in states or (trial.finding and trial.finding.lacking)
        ]
        assert (rule.name in found.unknown) == bool(still_open)
        if still_open:
            assert found.unknown[rule.name].kernels == len(still_open)
            assert found.unknown[rule.name].reasons


def test_nothing_found_says_whether_enough_was_there_to_find_it(tmp_path: Path) -> None:
    rules = [own(tmp_path, f"rule_{number}", when="stall_wait > 1") for number in range(3)]
    rules.append(own(tmp_path, "known", when="dram_busy > 0.9", category="tail_effect"))
    summary = report([{"duration": 1e-4, "dram_busy": 0.2}], {"stall_wait": NOT_COLLECTED})
    found = checklist(summary, rules)
    assert (found.evaluated, found.inconclusive) == (1, True)
    assert "3 of 4 rules" in words.summary(found)
    assert not checklist(summary, rules[2:]).inconclusive
    nothing = checklist(report([{"duration": math.nan}]), rules[3:])
    assert (nothing.kernels, nothing.inconclusive) == (0, True)


def test_the_time_of_a_launch_has_no_unit_s_name(tmp_path: Path) -> None:
    rule = own(tmp_path, when="dram_busy >= 0", gives="time: 0.01")
    short = {"duration": 2.5e-6, "dram_busy": 0.1, "l2_busy": 0.2}
    (finding,) = diagnose(report([short]), [rule]).findings
    assert finding.estimate is not None
    assert finding.estimate.bounded_by == LAUNCH
    assert finding.estimate.bound_seconds == pytest.approx(SHORTEST)
