"""The statistics of one run against hand calculations, scipy, their laws and recorded runs."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from profkit.core.errors import BadInput
from profkit.timing.results import Claim, Interval, Reason, Separation, State
from profkit.timing.statistics import (
    bootstrap_median,
    bootstrap_tail,
    classic,
    correlation_p_value,
    effective_size,
    find_tick,
    intervals_apart,
    rank_correlation,
    samples_needed,
    summarize,
)
from tests.conftest import L4, needs_l4

RECORDED = sorted(L4.glob("*.json"))
TICK = 1.024e-6
Array = npt.NDArray[np.float64]

runs = st.lists(st.floats(1e-6, 1e-2), min_size=1, max_size=80).map(np.array)


def normal(n: int, seed: int = 0, median: float = 60e-6, cv: float = 0.01) -> Array:
    return median * (1 + cv * np.random.default_rng(seed).standard_normal(n))


def as_events(times: Array) -> Array:
    """Times as CUDA events hand them over: float32 milliseconds."""
    return (times * 1e3).astype(np.float32).astype(np.float64) / 1e3


def recorded(name: str) -> tuple[Array, dict[str, Any]]:
    data = json.loads((L4 / f"{name}.json").read_text())
    return np.array(data["raw_latencies"]) / 1e3, data["statistics"]


def test_moments_by_hand() -> None:
    summary = summarize([1.0, 2.0, 3.0, 6.0])
    assert (summary.n, summary.median, summary.mean) == (4, 2.5, 3.0)
    assert summary.std == pytest.approx((14 / 3) ** 0.5)
    assert summary.cv == pytest.approx((14 / 3) ** 0.5 / 3)


def test_samples_that_percentiles_need() -> None:
    assert [samples_needed(q) for q in (0.05, 0.9, 0.95, 0.99)] == [72, 36, 72, 368]
    for q in (0.05, 0.9, 0.95, 0.99):
        n = samples_needed(q)
        assert max(q, 1 - q) ** n <= 0.025 < max(q, 1 - q) ** (n - 1)


def test_percentiles_below_what_they_need_have_no_value() -> None:
    values = {p.q: p.value for p in summarize(normal(71)).percentiles}
    assert values[0.9] == pytest.approx(np.quantile(normal(71), 0.9))
    assert values[0.05] is values[0.95] is values[0.99] is None
    assert all(p.value is not None for p in summarize(normal(368)).percentiles)


@pytest.mark.parametrize("n", [30, 31, 100, 101])
def test_bootstrap_is_that_of_scipy(n: int) -> None:
    times = normal(n, seed=n)
    expected = stats.bootstrap(
        (times,),
        np.median,
        n_resamples=10_000,
        method="percentile",
        confidence_level=1 - 2 * bootstrap_tail(n),
        rng=np.random.default_rng(1),
    ).confidence_interval
    ordered = np.sort(times)
    for end, wanted in zip(bootstrap_median(times, n), expected, strict=True):
        assert abs(np.searchsorted(ordered, end) - np.searchsorted(ordered, wanted)) <= 1


def test_bootstrap_tail_is_the_expanded_percentile() -> None:
    t = stats.t.ppf(0.975, 29)
    assert bootstrap_tail(30) == pytest.approx(stats.norm.cdf(-t * (30 / 29) ** 0.5))
    assert bootstrap_tail(100_000) == pytest.approx(0.025, rel=1e-3)


@pytest.mark.parametrize(("n", "rank"), [(6, 1), (10, 2), (20, 6), (30, 10), (100, 40)])
def test_order_interval_has_the_published_ranks(n: int, rank: int) -> None:
    interval = summarize(np.random.default_rng(0).permutation(np.arange(1.0, n + 1))).order_interval
    assert interval is not None
    assert interval.tick is not None
    assert interval.low + interval.tick == rank
    assert interval.high - interval.tick == n + 1 - rank
    assert 1 - 2 * stats.binom.cdf(rank - 1, n, 0.5) >= 0.95 > 1 - 2 * stats.binom.cdf(rank, n, 0.5)


def test_order_interval_is_that_of_scipys_quantile_test() -> None:
    times = normal(200)
    expected = stats.quantile_test(times, q=60e-6).confidence_interval(0.95)
    interval = summarize(times).order_interval
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), rel=1e-3)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_below_six_samples_there_is_no_interval(n: int) -> None:
    summary = summarize(normal(n))
    assert summary.interval is None
    assert summary.order_interval is None
    assert summary.tick is None
    assert summary.refused is Reason.TOO_FEW
    assert summary.independence.state is State.UNKNOWN
    assert (summary.std is None) == (n == 1)


@pytest.mark.parametrize("n", [6, 30, 64, 65, 100, 1000])
def test_a_run_alone_states_no_level(n: int) -> None:
    summary = summarize(normal(n))
    for interval in (summary.interval, summary.order_interval):
        assert interval is not None
        assert (interval.claim, interval.level) == (Claim.WITHIN_RUN, None)
    state = State.INDEPENDENT if n >= 65 else State.UNKNOWN
    assert summary.independence.state is state


def test_constant_samples() -> None:
    unknown, known = summarize([59 * TICK] * 100), summarize([59 * TICK] * 100, tick=TICK)
    assert unknown.refused is Reason.CONSTANT
    assert unknown.autocorrelation is None
    assert unknown.drift is None
    assert unknown.interval is None
    assert known.interval == Interval(58 * TICK, 60 * TICK, None, Claim.WITHIN_RUN, TICK)
    assert known.independence.reasons == (Reason.CONSTANT,)


@pytest.mark.parametrize("bad", [[], [[1.0, 2.0]], [1.0, float("nan")], [0.0], [-1.0], ["a"]])
def test_bad_samples_are_refused(bad: Any) -> None:
    with pytest.raises(BadInput):
        summarize(bad)
    with pytest.raises(BadInput):
        summarize([1.0, float("inf")])


def test_many_samples_are_quick_and_the_same_every_time() -> None:
    times = normal(100_000)
    summarize(times)
    started = time.process_time()
    first = summarize(times)
    assert time.process_time() - started < 20
    assert summarize(times) == first


def test_rank_correlation_by_hand() -> None:
    assert rank_correlation(np.array([1.0, 2.0, 3.0, 4.0, 5.0])) == pytest.approx(1 - 4 / 10 / 2)
    assert rank_correlation(np.array([1.0, 5.0, 2.0, 4.0, 3.0])) == pytest.approx(1 - 30 / 10 / 2)
    assert rank_correlation(np.array([2.0, 2.0, 2.0])) is None


def test_correlation_p_value_is_that_of_all_permutations() -> None:
    orders = np.array(list(itertools.permutations(range(8))))
    found = 1 - (np.diff(orders) ** 2).sum(axis=1) / 42 / 2
    assert rank_correlation(orders[1000].astype(float)) == pytest.approx(found[1000])
    assert found.mean() == pytest.approx(0)
    for correlation in (0.3, 0.5):
        exact = float((found >= correlation).mean())
        assert correlation_p_value(correlation, 8) == pytest.approx(exact, abs=0.01)


def test_effective_size_of_an_ar_series() -> None:
    assert effective_size(1000, 0.5) == pytest.approx(1000 / 3, rel=0.01)
    assert effective_size(1000, -0.5) == 1000
    assert effective_size(24, 0.9) == 1  # by the formula 0.12, which no series is worth


def autoregressive(n: int, rho: float, seed: int) -> Array:
    steps: Array = np.random.default_rng(seed).standard_normal(n) * (1 - rho**2) ** 0.5
    for i in range(1, n):
        steps[i] += rho * steps[i - 1]
    return 60e-6 * (1 + 0.01 * steps)


def test_autocorrelated_samples_have_a_widened_interval_without_a_level() -> None:
    times = autoregressive(200, 0.5, seed=1)
    summary = summarize(times)
    assert summary.independence.state is State.NOT_INDEPENDENT
    assert Reason.AUTOCORRELATED in summary.independence.reasons
    assert summary.effective_n < 120
    assert summary.interval is not None
    assert (summary.interval.claim, summary.interval.level) == (Claim.WIDENED, None)
    low, high = bootstrap_median(times, times.size)
    assert summary.interval.high - summary.interval.low > 1.3 * (high - low)


def test_too_much_autocorrelation_refuses_the_interval() -> None:
    found = [summarize(autoregressive(100, 0.95, seed)) for seed in range(20)]
    refused = [summary for summary in found if summary.interval is None]
    assert len(refused) >= 15
    assert {s.refused for s in refused} <= {Reason.AUTOCORRELATED, Reason.DRIFTING}


def test_a_small_drift_widens_the_interval_over_both_halves() -> None:
    rng = np.random.default_rng(5)
    times = 1e-4 * (1 + 5e-3 * rng.standard_normal(200) + np.linspace(0, 8e-3, 200))
    summary = summarize(times)
    assert Reason.DRIFTING in summary.independence.reasons
    assert summary.interval is not None
    assert summary.interval.claim is Claim.WIDENED
    assert summary.interval.low < np.median(times[:100]) < np.median(times[100:])
    assert summary.interval.high > np.median(times[100:])


def test_a_drift_refuses_the_interval() -> None:
    summary = summarize(normal(100) * np.linspace(1, 1.03, 100))
    assert Reason.DRIFTING in summary.independence.reasons
    assert summary.refused is Reason.DRIFTING
    assert summary.interval is None
    assert summary.drift is not None
    assert summary.drift.relative == pytest.approx(0.015, abs=0.005)


def test_a_slow_start_is_counted_apart_and_widens() -> None:
    times = normal(100)
    times[:3] *= [4, 2, 1.3]
    times[50] *= 3
    summary = summarize(times)
    assert (summary.outliers, summary.startup) == (4, 3)
    assert summary.independence.reasons == (Reason.START_UP,)
    assert summary.interval is not None
    assert summary.interval.claim is Claim.WIDENED
    times[:3] = normal(3, seed=9)
    summary = summarize(times)
    assert (summary.outliers, summary.startup) == (1, 0)
    assert summary.independence.state is State.INDEPENDENT


@pytest.mark.parametrize("tick", [TICK, TICK / 3, 0.5e-6, 32e-9])
@pytest.mark.parametrize("median", [8e-6, 60e-6, 300e-6])
def test_tick_is_the_grid_of_the_timer(tick: float, median: float) -> None:
    for seed in range(5):
        grid = as_events(np.rint(normal(100, seed, median) / tick) * tick)
        if np.ptp(grid):
            assert find_tick(grid) == pytest.approx(tick, rel=1e-5)


def test_tick_with_a_wobble_is_not_the_smallest_gap() -> None:
    rng = np.random.default_rng(0)
    wobble = rng.choice([-64e-9, -32e-9, 0, 0, 0, 0, 32e-9], 100)
    times = as_events(np.rint(normal(100) / TICK) * TICK + wobble)
    assert find_tick(times) == pytest.approx(TICK, rel=1e-5)


def test_two_levels_of_a_bimodal_run_are_no_grid() -> None:
    levels = np.where(np.random.default_rng(0).random(100) < 0.5, 1.24e-3, 1.38e-3)
    times = normal(100, median=1.0, cv=0.003) * levels
    assert find_tick(as_events(times)) is None
    assert find_tick(as_events(np.rint(times / TICK) * TICK)) == pytest.approx(TICK, rel=1e-5)


@pytest.mark.parametrize("cv", [0.1, 0.01, 1e-3, 1e-5])
@pytest.mark.parametrize("n", [10, 30, 100, 1000])
def test_continuous_times_have_no_tick(cv: float, n: int) -> None:
    for seed in range(10):
        times = normal(n, seed, cv=cv)
        assert find_tick(times) is None
        assert find_tick(as_events(times)) is None


def test_two_grids_at_once_are_not_taken_for_either() -> None:
    for seed in range(10):
        times = normal(100, seed)
        times[::2] = np.rint(times[::2] / TICK) * TICK
        times[1::2] = np.rint(times[1::2] / 0.5e-6) * 0.5e-6
        assert (find_tick(as_events(times)) or 0) < 0.25e-6


@pytest.mark.parametrize("n", [64, 240, 480])
def test_a_single_sample_beside_all_others_shows_the_tick(n: int) -> None:
    """A steady kernel on a coarse timer: what is rare is evidence of the grid all the same."""
    for place in (1, n // 2 + 1, n - 2):
        ticks = np.full(n, 34.0)
        ticks[place] = 35
        assert find_tick(as_events(ticks * TICK)) == pytest.approx(TICK, rel=1e-5)


def test_a_tick_widens_both_ends() -> None:
    summary = summarize(np.rint(normal(100) / TICK) * TICK)
    assert summary.interval is not None
    assert summary.interval.tick == pytest.approx(TICK)
    assert summary.interval.high - summary.interval.low >= 2 * TICK


@given(runs, st.sampled_from([2.0**-10, 0.5, 8.0]))
def test_scaling_the_samples_scales_everything(times: Array, factor: float) -> None:
    one, other = summarize(times), summarize(times * factor)
    assert other.median == one.median * factor
    assert other.tick == (None if one.tick is None else one.tick * factor)
    assert other.independence == one.independence
    assert other.autocorrelation == one.autocorrelation
    for a, b in ((one.interval, other.interval), (one.order_interval, other.order_interval)):
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            assert (b.low, b.high) == (a.low * factor, a.high * factor)


@given(runs)
def test_intervals_hold_the_median(times: Array) -> None:
    summary = summarize(times)
    for interval in (summary.interval, summary.order_interval):
        if interval is not None:
            assert interval.low <= summary.median <= interval.high
    assert 0 <= summary.startup <= summary.outliers <= summary.n
    assert 0 < summary.effective_n <= summary.n


@given(runs, st.integers(0, 79), st.sampled_from([float("nan"), float("inf"), 0.0, -1.0]))
def test_a_bad_sample_anywhere_is_refused(times: Array, place: int, bad: float) -> None:
    times[place % times.size] = bad
    with pytest.raises(BadInput, match=f"sample {place % times.size} is"):
        summarize(times)


def test_coverage_on_independent_samples() -> None:
    series = normal(500 * 100, seed=11).reshape(500, 100)
    intervals = [summarize(times).interval for times in series]
    held = [i.low <= 60e-6 <= i.high for i in intervals if i and i.claim is Claim.WITHIN_RUN]
    assert len(held) > 460
    assert 0.92 < np.mean(held) < 0.98


def test_cliffs_delta_by_hand() -> None:
    evidence = classic([2.0, 4.0], [1.0, 2.0, 3.0])
    assert evidence.delta == pytest.approx((1 - 1 + 3) / 6)
    assert evidence.separation is Separation.LARGE
    assert classic([1.0, 2.0], [1.0, 2.0]).separation is Separation.NEGLIGIBLE
    assert classic([4.0, 5.0, 6.0, 7.0], [1.0, 2.0, 3.0]).delta == 1


@pytest.mark.parametrize(
    ("wins", "separation"),
    [
        (57, "negligible"),
        (58, "small"),
        (66, "small"),
        (67, "medium"),
        (73, "medium"),
        (74, "large"),
    ],
)
def test_separation_thresholds(wins: int, separation: str) -> None:
    values = [3.0] * wins + [1.0] * (100 - wins)
    assert classic(values, [2.0]).separation.value == separation


@given(runs, runs)
def test_delta_is_antisymmetric(a: Array, b: Array) -> None:
    assert classic(a, b).delta == pytest.approx(-classic(b, a).delta, abs=1e-12)
    assert classic(a, b).p_value == pytest.approx(classic(b, a).p_value)


def test_classic_rule() -> None:
    slow, fast = normal(100), normal(100, seed=1, median=50e-6)
    assert classic(slow, fast).claimable
    assert classic(slow, fast).speedup == pytest.approx(1.2, rel=0.01)
    assert not classic(fast, slow).claimable
    close = classic(slow, normal(100, seed=1, median=58e-6))
    assert close.apart is True
    assert not close.claimable
    assert classic(slow[:5], fast[:5]).apart is None
    assert not classic(slow[:5], fast[:5]).claimable


def test_intervals_that_touch_overlap() -> None:
    one, two = (Interval(low, low + 1, 0.95, Claim.HOLDS) for low in (1.0, 2.0))
    assert intervals_apart(one, two) is False
    assert intervals_apart(one, None) is None


@needs_l4
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_runs_give_the_published_numbers(path: Path) -> None:
    times, published = recorded(path.stem)
    summary = summarize(times)
    assert summary.n == published["n_samples"]
    assert summary.median * 1e3 == pytest.approx(published["median_ms"], rel=1e-12)
    assert summary.mean * 1e3 == pytest.approx(published["mean_ms"], rel=1e-9)
    assert summary.tick == pytest.approx(TICK, rel=1e-6)
    assert summary.independence.state is State.NOT_INDEPENDENT


@needs_l4
def test_recorded_start_up_and_the_interval_of_one_tick() -> None:
    times, published = recorded("config_01")
    summary = summarize(times)
    assert summary.startup == 3
    assert Reason.START_UP in summary.independence.reasons
    width = (published["ci_95_upper"] - published["ci_95_lower"]) / 1e3
    assert summary.tick is not None
    assert width == pytest.approx(summary.tick, rel=1e-5)
    assert summary.interval is not None
    assert summary.interval.low <= published["ci_95_lower"] / 1e3 - summary.tick + 1e-12
    assert summary.interval.high >= published["ci_95_upper"] / 1e3 + summary.tick - 1e-12


@needs_l4
@pytest.mark.parametrize(
    ("name", "relative"),
    [("config_03", 0.08), ("config_04", 0.11), ("config_08", 0.18), ("config_10", 0.17)],
)
def test_recorded_drift(name: str, relative: float) -> None:
    summary = summarize(recorded(name)[0])
    assert summary.drift is not None
    assert summary.drift.relative == pytest.approx(relative, abs=0.005)
    assert summary.refused is Reason.DRIFTING


@needs_l4
def test_recorded_autocorrelation() -> None:
    found = [summarize(recorded(path.stem)[0]) for path in RECORDED]
    raw = max(s.raw_autocorrelation for s in found if s.raw_autocorrelation is not None)
    assert raw == pytest.approx(0.97, abs=0.005)
    assert max(s.autocorrelation for s in found if s.autocorrelation is not None) > 0.8
