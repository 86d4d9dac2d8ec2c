"""Distributions and tests over ranks against scipy's, of which the package itself needs nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage, special, stats

from profkit.core.distributions import (
    binomial_above,
    binomial_cdf,
    chi_square_quantile,
    median_rank,
    normal_cdf,
    normal_quantile,
    t_cdf,
    t_quantile,
)
from profkit.report.phases import _smoothed
from profkit.timing.statistics import mann_whitney, ranks

FREEDOMS = st.floats(1, 2000)
PROBABILITIES = st.floats(1e-4, 1 - 1e-4)
VALUES = st.lists(st.integers(0, 12).map(float), min_size=1, max_size=30)


def close(expected: float) -> object:
    """Equal to 11 digits; scipy's own last ones depend on its version."""
    return pytest.approx(float(expected), rel=1e-11)


@given(st.floats(-37, 8))
def test_the_normal_distribution(z: float) -> None:
    assert normal_cdf(z) == close(special.ndtr(z))


@given(PROBABILITIES)
def test_normal_quantiles(p: float) -> None:
    assert normal_quantile(p) == pytest.approx(float(special.ndtri(p)), rel=1e-11, abs=1e-14)


@given(st.floats(-60, 60), FREEDOMS)
def test_students_t(t: float, freedom: float) -> None:
    assert t_cdf(t, freedom) == close(special.stdtr(freedom, t))


@given(st.floats(0.51, 0.99999), FREEDOMS)
def test_quantiles_of_students_t(p: float, freedom: float) -> None:
    assert t_quantile(p, freedom) == close(special.stdtrit(freedom, p))
    assert t_cdf(t_quantile(1 - p, freedom), freedom) == pytest.approx(1 - p, rel=1e-10)


@given(PROBABILITIES, FREEDOMS)
def test_quantiles_of_chi_square(p: float, freedom: float) -> None:
    assert chi_square_quantile(p, freedom) == close(stats.chi2.ppf(p, freedom))


@given(st.integers(-1, 400), st.integers(1, 400), st.floats(0.001, 1))
def test_binomial_tails(k: int, n: int, p: float) -> None:
    expected = stats.binom.cdf(k, n, p)
    assert binomial_cdf(k, n, p) == pytest.approx(expected, rel=1e-9, abs=1e-14)
    assert binomial_above(k, n, p) == pytest.approx(stats.binom.sf(k, n, p), rel=1e-9, abs=1e-290)


@pytest.mark.parametrize("n", [*range(6, 400), 1000, 9_999, 1_000_000])
def test_the_rank_where_a_medians_interval_begins(n: int) -> None:
    tail = 0.025
    rank = median_rank(n, 0.95)
    assert stats.binom.cdf(rank, n, 0.5) <= tail < stats.binom.cdf(rank + 1, n, 0.5)


@given(VALUES)
def test_ranks(values: list[float]) -> None:
    assert ranks(np.array(values)).tolist() == stats.rankdata(values).tolist()


@settings(deadline=None)
@given(VALUES, VALUES)
def test_mann_whitney_of_ties(a: list[float], b: list[float]) -> None:
    expected = stats.mannwhitneyu(a, b, method="asymptotic")
    assert mann_whitney(np.array(a), np.array(b)) == (
        expected.statistic,
        close(expected.pvalue),
    )


@pytest.mark.parametrize("sizes", [(3, 4), (8, 300), (500, 2), (9, 9), (300, 200)])
def test_mann_whitney(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    for shift in (0.0, 0.4, 9.0):
        a, b = rng.normal(shift, size=sizes[0]), rng.normal(size=sizes[1])
        expected = stats.mannwhitneyu(a, b, method="asymptotic")
        assert mann_whitney(a, b) == (expected.statistic, close(expected.pvalue))


@given(st.lists(st.floats(0, 100), max_size=40))
def test_smoothing_is_a_median_filter(values: list[float]) -> None:
    given = np.array(values)
    size = min(5, len(values))
    expected = ndimage.median_filter(given, size=size, mode="constant") if size else given
    assert _smoothed(given).tolist() == expected.tolist()
