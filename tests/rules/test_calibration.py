"""Ranges of estimates from residuals of recorded pairs."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.fixes import OWN
from kernels.residuals import FILE, residuals
from profkit.rules.calibration import (
    LEVEL,
    SATURATED,
    SPREAD,
    Calibration,
    Residual,
    shipped_calibration,
)
from tests.conftest import ROOT
from tests.score.test_score import recorded

factors = st.floats(1.0, 1000.0)
rows = st.builds(
    Residual,
    st.sampled_from("abcdefghijkl"),
    st.sampled_from(["counted", "assumed"]),
    factors,
    st.floats(0.5, 1000.0),
)


def measured_from(estimated: float, relative: float) -> float:
    return estimated * math.exp(relative * (min(math.log(estimated), SATURATED) + SPREAD))


STEPS = [(place - 14) / 14 for place in range(29)]
ONCE = tuple(Residual(f"{step}", "counted", 1.4, measured_from(1.4, step)) for step in STEPS)


def test_a_range_has_the_quantiles_of_the_residuals() -> None:
    """5% of 29 families and the one to come are 1.5: the first from either end."""
    low, high = Calibration(ONCE).range("counted", 3.0)
    assert high == pytest.approx(measured_from(3.0, 1.0))
    assert low == pytest.approx(measured_from(3.0, -1.0))
    assert Calibration(ONCE).range("counted", 1.1)[0] == 1  # nothing gets slower by a fix
    assert Calibration(ONCE).range("assumed", 3.0) == pytest.approx((3, 3))  # no such pairs


def test_a_family_counts_once() -> None:
    often = Calibration((*ONCE, *[ONCE[-1]] * 20))
    assert often.range("counted", 2.0) == pytest.approx(Calibration(ONCE).range("counted", 2.0))


@given(st.lists(rows, max_size=40), st.lists(factors, min_size=2, max_size=6))
def test_ranges_hold_their_estimate_and_grow_with_it(
    made: list[Residual], estimated: list[float]
) -> None:
    calibration = Calibration(tuple(made))
    ranges = [calibration.range("counted", factor) for factor in sorted(estimated)]
    for factor, (low, high) in zip(sorted(estimated), ranges, strict=True):
        assert 1 <= low <= factor * (1 + 1e-9)
        assert factor <= high * (1 + 1e-9)
    for ends in zip(*ranges, strict=True):
        assert all(first <= last * (1 + 1e-9) for first, last in itertools.pairwise(ends))


def test_ranges_from_half_of_the_pairs_hold_the_other_half() -> None:
    random = np.random.default_rng(1)
    held = []
    for _ in range(40):
        estimated = np.exp(random.uniform(0.2, 2.5, 200))
        drawn = random.normal(0, 0.15, 200)
        made = [
            Residual(str(place), "assumed", float(factor), measured_from(float(factor), error))
            for place, (factor, error) in enumerate(zip(estimated, drawn, strict=True))
        ]
        calibration = Calibration(tuple(made[:100]))
        for other in made[100:]:
            low, high = calibration.range("assumed", other.estimated)
            held.append(low <= other.measured <= high)
    assert LEVEL <= np.mean(held) <= LEVEL + 0.12  # wider: kernels to come differ more


def test_a_family_can_be_left_out() -> None:
    shipped = shipped_calibration()
    family = shipped.residuals[0].family
    left = shipped.without({family})
    others = {each.family for each in shipped.residuals} - {family}
    assert {each.family for each in left.residuals} == others
    assert left.without({family}) is left


def test_the_shipped_residuals_are_those_of_the_recorded_pairs() -> None:
    text = (ROOT / FILE).read_text(encoding="utf-8")
    published = [row for row in json.loads(text) if row["source"] != OWN]
    assert text == residuals(recorded()["pairs"], published), "run `python -m kernels.residuals`"
    assert len(published) > 150
