"""Recorded fixes: whose kernels are most like one, and the order that they give its findings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import profkit
from profkit.rules.calibration import shipped_calibration
from profkit.rules.memory import FEWEST, NEAREST, Fix, Memory, shipped_memory, similar
from profkit.rules.standing import remember
from tests.conftest import pair_report

SHIPPED = shipped_memory()


COMPLETE = np.flatnonzero(np.isfinite(SHIPPED.features).all(axis=1)).tolist()
PLAIN = [name for name in SHIPPED.names if name.isidentifier() and name.endswith("_busy")]


def kernel(place: int, names: Sequence[str] = (), distance: float = 0.0) -> dict[str, float]:
    """The quantities of a kernel whose features are those of a recorded one, or near them."""
    features = dict(zip(SHIPPED.names, SHIPPED.features[place] + distance, strict=True))
    values = {"warp_latency": 10.0, "instructions_executed": 1e6, "sm_count": 100.0}
    for name in names or SHIPPED.names:
        first, _, divisor = name.partition(" / ")
        if first.isidentifier() and not math.isnan(features[name]):
            values[first] = features[name] * values.get(divisor, 32.0 if divisor == "32" else 1.0)
    return values


def test_a_kernel_almost_like_a_recorded_one_is_nearest_to_it() -> None:
    assert len(COMPLETE) > 300
    for place in COMPLETE[::23]:
        nearest = SHIPPED.nearest(kernel(place, distance=0.01))
        assert len(nearest) == NEAREST
        assert SHIPPED.fixes[place] in nearest


def test_the_recorded_kernel_itself_has_no_vote() -> None:
    report = profkit.load(pair_report("transpose_conflicts", "before"))
    values = report.summary.groups[0].typical.values
    assert "transpose_conflicts" not in {fix.name for fix in SHIPPED.nearest(values)}
    family = next(fix.family for fix in SHIPPED.fixes if fix.name == "transpose_conflicts")
    assert SHIPPED.votes(values) == SHIPPED.without({family}).votes(values)


def test_votes_are_the_posterior_of_two_classes_by_hand() -> None:
    """Of one feature and two categories, as many of each: means -1 and 1 in deviations, shrunk by
    one average kernel, and their variance within, regularized."""
    fixes = [Fix("kernel", name, "source", "GPU", name, 2.0) for name in ("low", "high")] * 10
    names = (*("dram_busy",), *(f"l{index}" for index in range(FEWEST)))
    rows = np.zeros((20, len(names)))
    rows[:, 0] = [0.2, 0.6] * 10
    memory = Memory(tuple(fixes), names, rows)
    votes = memory.votes(dict.fromkeys(names, 0.0) | {"dram_busy": 0.5})
    mean, within = 10 / 11, (1 / 11) ** 2
    odds = 2 * mean * 0.5 / (0.7 * within + 0.3) / 2
    assert votes["high"] == pytest.approx(1 / (1 + math.exp(-odds)))
    assert sum(votes.values()) == pytest.approx(1.0)


def test_what_was_not_recorded_is_left_out_and_not_0() -> None:
    """By its resources alone the same kernel is found: stalls of 0 would be those of another."""
    for place in COMPLETE[::29]:
        nearest = SHIPPED.nearest(kernel(place, PLAIN, distance=0.002))
        assert SHIPPED.fixes[place].name in {fix.name for fix in nearest}


@given(st.sets(st.sampled_from(PLAIN), max_size=FEWEST - 1))
def test_too_little_of_a_kernel_is_like_none(names: set[str]) -> None:
    values = dict.fromkeys(names, 0.5)
    assert SHIPPED.nearest(values) == ()
    assert SHIPPED.votes(values) == {}


def test_a_family_can_be_left_out() -> None:
    family = SHIPPED.fixes[0].family
    others = SHIPPED.without({family})
    assert family not in {fix.family for fix in others.fixes}
    assert len(others.features) == len(others.fixes) < len(SHIPPED.fixes)
    assert len({fix.gpu for fix in SHIPPED.fixes}) >= 15
    assert all(fix.gain >= 1.05 for fix in SHIPPED.fixes)


def test_a_source_can_be_left_out() -> None:
    published = {fix.source for fix in SHIPPED.fixes} - {"profkit"}
    left = SHIPPED.without((), published)
    assert {fix.source for fix in left.fixes} == {"profkit"}
    assert len(left.features) == len(left.fixes)


def votes_for(category: str) -> Memory:
    """A memory of kernels that are all alike, and of one category."""
    fix = Fix("kernel", "family", "source", "GPU", category, 3.0)
    return Memory((fix,) * NEAREST, SHIPPED.names, np.zeros((NEAREST, len(SHIPPED.names))))


def test_fixes_of_kernels_alike_reorder_the_findings_of_a_kernel() -> None:
    checklist = profkit.load(pair_report("occupancy_block_size", "before")).checklist()
    first, second, *_ = checklist.items
    swapped = checklist.remembering(votes_for(second.rule.category), shipped_calibration())
    assert [item.rule for item in swapped.items[:2]] == [second.rule, first.rule]
    assert [item.rank for item in swapped.items] == list(range(1, len(swapped.items) + 1))
    assert {item.speedup for item in swapped.items} == {item.speedup for item in checklist.items}
    forgetful = replace(SHIPPED, features=SHIPPED.features * math.nan)
    unlike = remember(checklist.items, forgetful, shipped_calibration())
    assert [each.rule for each in unlike] == [
        each.rule for each in sorted(checklist.items, key=lambda each: -each.saved)
    ]


def test_a_finding_names_the_fixes_of_kernels_alike() -> None:
    of = similar(votes_for("grid_too_small"), kernel(COMPLETE[0]))
    alike, none = of("grid_too_small"), of("memory_latency")
    assert (len(alike.fixes), alike.among, alike.gains) == (NEAREST, NEAREST, (3.0, 3.0))
    assert none.fixes == ()
    assert 0 < none.weight < alike.weight
    assert similar(SHIPPED, {})("memory_latency").weight == pytest.approx(alike.weight)
