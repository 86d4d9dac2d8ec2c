"""Causes of a change of time: that they add up, mirror, and name what moved."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.comparison.attribution import Attribution, Cause, CauseKind, logarithmic_mean, split
from profkit.comparison.text import label

KEYS = ("instructions", "reissues", "warps_resident", "sms_with_work", "clock")
STATES = ("selected", "wait", "long_scoreboard", "barrier", "gmma")

positive = st.floats(1e-6, 1e9)
times = st.floats(1e-7, 1e3)
some_factors = st.dictionaries(st.sampled_from(KEYS), positive)
all_factors = st.fixed_dictionaries(dict.fromkeys(KEYS, positive))
some_stalls = st.dictionaries(st.sampled_from(STATES), st.floats(1e-4, 1e3))
Side = tuple[float, dict[str, float], dict[str, float]]
sides = st.tuples(times, some_factors, some_stalls)


def split_sides(before: Side, after: Side) -> Attribution:
    return split(before[0], after[0], before[1], after[1], before[2], after[2])


def seconds(attribution: Attribution) -> dict[str, float]:
    return {cause.key: cause.seconds for cause in attribution.causes}


@given(sides, sides)
def test_causes_add_up_to_the_change(before: Side, after: Side) -> None:
    found = split_sides(before, after)
    scale = max(before[0], after[0], *(abs(cause.seconds) for cause in found.causes))
    assert math.isclose(
        sum(cause.seconds for cause in found.causes), after[0] - before[0], abs_tol=1e-9 * scale
    )


@given(sides, sides)
def test_swapping_the_sides_mirrors_every_cause(before: Side, after: Side) -> None:
    there, back = seconds(split_sides(before, after)), seconds(split_sides(after, before))
    assert there.keys() == back.keys()
    scale = max(before[0], after[0], *map(abs, there.values()))
    for key, value in there.items():
        assert math.isclose(value, -back[key], rel_tol=1e-6, abs_tol=1e-9 * scale)


@given(sides)
def test_nothing_changed_has_no_causes(side: Side) -> None:
    assert all(abs(cause.seconds) <= 1e-12 * side[0] for cause in split_sides(side, side).causes)


@given(
    times,
    st.dictionaries(st.sampled_from(STATES), st.floats(1e-4, 1e3), min_size=1),
    st.sampled_from(KEYS),
    st.floats(0.1, 10),
    all_factors,
)
def test_one_factor_that_moves_gets_the_whole_change(
    time: float, stalls: dict[str, float], key: str, by: float, factors: dict[str, float]
) -> None:
    """A time that follows the formula leaves nothing over."""
    grows = key in {"instructions", "reissues"}
    after = time * by if grows else time / by
    moved = factors | {key: factors[key] * by}
    found = seconds(split(time, after, factors, moved, stalls, stalls))
    assert math.isclose(found[key], after - time, rel_tol=1e-6, abs_tol=1e-9 * time)
    assert abs(found["rest"]) <= 1e-6 * max(time, after)


@given(st.floats(1e-9, 1e9), st.floats(1e-9, 1e9))
def test_logarithmic_mean_lies_between_the_geometric_and_the_arithmetic_mean(
    a: float, b: float
) -> None:
    """Carlson, American Mathematical Monthly 79 (1972)."""
    mean = logarithmic_mean(a, b)
    assert math.isclose(mean, logarithmic_mean(b, a), rel_tol=1e-6)
    assert math.sqrt(a * b) * (1 - 1e-6) <= mean <= (a + b) / 2 * (1 + 1e-6)


def test_a_split_by_hand() -> None:
    """Half the instructions, each waiting three times as long: 100 µs become 150 µs.

    L(150, 100) = 50 / ln 1.5 = 123.32 µs; times ln(1/2) = -85.48 µs, times ln 3 = +135.48 µs.
    """
    found = split(
        100e-6, 150e-6, {"instructions": 2e6}, {"instructions": 1e6}, {"wait": 2.0}, {"wait": 6.0}
    )
    assert seconds(found)["instructions"] == pytest.approx(-85.476e-6, rel=1e-4)
    assert seconds(found)["stall_wait"] == pytest.approx(135.476e-6, rel=1e-4)
    assert seconds(found)["rest"] == pytest.approx(0, abs=1e-12)


def test_a_share_that_rises_while_its_cost_falls_is_time_saved() -> None:
    """Barriers go from 50% to 80% of the waiting, and from 10 to 4 cycles an instruction."""
    before, after = {"barrier": 10.0, "wait": 10.0}, {"barrier": 4.0, "wait": 1.0}
    same = {"instructions": 1e6}
    found = seconds(split(20e-6, 5e-6, same, same, before, after))
    assert found["stall_barrier"] < 0


def test_a_state_that_is_new_costs_the_time_spent_in_it() -> None:
    same = {"instructions": 1e6}
    found = seconds(split(10e-6, 15e-6, same, same, {"wait": 2.0}, {"wait": 2.0, "barrier": 1.0}))
    assert found["stall_barrier"] == pytest.approx(5e-6)
    assert found["stall_wait"] == pytest.approx(0)


def test_what_a_side_lacks_is_named_and_left_together() -> None:
    found = split(10e-6, 5e-6, {"clock": 1e9}, {"clock": 1e9, "instructions": 5.0}, {}, {})
    assert "instructions executed" in found.missing
    assert "warp states" in found.missing
    assert seconds(found)["rest"] == pytest.approx(-5e-6)
    assert [cause.label for cause in found.causes if cause.key == "rest"] == ["not attributed"]


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("barrier", "barrier stall"),
        ("wait", "wait (fixed latency)"),
        ("selected", "selected (issuing)"),
    ],
)
def test_warp_states_in_words(reason: str, told: str) -> None:
    assert label(Cause(reason, reason, CauseKind.stall, 1e-6, 1.0, 2.0, "cycle")) == told
