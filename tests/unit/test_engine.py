"""The engine's promises, whatever the counters say."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profkit.analysis.checklist import checklist
from profkit.analysis.engine import diagnose, explain
from profkit.analysis.limits import floors
from profkit.analysis.rules import CONTEXT, Rule, shipped_rules, with_own
from profkit.analysis.summary import LaunchSummary, ReportSummary, groups
from profkit.metrics.catalog import catalog
from profkit.metrics.quantities import NOT_COLLECTED
from tests.conftest import h200

Values = Mapping[str, float]

OF_KERNELS = [rule for rule in shipped_rules() if not rule.about_timeline]
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


def report(kernels: Sequence[Values], missing: Mapping[str, str] | None = None) -> ReportSummary:
    """A report of one launch a kernel, with these quantities."""
    launch = h200("known").summary.launches[0]
    launches = tuple(
        dataclasses.replace(
            launch,
            launch=dataclasses.replace(launch.launch, index=at, name=f"kernel_{at}"),
            values=values,
            missing=missing or {},
        )
        for at, values in enumerate(kernels)
    )
    whole = h200("known").summary
    return dataclasses.replace(
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


@settings(deadline=None, max_examples=150)
@given(kernels)
def test_estimates_are_bounded(recorded: list[dict[str, float]]) -> None:
    summary = report(recorded)
    found = diagnose(summary, shipped_rules())
    for finding in found.findings:
        estimate = finding.estimate
        if estimate is None:
            assert not finding.rule.gains
            continue
        duration = finding.group.typical.duration
        assert 1 <= estimate.low <= estimate.likely * (1 + 1e-9)
        assert estimate.likely <= estimate.high * (1 + 1e-9)
        assert estimate.run >= 1
        assert duration / estimate.high >= estimate.bound_seconds * (1 - 1e-9)
        if finding.rule.spans_previous:
            continue
        unrelieved = [
            floor.seconds
            for floor in floors(finding.group.typical.values)
            if floor.resource not in finding.rule.relieves
        ]
        highest = min(max(unrelieved, default=0.0), duration)
        assert duration / estimate.high >= highest * (1 - 1e-9)
        assert 0 <= finding.saved < finding.group.total
    saved = [finding.saved for finding in found.findings]
    assert saved == sorted(saved, reverse=True)
    assert len({(f.rule.category, f.group.name) for f in found.findings}) == len(found.findings)


@settings(deadline=None, max_examples=25)
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
    assert found.unknown == {"own": ("stall_wait",)}
    (open_,) = checklist(summary, [rule]).unevaluated
    assert open_.missing == ("stall_wait",)
    assert open_.sections == ("WarpStateStats",)


def test_what_is_missing_does_not_matter_where_another_side_is_false(rule: Rule) -> None:
    found = diagnose(report([{"duration": 1e-4, "dram_busy": 0.2}]), [rule])
    assert found.findings == ()
    assert found.unknown == {}


def test_ranking_is_by_time_saved_over_the_report(rule: Rule) -> None:
    fires = {"dram_busy": 0.6, "stall_wait": 2.0}
    found = diagnose(report([{"duration": t, **fires} for t in (1e-5, 3e-5, 2e-5)]), [rule])
    assert [finding.group.name for finding in found.findings] == [
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


def test_the_checklist_tells_limits_of_the_same_weight(tmp_path: Path) -> None:
    rules = [
        own(tmp_path, "one", gives="time: 0.70"),
        own(tmp_path, "two", gives="time: 0.71", category="memory_latency"),
        own(tmp_path, "three", gives="time: 0.9", category="barrier_stalls"),
    ]
    summary = report([{"duration": 1e-4, "dram_busy": 0.6, "stall_wait": 2.0}])
    found = checklist(summary, rules)
    assert [item.rule.name for item in found.items] == ["one", "two", "three"]
    assert [item.peers for item in found.items] == [(2,), (1,), ()]


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

    def sampling(launch: LaunchSummary) -> None:
        asked.append(launch.name)

    wanted = own(tmp_path, when="linked_share > 0.5 and dram_busy > 0 or dram_busy > 0.5")
    found = diagnose(report([{"duration": 1e-3, "dram_busy": 0.9}]), [wanted], sampling=sampling)
    assert [finding.rule for finding in found.findings] == [wanted]
    assert asked == ["kernel_0"]
    asked.clear()
    first = own(tmp_path, when='linked_share > 0.5", "dram_busy > 0.5')
    kernels = [{"duration": 1e-3, "dram_busy": busy} for busy in (0.9, 0.1)]
    assert diagnose(report(kernels), [first], sampling=sampling).findings == ()
    assert asked == ["kernel_0"]
