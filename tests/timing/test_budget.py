"""How a time budget is divided over the cells of a baseline."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.timing.budget import FEWEST_IN_A_BLOCK, level, samples_a_block

COSTS = st.lists(st.floats(0.001, 1000), min_size=1, max_size=30)


def test_what_fits_is_not_limited() -> None:
    assert level([1, 2, 3], 6) == math.inf
    assert level([], 0) == math.inf


def test_the_dearest_give_way_first() -> None:
    assert level([1, 1, 10], 6) == 4
    assert level([1, 8, 10], 7) == 3
    assert level([5, 5], 0) == 0


@given(costs=COSTS, share=st.floats(0.01, 0.99))
def test_limited_costs_take_what_there_is(costs: list[float], share: float) -> None:
    seconds = share * sum(costs)
    limit = level(costs, seconds)
    assert sum(min(cost, limit) for cost in costs) == pytest.approx(seconds, rel=1e-6)


@given(st.integers(1, 1000), st.integers(1, 20), st.floats(0.01, 100), st.floats(0, 100))
def test_samples_are_never_more_than_asked_for_nor_none(
    asked: int, blocks: int, cost: float, limit: float
) -> None:
    samples = samples_a_block(asked, blocks, cost, limit)
    full = math.ceil(asked / blocks)
    assert min(FEWEST_IN_A_BLOCK, full) <= samples <= full
    if cost <= limit:
        assert samples == full
