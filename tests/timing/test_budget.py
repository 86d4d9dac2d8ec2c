"""How a time budget is divided over the cells of a baseline."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.timing.budget import FEWEST_IN_A_BLOCK, Outlook, level, samples_a_block

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


def outlook() -> Outlook:
    seen = Outlook({"short": 1e9, "long": 1e12}, asked=100, blocks=8, warmup=0.1)
    seen.saw_call("short", "fast", 1e-5)  # 100 TFLOP/s
    seen.saw_gap(1e-4)
    seen.saw_preparation(1.0, [1e-5])
    return seen


def test_a_call_is_expected_from_its_flop() -> None:
    long = outlook().seconds([("long", ["fast"])])
    probing = 0.3  # 65 calls would take longer
    assert long == pytest.approx(1e-2 * 104 + 104e-4 + 0.1 + probing + (1.0 - 0.1 - 65e-5))


def test_cheap_cells_get_all_samples_and_dear_ones_fewer() -> None:
    seen = outlook()
    assert seen.samples({"fast": 1e-5}, [("long", ["fast"])], math.inf) == {"fast": 13}
    assert seen.samples({"fast": 1e-5}, [("long", ["fast"])], 2.5) == {"fast": 13}
    some = seen.samples({"fast": 1e-2, "slow": 1e-1}, [], 2.0)
    assert some["fast"] > some["slow"] >= FEWEST_IN_A_BLOCK


def test_preparing_takes_fewer_of_long_calls() -> None:
    on_gpu = Outlook({"a": 1e9}, asked=24, blocks=8, warmup=0.0)
    on_cpu = Outlook({"a": 1e9}, asked=24, blocks=8, warmup=0.0, probes=1)
    for one in (on_gpu, on_cpu):
        one.saw_call("a", "x", 0.1)
        one.saw_gap(0.0)
        one.saw_preparation(0.0, [])
    assert on_gpu.seconds([("a", ["x"])]) == pytest.approx((24 + 12) * 0.1)
    assert on_cpu.seconds([("a", ["x"])]) == pytest.approx((24 + 1) * 0.1)


def test_whether_anything_fits() -> None:
    seen = outlook()
    assert seen.fits(("short", ["fast"]), 2.0)
    assert not seen.fits(("long", ["fast"]), 1.0)
    assert not seen.fits(("short", ["fast"]), 0.0)
    assert Outlook({}, 100, 8, 0.1).fits(("any", ["one"]), 0.1)  # before anything is known
