"""Statistics of the samples of one run, and tests of their independence.

Times are in seconds, in the order in which they were taken. No sample is ever dropped: outliers are
counted. The interval of a run describes the run and states no confidence level: what varies more
slowly than the run lasts is the same in all of its samples, so no test on them detects it. A
confidence level takes blocks (`profkit.timing.verdict.interval_over_blocks`).
docs/reference/methods/statistics.md explains each number and shows its measured coverage.
"""

import math
from bisect import bisect_right
from collections.abc import Collection
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import structs

from profkit.core.distributions import median_rank, normal_cdf, normal_quantile, t_quantile
from profkit.core.errors import BadInput
from profkit.timing import results
from profkit.timing.results import Claim, Drift, Independence, Interval, Reason, State, Summary

Array: TypeAlias = npt.NDArray[np.float64]

LEVEL = 0.95  # convention: two-sided confidence
# Chosen: the percentiles at 2.5% then have a standard error of 0.16 points (binomial).
RESAMPLES = 10_000
SEED = 20_240_229  # arbitrary, fixed: the same samples give the same interval
PERCENTILES = (0.05, 0.90, 0.95, 0.99)
# The extremes of n samples contain the median with 1 - 2 / 2^n: 96.9% at 6, 93.8% at 5.
FEWEST = 6
DRIFT_MATTERS = 0.01  # the default margin (results.Thresholds): the smallest change of interest
# The autocorrelation test (alpha 2.5%) detects rho = 0.5 in 95% of runs of this size; simulated,
# docs/reference/methods/statistics.md, "Independent or not".
TESTABLE = 65
CLAIMABLE_SPEEDUP = 1.10  # chosen: the classic rule's smallest speedup, 10 default margins
CLAIMABLE_DELTA = 0.3  # chosen: between Romano's small (0.147) and medium (0.33)

# Chosen: independent runs fail one of the three in about 3% of cases; measured in
# docs/reference/methods/statistics.md, "Coverage of the median by the intervals within one run".
_AUTOCORRELATION_ALPHA, _DRIFT_ALPHA, _STARTUP_ALPHA = 0.025, 0.01, 0.01
OUTLIER_SCORE = 3.5  # Iglewicz and Hoaglin 1993: modified z-scores above it
_MAD_TO_SIGMA = 1.4826  # 1 / Phi^-1(3/4): the MAD of a normal distribution is its sigma over it
_HIGHEST_CORRELATION = 0.99  # chosen: keeps (1 - rho) / (1 + rho) above 0; beyond, all is refused
_SEPARATED = (0.147, 0.33, 0.474)  # Romano et al. 2006
LIMIT_95 = 1.645  # Phi^-1(0.95), one-sided
# Four float32 roundings (2^-24 relative): CUDA returns times as float32 milliseconds.
_FLOAT32 = 2.0**-22
_TICK_SAMPLES = 64  # chosen: bounds the search to 64 times x 10,000 grids
_TICK_STEPS = 10_000  # chosen: grids from 1 / 10,000 of the time, 0.01% of it, matter to no margin
_TICK_NEAR = 1 / 8  # 32 ns of wobble on a tick of 1.024 us is 1/32; continuous times: one in four
_TICK_NEARLY_ALL = 0.9  # chosen: one sample in ten may lie off the grid; continuous: one in four
_TICK_EXACT = 0.5  # chosen: of continuous times hardly any is an exact multiple
_ROUNDING = 1e-9  # of a sum of shares
_REMEMBERED = 512  # runs of samples: a report asks for those of a cell five times


def summarize(samples: npt.ArrayLike, tick: float | None = None) -> Summary:
    """The statistics of one run.

    `samples` has shape (n,): times in s, in the order taken. `tick` (s) is the timer's grid where
    it is known; it is looked for in the samples otherwise. The same samples always give the same
    numbers. Raises BadInput for samples that aren't a row of positive finite times.
    """
    return _summary(checked(samples).tobytes(), tick)


@lru_cache(maxsize=_REMEMBERED)
def _summary(samples: bytes, tick: float | None) -> Summary:
    times = np.frombuffer(samples)
    n = times.size
    tick = find_tick(times) if tick is None else tick
    outliers, startup = _outliers(times, tick or 0.0)
    correlation = rank_correlation(times)
    drift = _drift(times)
    independence = _independence(times, correlation, drift, startup)
    reasons = independence.reasons if independence.state is State.NOT_INDEPENDENT else ()
    effective = float(n)
    if correlation is not None and Reason.AUTOCORRELATED in reasons:
        effective = effective_size(n, correlation)
    refused = _refusal(times, tick, reasons, drift)
    draws = math.floor(effective)
    std = float(times.std(ddof=1)) if n > 1 else None
    mean = float(times.mean())
    return Summary(
        n=n,
        median=float(np.median(times)),
        mean=mean,
        std=std,
        cv=None if std is None else std / mean,
        percentiles=tuple(
            results.Percentile(q, float(np.quantile(times, q)) if n >= needs else None, needs)
            for q, needs in zip(PERCENTILES, map(samples_needed, PERCENTILES), strict=True)
        ),
        interval=None if refused else _interval(times, tick, reasons, draws, startup),
        refused=refused,
        order_interval=_order_interval(times, tick),
        tick=tick,
        autocorrelation=correlation,
        raw_autocorrelation=_raw_correlation(times),
        effective_n=effective,
        drift=drift,
        outliers=outliers,
        startup=startup,
        independence=independence,
    )


def checked(samples: npt.ArrayLike) -> Array:
    """The samples as an array of shape (n,); BadInput unless all are positive and finite."""
    try:
        times = np.asarray(samples, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(f"samples are not numbers: {error}") from error
    if times.ndim != 1 or times.size == 0:
        raise BadInput(f"samples have shape {times.shape}, not (n,) with n >= 1")
    bad = np.flatnonzero(~(np.isfinite(times) & (times > 0)))
    if bad.size:
        raise BadInput(f"sample {bad[0]} is {times[bad[0]]}, not a positive finite time")
    return times


def samples_needed(q: float) -> int:
    """The samples with which the `q` quantile has a finite two-sided 95% interval.

    The interval between the extremes misses above when all n samples lie below the quantile, which
    has probability q^n, so that q^n <= 2.5% is needed (and (1 - q)^n for a low one): 36 for P90, 72
    for P5 and P95, 368 for P99. Conover, Practical Nonparametric Statistics, 3rd ed., section 3.2.
    """
    return math.ceil(math.log((1 - LEVEL) / 2) / math.log(max(q, 1 - q)))


def find_tick(times: Array) -> float | None:
    """The timer's grid (s): the widest that holds nearly all samples; None where none is seen.

    A time is the difference of two readings, so it is a multiple of the tick; some timers add a
    wobble of a small part of it (32 ns on 1.024 µs), and CUDA hands times over as float32
    milliseconds, rounded by 6e-8 of themselves. So the grid is the widest one of which half of the
    samples are multiples to that rounding, on two multiples at least, and nine in ten within 1/8.
    The grids tried are the commonest time over 1, 2, ... 10,000 and those that the gaps between
    samples suggest; of more than 64 different times, on 64 samples spread over the run; below six
    samples nothing is looked for. On continuous times one in four samples lies within 1/8 of a
    multiple and hardly any on one.
    """
    return _tick(times.tobytes()) if times.size >= FEWEST else None


@lru_cache(maxsize=_REMEMBERED)
def _tick(samples: bytes) -> float | None:
    times = np.frombuffer(samples)
    levels, shares = _levels(times)
    if levels.size > _TICK_SAMPLES:
        places = np.linspace(0, times.size - 1, _TICK_SAMPLES).astype(np.intp)
        levels, shares = _levels(times[places])
    fewest = 1 / FEWEST**2
    if levels.size < 2 or (shares.max() <= fewest and np.ptp(shares) == 0):
        return None
    anchor = float(levels[shares.argmax()])
    gaps = np.diff(levels)
    suggested = np.rint(anchor / gaps[gaps > 32 * _FLOAT32 * anchor])
    steps = np.union1d(np.arange(1, _TICK_STEPS + 1), suggested[suggested >= 1])
    return _widest_grid(levels, shares, anchor, steps)


def _levels(times: Array) -> tuple[Array, Array]:
    """The different times to the rounding of float32, ascending, and the share of each."""
    _, first, counts = np.unique(times.astype(np.float32), return_index=True, return_counts=True)
    shares: Array = counts / times.size
    return times[first], shares


def _widest_grid(levels: Array, shares: Array, anchor: float, steps: Array) -> float | None:
    """The widest of the grids `anchor / steps` that holds the times, in ascending steps."""
    ratios = levels / anchor
    for part in np.array_split(steps, max(1, steps.size // 1000)):
        phase = ratios * part[:, np.newaxis]
        multiples = np.rint(phase)
        off = np.abs(phase - multiples)
        exact = (off <= _FLOAT32 * phase) & (multiples > 0)
        elsewhere = exact & (multiples != part[:, np.newaxis])
        holds = (
            (exact @ shares >= _TICK_EXACT - _ROUNDING)
            & ((off <= _TICK_NEAR) @ shares >= _TICK_NEARLY_ALL - _ROUNDING)
            & elsewhere.any(axis=1)
        )
        if holds.any():
            return float(anchor / part[holds.argmax()])
    return None


def rank_correlation(times: Array) -> float | None:
    """Lag-1 autocorrelation of the ranks; None where it is undefined.

    It is 1 - Q / 2 with Q Bartels' rank version of the von Neumann ratio: the sum of squared
    successive differences over the sum of squares about the mean. It is 0 on average for
    independent samples.
    """
    if times.size < 3 or np.ptp(times) == 0:
        return None
    order = ranks(times)
    steps = np.diff(order)
    return 1 - float(steps @ steps) / float(order.size * order.var()) / 2


def _raw_correlation(times: Array) -> float | None:
    """The usual lag-1 autocorrelation of the times; None where it is undefined."""
    if times.size < 3 or np.ptp(times) == 0:
        return None
    centered = times - times.mean()
    return float(centered[1:] @ centered[:-1]) / float(centered @ centered)


def correlation_p_value(correlation: float, n: int) -> float:
    """The probability that `n` independent samples have a rank autocorrelation this high.

    The rank version of von Neumann's ratio, normal with the variance that Bartels (1982, JASA 77,
    40-46) gives. Over ranks, because a single outlier hides (or feigns) the raw one, and because
    the variance of a median is governed by the order of samples, not by their size. One-sided: a
    negative correlation makes an interval too wide, never too narrow.
    """
    return normal_cdf(-correlation / _correlation_error(n))


def correlation_beyond_chance(alpha: float, n: float) -> float:
    """The rank autocorrelation that `n` independent samples exceed with probability `alpha`."""
    return -normal_quantile(alpha) * _correlation_error(n)


def _correlation_error(n: float) -> float:
    return math.sqrt((n - 2) * (5 * n**2 - 2 * n - 9) / (5 * n * (n + 1) * (n - 1) ** 2))


def _unbiased(correlation: float, n: float) -> float:
    """The correlation corrected for n (Marriott and Pope 1954), from 0 to 0.99.

    An estimate falls short of rho by (1 + 4 rho) / n; the ends that the von Neumann ratio leaves
    out make good 1 / n of it.
    """
    return min(max(correlation * (1 + 4 / n), 0.0), _HIGHEST_CORRELATION)


def effective_size(n: float, correlation: float) -> float:
    """Independent samples worth as much as n of an AR(1) series: n (1 - rho) / (1 + rho).

    One at least. Bayley and Hammersley 1946, for the mean. The median of an AR(1) series varies
    less than that (its signs are correlated by 2 / pi asin(rho^k)), so it errs on the wide side.
    """
    rho = _unbiased(correlation, n)
    return max(1.0, n * (1 - rho) / (1 + rho))  # the formula is that of n far above 1 / (1 - rho)


def _effective_at_least(n: int, correlation: float) -> float:
    """The lower 95% limit of the effective size; a correlation has the error (1 - rho^2) / n."""
    rho = _unbiased(correlation, n)
    highest = rho + LIMIT_95 * math.sqrt((1 - rho**2) / n)
    return n * (1 - highest) / (1 + highest)


def _drift(times: Array) -> Drift | None:
    """How the halves differ; a Mann-Whitney test, its z scaled for autocorrelation in the halves.

    Without the scaling a correlated but steady run would count as drifting. With n odd the middle
    sample belongs to the second half.
    """
    n, half = times.size, times.size // 2
    if n < FEWEST or np.ptp(times) == 0:
        return None
    first, second = times[:half], times[half:]
    order = ranks(times)
    variance = half * (n - half) / n * float(order.var(ddof=1))
    z = (float(order[half:].sum()) - (n - half) * (n + 1) / 2) / math.sqrt(variance)
    within = [rank_correlation(part) or 0.0 for part in (first, second)]
    rho = _unbiased(float(np.mean(within)), half)
    z *= math.sqrt((1 - rho) / (1 + rho))
    relative = float(np.median(second) / np.median(first)) - 1
    return Drift(relative, 2 * normal_cdf(-abs(z)))


def _outliers(times: Array, tick: float) -> tuple[int, int]:
    """How many samples are outliers, and how many of the first ones are slow outliers.

    Beyond 3.5 robust standard deviations, 1.4826 MAD (Iglewicz and Hoaglin 1993); on a grid the
    MAD can be 0, so that it counts as at least a tick.
    """
    away = times - np.median(times)
    scale = _MAD_TO_SIGMA * max(float(np.median(np.abs(away))), tick)
    if scale == 0:
        scale = _FLOAT32 * float(np.median(times))
    slow = away > OUTLIER_SCORE * scale
    return int((np.abs(away) > OUTLIER_SCORE * scale).sum()), int(np.cumprod(slow).sum())


def _independence(
    times: Array, correlation: float | None, drift: Drift | None, startup: int
) -> Independence:
    """Independent where none of three tests rejects it and there are enough samples to test.

    On independent samples the tests reject in 2.5% (autocorrelation), 1% (drift) and at most 1%
    (start-up) of the runs. 65 samples are what the first needs to detect rho = 0.5 in 95% of the
    runs. Slow changes below faster noise pass all three, which is why no confidence level relies on
    them.
    """
    n, reasons = times.size, []
    if correlation is not None and correlation_p_value(correlation, n) < _AUTOCORRELATION_ALPHA:
        reasons.append(Reason.AUTOCORRELATED)
    if drift is not None and drift.p_value < _DRIFT_ALPHA:
        reasons.append(Reason.DRIFTING)
    if startup:
        # In exchangeable samples the first k are all among the w slowest with C(w, k) / C(n, k).
        slowest = int((times >= times[:startup].min()).sum())
        if math.comb(slowest, startup) / math.comb(n, startup) <= _STARTUP_ALPHA:
            reasons.append(Reason.START_UP)
    if reasons:
        return Independence(State.NOT_INDEPENDENT, tuple(reasons))
    if n < TESTABLE:
        return Independence(State.UNKNOWN, (Reason.TOO_FEW,))
    if correlation is None:
        return Independence(State.UNKNOWN, (Reason.CONSTANT,))
    return Independence(State.INDEPENDENT)


def _refusal(
    times: Array, tick: float | None, reasons: Collection[Reason], drift: Drift | None
) -> Reason | None:
    """Why there is no interval: equal samples, a drift that matters, or too few samples.

    A drift of DRIFT_MATTERS or more matters. FEWEST effective samples are needed for the extremes
    to contain the median in 95% of the runs: 1 - 2 / 2^n.
    """
    if times.size < FEWEST:
        return Reason.TOO_FEW
    if np.ptp(times) == 0 and not tick:
        return Reason.CONSTANT
    if drift and Reason.DRIFTING in reasons and abs(drift.relative) >= DRIFT_MATTERS:
        return Reason.DRIFTING
    correlation = rank_correlation(times) if Reason.AUTOCORRELATED in reasons else None
    if correlation is None or _effective_at_least(times.size, correlation) >= FEWEST:
        return None
    return Reason.AUTOCORRELATED


@lru_cache(maxsize=256)
def _middle_draws(n: int) -> tuple[Array, Array]:
    """10,000 draws of the two middle order statistics of `n` uniform numbers (equal for odd n).

    The k-th of n is Beta(k, n + 1 - k); given the lower one, the upper one is the smallest of the
    n / 2 numbers above it. David and Nagaraja, Order Statistics, 3rd ed., section 2.3.
    """
    rng = np.random.default_rng(SEED)
    if n % 2:
        middle = rng.beta((n + 1) / 2, (n + 1) / 2, RESAMPLES)
        return middle, middle
    lower = rng.beta(n / 2, n / 2 + 1, RESAMPLES)
    return lower, 1 - (1 - lower) * rng.random(RESAMPLES) ** (2 / n)


def bootstrap_median(times: Array, draws: int) -> tuple[float, float]:
    """The 95% percentile-bootstrap interval of the median (Efron 1979), from 10,000 resamples.

    A resample of `draws` samples is the sorted samples read at `draws` uniform places, so that its
    median follows from the middle places alone: these are drawn, not the whole resample, with the
    same distribution as resampling has, in a time that doesn't grow with the number of samples.
    The percentiles are expanded for the number of samples (see `bootstrap_tail`).
    """
    ordered = np.sort(times)
    lower, upper = ((ordered.size * u).astype(np.intp) for u in _middle_draws(draws))
    last = ordered.size - 1
    medians = (ordered[np.minimum(lower, last)] + ordered[np.minimum(upper, last)]) / 2
    tail = bootstrap_tail(draws)
    low, high = np.quantile(medians, [tail, 1 - tail])
    return float(low), float(high)


def bootstrap_tail(n: int) -> float:
    """The share of resampled medians left out at each end: 2.5%, less for few samples.

    The plain percentile interval is too narrow, as a normal interval with n for n - 1 and z for t
    would be: at 30 samples it covers 94%, at 31 93%. Expanded percentiles, with t quantiles times
    sqrt(n / (n - 1)) in place of normal ones, make it good (Hesterberg 2015, The American
    Statistician 69, 371-386).
    """
    t = t_quantile((1 + LEVEL) / 2, n - 1)
    return normal_cdf(-math.sqrt(n / (n - 1)) * t)


def _interval(
    times: Array, tick: float | None, reasons: Collection[Reason], draws: int, startup: int
) -> Interval:
    """The bootstrap interval, inflated for dependence and the timer tick.

    Autocorrelated samples count as the effective number of independent ones; where a run starts
    slowly, the interval spans those with and without its first samples, and where it drifts a
    little, those of both its halves. The error of a time is up to a tick either way, whatever the
    phase of the two readings, so both ends are extended by a tick.
    """
    low, high = bootstrap_median(times, draws)
    if Reason.START_UP in reasons and times.size - startup >= FEWEST:
        steady = bootstrap_median(times[startup:], min(draws, times.size - startup))
        low, high = min(low, steady[0]), max(high, steady[1])
    if Reason.DRIFTING in reasons:
        for half in np.array_split(times, 2):
            ends = bootstrap_median(half, max(min(draws // 2, half.size), FEWEST))
            low, high = min(low, ends[0]), max(high, ends[1])
    return _within_run(low, high, tick, Claim.WIDENED if reasons else Claim.WITHIN_RUN)


def _within_run(low: float, high: float, tick: float | None, claim: Claim) -> Interval:
    """An interval without a confidence level, extended by a tick at either end."""
    tick = tick or 0.0
    return Interval(max(low - tick, 0.0), high + tick, None, claim, tick)


def _order_interval(times: Array, tick: float | None) -> Interval | None:
    """The narrowest interval between the k-th sample and the k-th last that covers 95% where
    samples are independent: 1 - 2 P(X < k) with X binomial(n, 1/2). Conover, section 3.2.
    """
    n = times.size
    if n < FEWEST or (np.ptp(times) == 0 and not tick):
        return None
    below = median_rank(n, LEVEL)
    ordered = np.sort(times)
    low, high = float(ordered[below]), float(ordered[n - 1 - below])
    return _within_run(low, high, tick, Claim.WITHIN_RUN)


def ranks(values: Array) -> Array:
    """The rank of each value from 1 up; equal values share the mean of theirs. Shape (n,)."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: Array = ((last - counts + 1 + last) / 2)[places]
    return means


def mann_whitney(a: Array, b: Array) -> tuple[float, float]:
    """U of `a` (pairs in which it is larger, equal ones by half), and its two-sided p-value.

    Normal, with ties and continuity corrected for (Mann and Whitney 1947, Ann. Math. Stat. 18,
    50-60). Shapes (n,) and (m,).
    """
    n, m = a.size, b.size
    both = np.concatenate([a, b])
    u = float(ranks(both)[:n].sum()) - n * (n + 1) / 2
    larger = max(u, n * m - u)
    _, counts = np.unique(both, return_counts=True)
    ties = float((counts.astype(float) ** 3 - counts).sum())
    variance = n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1)))
    if variance <= 0:  # all are equal
        return u, 1.0
    z = (larger - n * m / 2 - 0.5) / math.sqrt(variance)
    return u, min(1.0, 2 * normal_cdf(-z))


def classic(a: npt.ArrayLike, b: npt.ArrayLike, tick: float | None = None) -> results.Classic:
    """The classic rule for "B is faster than A", over all launches of both sides.

    `a` has shape (n,), `b` (m,): s, each in the order taken; `tick` as in `summarize`. Cliff's
    delta is 2 U / (n m) - 1 (Cliff 1993), positive where `a` is larger. It measures separation, not
    effect size: at 1 every sample of `a` is slower, by however little. Raises BadInput as
    `summarize` does.
    """
    before, after = summarize(a, tick), summarize(b, tick)
    u, p_value = mann_whitney(checked(a), checked(b))
    delta = 2 * u / (before.n * after.n) - 1
    evidence = results.Classic(
        delta=delta,
        separation=list(results.Separation)[bisect_right(_SEPARATED, abs(delta))],
        p_value=p_value,
        apart=intervals_apart(before.interval, after.interval),
        speedup=before.median / after.median,
        claimable=False,
    )
    return structs.replace(evidence, claimable=not unmet_criteria(evidence))


def unmet_criteria(classic: results.Classic) -> tuple[str, ...]:
    """The criteria of the classic rule that two sides don't meet."""
    criteria = {
        "disjoint intervals": classic.apart is True,
        f"a delta of {CLAIMABLE_DELTA} or more": abs(classic.delta) >= CLAIMABLE_DELTA,
        f"a ratio of {CLAIMABLE_SPEEDUP:.2f}x or more": classic.speedup >= CLAIMABLE_SPEEDUP,
    }
    return tuple(name for name, met in criteria.items() if not met)


def intervals_apart(a: Interval | None, b: Interval | None) -> bool | None:
    """Whether two intervals don't overlap; None where there aren't two."""
    if a is None or b is None:
        return None
    return a.high < b.low or b.high < a.low
