"""Rules about timelines: made-up ones that wait for launches, for the host and for copies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.report.floors import WORTH
from profkit.rules.checklist import timeline_items
from profkit.rules.engine import diagnose_timeline, explain_timeline
from profkit.rules.finding import Finding, unit_of
from profkit.rules.rule_file import check_rules, shipped_rules
from profkit.timeline.events import Events
from profkit.timeline.region import PARTS, QUANTITIES, SHORT_GAP, measure
from tests.conftest import ROOT
from tests.timeline.building import call, copy, kernel, timeline
from tests.timeline.test_timeline import US, intervals

LONG = SHORT_GAP / US * 5


def found(made: Events) -> tuple[Finding, ...]:
    return timeline_items(measure(made), shipped_rules())


def steps(count: int, work: float, gap: float) -> Events:
    """Kernels of a length, each after a gap."""
    starts = [at * (work + gap) for at in range(count)]
    return timeline([kernel(start, start + work) for start in starts])


def test_the_parts_of_the_region() -> None:
    made = timeline(
        [kernel(100, 110), kernel(150, 160), kernel(960, 990)],
        [call(0, 5), call(120, 130, "cudaStreamSynchronize"), call(200, 900, "cudaMalloc")],
        [copy(105, 120, 3_000), copy(990, 1_000, 1_000, source="pinned")],
    )
    told = measure(made)
    assert set(told) == set(QUANTITIES)
    assert told["gpu_span"] == pytest.approx(900 * US)
    assert told["gpu_busy_share"] == pytest.approx(70 / 900)
    assert told["short_gap_share"] == pytest.approx(30 / 900)
    assert told["long_gap_share"] == pytest.approx(800 / 900)
    assert told["host_copy_share"] == pytest.approx(20 / 900)
    assert (told["short_gaps"], told["long_gaps"], told["kernel_launches"]) == (1, 1, 3)
    assert told["gap_longest"] == pytest.approx(800 * US)
    assert told["host_copies"] == 2
    assert told["host_copy_bytes"] == 4_000
    assert told["host_copy_bandwidth"] == pytest.approx(4_000 / (25 * US))
    assert told["pageable_share"] == pytest.approx(0.75)
    assert (told["synchronizing_calls"], told["allocating_calls"]) == (1, 1)


@given(st.lists(intervals, max_size=12), st.lists(intervals, max_size=6))
def test_no_estimate_takes_more_than_its_part(
    kernels: Sequence[tuple[float, float]], copies: Sequence[tuple[float, float]]
) -> None:
    made = timeline(
        [kernel(100 * start, 100 * end) for start, end in kernels],
        memory=[copy(100 * start, 100 * end, 8) for start, end in copies],
    )
    told = measure(made)
    if not told:
        return
    gaps = told["short_gap_share"] + told["long_gap_share"]
    assert told["gpu_busy_share"] + gaps == pytest.approx(1, abs=1e-6)
    assert 0 <= told["host_copy_share"] <= told["gpu_busy_share"] + 1e-9
    for finding in diagnose_timeline(told, shipped_rules()).findings:
        (part,) = finding.rule.relieves
        estimate = finding.estimate
        assert estimate is not None
        assert estimate.high >= WORTH  # all of it may be copies, which hide behind nothing
        assert 1 <= estimate.low <= estimate.likely <= estimate.high
        assert 1 / estimate.high >= min(1 - told[part], 1) - 1e-9
        assert 0 <= finding.saved <= told[part] * told["gpu_span"] + 1e-12


def test_short_kernels_wait_for_launches() -> None:
    (item,) = found(steps(50, work=4, gap=6))
    estimate = item.estimate
    assert (item.rule.name, item.group) == ("launch_overhead", None)
    assert estimate is not None
    assert estimate.likely == pytest.approx(494 / (50 * 4 + 49 * 1.3))
    assert estimate.high == pytest.approx(494 / 200)
    assert any("CUDA graph" in action for action in item.actions)


def test_queued_kernels_wait_for_nothing() -> None:
    assert found(steps(500, work=4, gap=1.2)) == ()
    assert found(steps(5, work=4, gap=6)) == ()
    assert found(timeline([kernel(0, 10)])) == ()
    assert found(timeline()) == ()
    assert found(timeline([kernel(5, 5)])) == ()


@pytest.mark.parametrize(("work", "likely"), [(LONG, 2.0), (3 * LONG, 4 / 3), (LONG / 9, 10 / 9)])
def test_long_gaps_are_the_host_s(work: float, likely: float) -> None:
    (item,) = found(steps(200, work=work, gap=LONG))
    estimate = item.estimate
    assert item.rule.name == "gpu_idle"
    assert estimate is not None
    assert estimate.likely == pytest.approx(likely, rel=0.02)
    assert estimate.high == pytest.approx((work + LONG) / work, rel=0.02)


def test_copies_alone_take_time_and_overlapping_ones_do_not() -> None:
    kernels = [kernel(at, at + 60) for at in range(0, 1_000, 100)]
    (item,) = found(timeline(kernels, memory=[copy(k.end, k.end + 40, 9) for k in kernels]))
    assert item.rule.name == "host_transfers"
    assert item.estimate is not None
    assert item.estimate.likely == pytest.approx(1 / 0.6)
    assert item.saved == pytest.approx(400 * US)
    seen = {told.quantity: told.value for told in item.evidence}
    assert seen["pageable_share"] == 1
    overlapping = [copy(k.start, k.end, 9) for k in kernels]
    busy = [kernel(at, at + 100) for at in range(0, 1_000, 100)]
    assert found(timeline(busy, memory=overlapping)) == ()
    on_device = [copy(k.end, k.end + 40, 9, kind="device to device") for k in kernels]
    assert found(timeline(kernels, memory=on_device)) == ()


def test_most_time_saved_comes_first_and_rules_can_be_left_out() -> None:
    kernels = [kernel(at, at + 300) for at in range(0, 10_000, 1_000)]
    made = timeline(kernels, memory=[copy(k.end, k.end + 200, 9) for k in kernels])
    told = measure(made)
    items = timeline_items(told, shipped_rules())
    assert [item.rule.name for item in items] == ["gpu_idle", "host_transfers"]
    assert [item.rank for item in items] == [1, 2]
    (left,) = timeline_items(told, shipped_rules(), ["launch_overhead"])
    assert left.rule.name == "host_transfers"


def test_what_a_rule_makes_of_a_timeline_without_kernels_is_unknown() -> None:
    (rule,) = [rule for rule in shipped_rules() if rule.name == "gpu_idle"]
    trial = explain_timeline({"gpu_span": 1.0}, rule)
    assert trial.finding is None
    assert trial.conditions[0].holds is None
    assert trial.conditions[0].missing.keys() == {"long_gap_share"}


RULE = """\
rules:
- name: own
  about: timeline
  category: launch_overhead
  title: A title
  explanation: An explanation.
  when: [long_gap_share > 0.5]
  relieves: {long_gap_share: 0.5}
  actions: [Do this.]
  verify: [long_gap_share falls]
"""


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("when: [long_gap_share", "when: [dram_busy", "7: unknown quantity 'dram_busy'"),
        ("when: [long_gap_share", "when: [long_gap_shar", "did you mean long_gap_share?"),
        ("{long_gap_share", "{gpu_span", "8: unknown resource 'gpu_span'"),
        ("{long_gap_share", "{dram_busy", "8: unknown resource 'dram_busy'"),
        (
            "timeline\n",
            "timelin\n",
            "3: about: invalid enum value 'timelin'; did you mean timeline?",
        ),
        ("about: timeline\n", "about: kernel\n", "7: unknown quantity 'long_gap_share'"),
        (
            "  actions",
            "  blame: samples\n  actions",
            "9: 'blame' is not valid in a rule about a timeline",
        ),
        (
            "  actions",
            "  spans: chain\n  actions",
            "9: 'spans' is not valid in a rule about a timeline",
        ),
    ],
)
def test_names_are_those_of_a_timeline(tmp_path: Path, right: str, wrong: str, told: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(RULE, encoding="utf-8")
    ((rule,), faults) = check_rules(file)
    assert faults == ()
    assert rule.about == "timeline"
    file.write_text(RULE.replace(right, wrong), encoding="utf-8")
    assert any(told in str(fault) for fault in check_rules(file)[1])


def test_own_rules_may_relieve_a_share_and_need_no_time_or_only_inform(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    told = measure(steps(100, work=LONG, gap=3 * LONG))
    file.write_text(RULE, encoding="utf-8")
    ((finding,), _) = diagnose_timeline(told, check_rules(file)[0]).findings, None
    assert finding.estimate is not None
    assert finding.estimate.likely == pytest.approx(1 / (1 - 0.5 * told["long_gap_share"]))
    file.write_text(RULE.replace("  relieves: {long_gap_share: 0.5}\n", ""), encoding="utf-8")
    (informs,) = diagnose_timeline(told, check_rules(file)[0]).findings
    assert informs.estimate is None
    assert informs.saved == 0


def test_the_vocabulary_is_documented_and_has_units() -> None:
    page = (ROOT / "docs" / "reference" / "rule-files.md").read_text(encoding="utf-8")
    for name, (unit, meaning) in QUANTITIES.items():
        assert f"| `{name}` | {unit} | {meaning} |" in page
        assert unit_of(name) == unit
    assert set(PARTS) < set(QUANTITIES)
