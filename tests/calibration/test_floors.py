"""A/A floors: bounds on what runs of one build differ by, held against runs to come."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from profkit.calibration.floors import bound_factor, difference_bound, enlarged_bound, run_bound
from profkit.timing.results import Verdict
from profkit.timing.verdict import judge, margin_of

FALSE = {Verdict.REGRESSED, Verdict.IMPROVED}


def test_the_factor_by_hand() -> None:
    expected = stats.norm.ppf(0.995) * math.sqrt(8 / stats.chi2.ppf(0.05, 8))
    assert bound_factor(8) == pytest.approx(expected)
    assert [round(bound_factor(n), 1) for n in (1, 3, 8, 16)] == [41.1, 7.5, 4.4, 3.7]
    assert bound_factor(1_000_000) == pytest.approx(stats.norm.ppf(0.995), rel=0.01)


@pytest.mark.parametrize("pairs", [1, 3, 8, 16])
def test_one_in_twenty_floors_is_exceeded_by_more_than_stated(pairs: int) -> None:
    rng = np.random.default_rng(0)
    sd = 0.007
    floors = np.array([difference_bound(list(row)) for row in rng.normal(0, sd, (4000, pairs))])
    exceeded = 2 * stats.norm.sf(np.log1p(floors) / sd)
    assert 0.94 < np.mean(exceeded <= 0.01) < 0.96
    runs = [run_bound(list(np.exp(row))) for row in rng.normal(0, sd, (4000, 2 * pairs))]
    exceeded = 2 * stats.norm.sf(np.log1p(runs) / (sd * math.sqrt(2)))
    assert 0.94 < np.mean(exceeded <= 0.01) < 0.96


@pytest.mark.parametrize("process", [0.005, 0.01])
def test_a_calibrated_floor_holds_its_one_percent(process: float) -> None:
    """Two interleaved processes, each with an offset, after a calibration on eight pairs."""
    rng = np.random.default_rng(0)
    false = 0
    for _ in range(1000):
        offsets = np.diff(process * rng.standard_normal((9, 2)), axis=1)[:, 0]
        margin = margin_of(0.01, difference_bound(list(offsets[:-1])))
        ratios = offsets[-1] + 0.003 * rng.standard_normal(8)
        false += judge(ratios, margin).verdict in FALSE
    assert false <= 10


def test_more_processes_give_the_stated_floor() -> None:
    scatter = [0.01, -0.01, 0.02, -0.02]
    assert enlarged_bound(difference_bound(scatter), 4, 8) == pytest.approx(
        difference_bound(scatter * 2)
    )
    assert difference_bound([0.0] * 3) == 0


def test_runs_that_differ_by_magnitudes_have_a_finite_floor() -> None:
    assert math.isfinite(difference_bound([20.0]))
