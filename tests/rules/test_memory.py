"""Recorded fixes: whose kernels are most like one, and the order that they give its findings."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import profkit
from profkit.rules.memory import FEWEST, NEAREST, Fix, Memory, shipped_memory, similar
from profkit.rules.standing import remember
from tests.conftest import pair_report

SHIPPED = shipped_memory()


def quantities(
    place: int, names: tuple[str, ...] = SHIPPED.names, distance: float = 0.003
) -> dict[str, float]:
    """The quantities of a kernel at a distance of a recorded one, as a report has them, of a
    latency of 10 cycles."""
    reach = {"dram_busy": 0.95, "tensor_busy": 0.94}
    features = dict(zip(SHIPPED.names, SHIPPED.features[place] + distance, strict=True))
    known = {name: features[name] for name in names if not math.isnan(features[name])}
    return {"warp_latency": 10.0} | {
        name: share * (10 if name.startswith("stall_") else reach.get(name, 1.0))
        for name, share in known.items()
    }


def test_a_kernel_almost_like_a_recorded_one_is_nearest_to_it() -> None:
    for place in range(0, len(SHIPPED.fixes), 7):
        nearest = SHIPPED.nearest(quantities(place))
        assert len(nearest) == NEAREST
        assert SHIPPED.fixes[place] in nearest


def test_the_recorded_kernel_itself_has_no_vote() -> None:
    for place, fix in enumerate(SHIPPED.fixes):
        assert fix not in SHIPPED.nearest(quantities(place, distance=0.0))
    first = profkit.load(pair_report("transpose_conflicts", "before")).checklist().items[0]
    assert first.similar
    assert "transpose_conflicts" not in {fix.name for fix in first.similar.fixes}


def test_what_was_not_recorded_is_left_out_and_not_0() -> None:
    """By its resources alone the same kernel is found: stalls of 0 would be those of another."""
    names = tuple(name for name in SHIPPED.names if not name.startswith("stall_"))
    for place in range(0, len(SHIPPED.fixes), 11):
        if np.count_nonzero(np.isfinite(SHIPPED.features[place][: len(names)])) == len(names):
            nearest = SHIPPED.nearest(quantities(place, names))
            assert SHIPPED.fixes[place].name in {fix.name for fix in nearest}


@given(st.sets(st.sampled_from(SHIPPED.names), max_size=FEWEST - 1))
def test_too_little_of_a_kernel_is_like_none(names: set[str]) -> None:
    assert SHIPPED.nearest(quantities(0, tuple(names))) == ()


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
    checklist = profkit.load(pair_report("transpose_conflicts", "before")).checklist()
    first, second, *_ = checklist.items
    assert first.speedup > second.speedup
    swapped = checklist.remembering(votes_for(second.rule.category))
    assert [item.rule for item in swapped.items[:2]] == [second.rule, first.rule]
    assert [item.facet_of for item in swapped.items[1:]] == [second.rule.name] * len(
        swapped.items[1:]
    )
    assert {item.speedup for item in swapped.items} == {item.speedup for item in checklist.items}
    unlike = remember(checklist.items, replace(SHIPPED, features=SHIPPED.features * math.nan))
    assert [each.rule for each in unlike] == [
        each.rule for each in sorted(checklist.items, key=lambda each: -each.saved)
    ]


def test_a_finding_names_the_fixes_of_kernels_alike() -> None:
    alike = similar(votes_for("grid_too_small").fixes, "grid_too_small")
    assert (len(alike.fixes), alike.among, alike.gains) == (NEAREST, NEAREST, (3.0, 3.0))
    none = similar(votes_for("grid_too_small").fixes, "memory_latency")
    assert none.fixes == ()
    assert 0 < none.weight < alike.weight
    assert similar((), "memory_latency").weight == pytest.approx(alike.weight)
