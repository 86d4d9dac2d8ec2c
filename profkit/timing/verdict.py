"""Verdicts on B against A from interleaved blocks of both, with confidence levels.

Launches of one process share its clocks, memory layout and neighbors, so a test over launches
detects differences between two processes of the same build. Here blocks are compared: r is the
logarithm of the Hodges-Lehmann ratio of a launch of B to one of A in each pair of adjacent blocks,
and Student's t is taken over the pairs. Dependence between the launches of a block then costs power
but raises no false alarm. The timer resolution widens the interval before the verdict.
docs/reference/methods/statistics.md has the rule and its measured error rates.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from profkit.core.distributions import chi_square_quantile, increasing_root, t_cdf, t_quantile
from profkit.core.errors import BadInput
from profkit.timing import results, statistics
from profkit.timing.resolution import common_value, log_shift, open_ticks
from profkit.timing.results import DEFAULT, Comparison, Interval, Margin, Thresholds, Verdict
from profkit.timing.statistics import Array, checked, effective_size

Blocks: TypeAlias = Sequence[npt.ArrayLike]

MOST_BLOCKS = 200  # chosen: the longest rerun to suggest, 25 times the default 8 blocks
FEWEST_BLOCKS = 2  # a standard deviation needs two
_FEWEST_TO_LEAVE_OUT = 4  # without one, three blocks leave two degrees of freedom
# Chosen: 1 / 40 of rows of independent blocks look dependent; docs/reference/methods/statistics.md,
# "Measured", has the error rates of verdicts with it.
DEPENDENT_ALPHA = 0.025
# One in forty comparisons of eight independent blocks looks autocorrelated, and the formula takes
# it for one block then: 2% stay open however far the sides are apart. With four at least none does,
# and false verdicts at AR(1) 0.7 over blocks stay what they were (0.3%; 20,000 simulations each).
LEAST_SIZE = 4.0
# Chosen: in 1% of rows of independent blocks one is called an outlier; it only sets the reason.
_OUTLIER_ALPHA = 0.01
_HIGHEST_EXPONENT = 700.0  # exp(709.8) is the largest double
# Points of the quadrature over an error's estimate: within 0.2 points of power of 4,000 points.
_QUADRATURE = 128


class Reason(StrEnum):
    """The reason for a verdict.

    BEYOND_MARGIN and WITHIN_MARGIN decide it. Of an INCONCLUSIVE: NEEDS_BLOCKS: more blocks would
    decide. AT_MARGIN: the difference is so close to the margin that MOST_BLOCKS blocks would not.
    RESOLUTION: a finer timer would, or several calls per sample, and more blocks would not.
    OUTLIER_BLOCK: all blocks but one outlier would. DEPENDENT_BLOCKS: independent blocks would.
    CORRECTED: significant alone, but not after the correction for several comparisons.
    ENVIRONMENT: INVALID, for the caller's reasons. NOT_INTERLEAVED: two single runs without a known
    A/A floor. NO_INTERVAL: a run's median has no interval.
    """

    BEYOND_MARGIN = "beyond the margin"
    WITHIN_MARGIN = "within the margin"
    NEEDS_BLOCKS = "needs more blocks"
    AT_MARGIN = "too close to the margin"
    RESOLUTION = "timer resolution too coarse"
    OUTLIER_BLOCK = "one block differs from the others"
    DEPENDENT_BLOCKS = "blocks depend on each other"
    TOO_FEW_BLOCKS = "too few blocks"
    TOO_FEW_SAMPLES = "too few samples in a block"
    CORRECTED = "not beyond chance among several comparisons"
    ENVIRONMENT = "the environment moved"
    NOT_INTERLEAVED = "measured one after the other"
    NO_INTERVAL = "a median without an interval"


_REASON_WORDS: Mapping[str, str] = {
    Reason.OUTLIER_BLOCK: "one outlier block",
    Reason.DEPENDENT_BLOCKS: "the blocks are autocorrelated",
    Reason.CORRECTED: "not significant after Holm's correction",
    Reason.ENVIRONMENT: "invalid measurement: throttling, or different SM clocks",
    Reason.NOT_INTERLEAVED: "not interleaved",
    Reason.NO_INTERVAL: "a median has no interval",
}


def reason_words(reason: str) -> str:
    """A reason for people; files have its value."""
    return _REASON_WORDS.get(reason, reason)


class Ruling(Struct, frozen=True):
    """The verdict on block ratios; `effect` and its interval are mean log ratios (B slower: > 0).

    `dependence` is the lag-1 rank autocorrelation of the ratios, None below three or where they are
    equal; where it is beyond chance the interval is wider for it. `detectable`, `blocks_needed` and
    `p_value` are those of a Comparison.
    """

    verdict: Verdict
    reason: Reason
    effect: float
    low: float
    high: float
    detectable: float
    blocks_needed: int | None
    p_value: float
    dependence: float | None


class WithinRun(Struct, frozen=True):
    """Two saved runs, not interleaved: B against A.

    `speedup` is median A / median B. `low` to `high` spans every ratio of the two medians'
    intervals: it holds for these two processes, not for the builds. Both are None where a run has
    no interval. `margin` is None without a known A/A floor, and then there is no gate.
    """

    verdict: Verdict
    reason: Reason
    speedup: float
    low: float | None
    high: float | None
    margin: Margin | None


def compare(
    a: Blocks,
    b: Blocks,
    *,
    tick: float = 0.0,
    floor: float = 0.0,
    invalid: Sequence[str] = (),
    thresholds: Thresholds = DEFAULT,
    others: Sequence[Sequence[float]] = (),
) -> Comparison:
    """The verdict on B against A from interleaved blocks (A B B A ..., or shuffled pairs).

    `a` and `b` hold a row of times (s) a block; block i of one was measured next to block i of the
    other. `tick` (s) is the timer's grid, 0 where none is known: samples that are all equal are one
    tick then. `floor` is the relative difference that this machine shows between two runs of the
    same build. `invalid` has the reasons why the measurement is invalid. `others` are rows of log
    ratios of other things measured beside these, whose scatter is pooled with that of the blocks.
    Raises BadInput for less than two blocks, unequal numbers of blocks, or bad samples.
    """
    before, after = ([checked(block) for block in side] for side in (a, b))
    if len(before) != len(after) or len(before) < FEWEST_BLOCKS:
        raise BadInput(
            f"{len(before)} blocks of A and {len(after)} of B",
            "use at least two blocks, the same number on both sides",
        )
    if not (math.isfinite(tick) and tick >= 0):
        raise BadInput(f"a timer tick of {tick} s is not a valid time")
    tick = tick or common_value(before + after) or 0.0
    ratios = np.array([log_shift(*pair, tick) for pair in zip(before, after, strict=True)])
    shortest = float(min(np.median(_medians(side)) for side in (before, after)))
    resolution = open_ticks(before, after, tick) * tick / shortest
    margin = margin_of(thresholds.margin, floor)
    fewest = min(block.size for block in before + after)
    ruling = judge(ratios, margin, thresholds, fewest, resolution, others)
    verdict, reason = ruling.verdict, ruling.reason
    if invalid:
        verdict, reason = Verdict.INVALID, Reason.ENVIRONMENT
    return Comparison(
        verdict=verdict,
        reason=reason,
        speedup=_exp(-ruling.effect),
        low=_exp(-ruling.high),
        high=_exp(-ruling.low),
        level=thresholds.level,
        margin=margin,
        resolution=resolution,
        detectable=ruling.detectable,
        blocks=len(before),
        blocks_needed=ruling.blocks_needed if verdict is Verdict.INCONCLUSIVE else None,
        p_value=ruling.p_value,
        p_adjusted=None,
        dependence=ruling.dependence,
        ratios=tuple(np.exp(ratios).tolist()),
        classic=statistics.classic(np.concatenate(before), np.concatenate(after), tick or None),
        details=tuple(invalid),
    )


def interval_over_blocks(
    side: Blocks, tick: float = 0.0, thresholds: Thresholds = DEFAULT
) -> Interval | None:
    """The between-block interval: Student's t over the logarithms of the blocks' medians, extended
    by a tick at either end.

    Blocks are assumed to be independent, samples of a block are not.
    None where there are fewer blocks, or samples in one, than the thresholds require, or where the
    effective number of autocorrelated blocks is less. Raises BadInput for bad samples.
    """
    blocks = [checked(block) for block in side]
    fewest = min((block.size for block in blocks), default=0)
    if len(blocks) < thresholds.blocks or fewest < thresholds.samples:
        return None
    medians = np.log(_medians(blocks))
    estimate = _estimate(medians, statistics.rank_correlation(medians))
    if estimate.size < thresholds.blocks:
        return None
    half = estimate.t(thresholds.level) * estimate.error
    low, high = (_exp(estimate.effect + sign * half) for sign in (-1, 1))
    if estimate.scatter == 0:
        low = high = float(np.median(blocks[0]))
    return Interval(max(low - tick, 0.0), high + tick, thresholds.level, results.Claim.HOLDS, tick)


def _medians(side: list[Array]) -> Array:
    return np.array([np.median(block) for block in side])


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < _HIGHEST_EXPONENT else math.inf


def margin_of(asked: float, floor: float) -> Margin:
    """The larger of the margin asked for and the A/A floor.

    Raises BadInput unless both are finite and not negative.
    """
    if not all(math.isfinite(part) and part >= 0 for part in (asked, floor)):
        raise BadInput(f"margin {asked}, floor {floor}: not valid shares of a time")
    if asked >= floor:
        return Margin(asked, results.Source.ASKED)
    return Margin(floor, results.Source.FLOOR)


def judge(
    log_ratios: npt.ArrayLike,
    margin: Margin,
    thresholds: Thresholds = DEFAULT,
    samples: int | None = None,
    resolution: float = 0.0,
    others: Sequence[Sequence[float]] = (),
) -> Ruling:
    """The ruling on log ratios, shape (blocks,), of which there are at least two.

    `samples` is the smallest number of samples a block; None where it needs no check. `resolution`
    is the relative difference that the timer can't resolve: blocks have it in common, so that it
    widens the interval in full. The whole interval at `level` beyond the margin is a verdict of a
    difference, the one at `same_level` within it a verdict of none (Schuirmann 1987), anything else
    is inconclusive.
    """
    ratios = np.asarray(log_ratios, dtype=np.float64)
    bounds = _Bounds(margin.log, math.log1p(resolution))
    dependence = statistics.rank_correlation(ratios)
    estimate = _pooled(_estimate(ratios, dependence), others)
    verdict = _verdict(estimate, bounds, thresholds)
    reason = Reason.WITHIN_MARGIN if verdict is Verdict.SAME else Reason.BEYOND_MARGIN
    needed = None
    if ratios.size < thresholds.blocks:
        verdict, reason = Verdict.INCONCLUSIVE, Reason.TOO_FEW_BLOCKS
    elif samples is not None and samples < thresholds.samples:
        verdict, reason = Verdict.INCONCLUSIVE, Reason.TOO_FEW_SAMPLES
    if verdict is Verdict.INCONCLUSIVE:
        needed = _blocks_needed(estimate, bounds, thresholds)
    if verdict is Verdict.INCONCLUSIVE and reason is Reason.BEYOND_MARGIN:
        reason = _why_open(ratios, estimate, bounds, thresholds, needed)
    half = estimate.t(thresholds.level) * estimate.error + bounds.slack
    reach = _reach(estimate.size, thresholds.level, thresholds.power)
    return Ruling(
        verdict=verdict,
        reason=reason,
        effect=estimate.effect,
        low=estimate.effect - half,
        high=estimate.effect + half,
        detectable=_exp(bounds.outer + reach * estimate.error) - 1,
        blocks_needed=needed,
        p_value=_difference_p(estimate, bounds),
        dependence=dependence,
    )


class _Bounds(Struct, frozen=True):
    """The margin for a log ratio, and the slack from the timer resolution.

    From `outer` on a difference is beyond the margin, up to `inner`, which may be negative, within.
    """

    margin: float
    slack: float

    @property
    def outer(self) -> float:
        return self.margin + self.slack

    @property
    def inner(self) -> float:
        return self.margin - self.slack


class _Estimate(Struct, frozen=True):
    """A mean log ratio, its standard error, and what both come from.

    `scatter` is the standard deviation of one block, `size` the effective number of blocks; `more`
    are degrees of freedom of the scatter from elsewhere.
    """

    effect: float
    scatter: float
    blocks: int
    size: float
    more: float = 0.0

    @property
    def error(self) -> float:
        return self.scatter / math.sqrt(self.size)

    @property
    def freedom(self) -> float:
        return max(self.size - 1, 1.0) + self.more

    def t(self, level: float) -> float:
        """Student's quantile of a two-sided interval."""
        return t_quantile((1 + level) / 2, self.freedom)


def _estimate(ratios: Array, dependence: float | None) -> _Estimate:
    """The estimate over blocks, of a smaller effective number where they depend on each other."""
    n = ratios.size
    size = float(n)
    p_value = 1.0 if dependence is None else statistics.correlation_p_value(dependence, n)
    if dependence is not None and p_value < DEPENDENT_ALPHA:
        size = max(effective_size(n, dependence), min(size, LEAST_SIZE))
    return _Estimate(float(ratios.mean()), float(ratios.std(ddof=1)), n, size)


def _pooled(estimate: _Estimate, others: Sequence[Sequence[float]]) -> _Estimate:
    """The estimate with the scatter of other rows too; its own counts where it is larger."""
    more = sum(len(row) - 1 for row in others)
    squares = sum(float(np.var(row)) * len(row) for row in others)
    squares += estimate.scatter**2 * estimate.freedom
    pooled = math.sqrt(squares / (estimate.freedom + more))
    return replace(estimate, scatter=max(estimate.scatter, pooled), more=more)


@lru_cache(maxsize=1024)
def _scales(freedom: float) -> Array:
    """What an error's estimate is of the error: chi / sqrt(freedom), equally likely values."""
    middles = [(place + 0.5) / _QUADRATURE for place in range(_QUADRATURE)]
    scales: Array = np.sqrt([chi_square_quantile(middle, freedom) / freedom for middle in middles])
    return scales


def _mean_below(z: Array) -> float:
    """The mean probability that a standard normal number is below each of an array."""
    return math.fsum(map(math.erfc, (z / -math.sqrt(2)).ravel().tolist())) / (2 * z.size)


@lru_cache(maxsize=1024)
def _reach(size: float, level: float, power: float) -> float:
    """How many standard errors, as estimated, beyond the margin an effect is found at the power.

    Another experiment has an error of its own. With E the true error, the estimates are E S and
    E S', S and S' independent, chi / sqrt(freedom). It finds an effect c E S beyond the margin
    Z + c S > t S', so that c is the quantile of (Z + t S') / S at the power. Where its blocks look
    dependent by chance, t and S' are those of fewer blocks.
    """
    freedom, fewer = max(size - 1, 1.0), size
    if size > LEAST_SIZE:
        correlation = statistics.correlation_beyond_chance(DEPENDENT_ALPHA, size)
        fewer = max(effective_size(size, correlation), LEAST_SIZE)
    scales = _scales(freedom)
    needed = t_quantile((1 + level) / 2, freedom)
    by_chance = t_quantile((1 + level) / 2, max(fewer - 1, 1.0)) * math.sqrt(size / fewer)
    cases = ((1 - DEPENDENT_ALPHA, needed), (DEPENDENT_ALPHA, by_chance))

    def excess(reach: float) -> tuple[float, float]:
        chance = slope = 0.0
        for share, quantile in cases:
            z = np.subtract.outer(reach * scales, quantile * scales)
            chance += share * _mean_below(z)
            density = np.exp(-(z**2) / 2).mean(axis=1) / math.sqrt(2 * math.pi)
            slope += share * float((scales * density).mean())
        return chance - power, slope

    return increasing_root(excess, needed)


def _tail(estimate: _Estimate, distance: float) -> float:
    """The one-sided p-value of an effect `distance` beyond what is to be refuted."""
    if estimate.error == 0:
        return 0.0 if distance > 0 else 1.0
    return t_cdf(-distance / estimate.error, estimate.freedom)


def _difference_p(estimate: _Estimate, bounds: _Bounds) -> float:
    """Two-sided: below 1 - level exactly where the interval lies beyond the margin."""
    return min(1.0, 2 * _tail(estimate, abs(estimate.effect) - bounds.outer))


def _verdict(estimate: _Estimate, bounds: _Bounds, thresholds: Thresholds) -> Verdict:
    if _difference_p(estimate, bounds) < 1 - thresholds.level:
        return Verdict.REGRESSED if estimate.effect > 0 else Verdict.IMPROVED
    if _tail(estimate, bounds.inner - abs(estimate.effect)) < (1 - thresholds.same_level) / 2:
        return Verdict.SAME
    return Verdict.INCONCLUSIVE


def _why_open(
    ratios: Array,
    estimate: _Estimate,
    bounds: _Bounds,
    thresholds: Thresholds,
    needed: int | None,
) -> Reason:
    """Why a sufficient number of blocks gave no verdict."""
    independent = replace(estimate, size=float(estimate.blocks))
    if _verdict(independent, bounds, thresholds) is not Verdict.INCONCLUSIVE:
        return Reason.DEPENDENT_BLOCKS
    if _has_outlier_block(ratios, bounds, thresholds):
        return Reason.OUTLIER_BLOCK
    if needed is not None:
        return Reason.NEEDS_BLOCKS
    finer = replace(bounds, slack=0.0)
    settled = _verdict(estimate, finer, thresholds) is not Verdict.INCONCLUSIVE
    if settled or _blocks_needed(estimate, finer, thresholds) is not None:
        return Reason.RESOLUTION
    return Reason.AT_MARGIN


def _has_outlier_block(ratios: Array, bounds: _Bounds, thresholds: Thresholds) -> bool:
    """Whether all blocks without the one farthest from their median give a verdict.

    It has to be a significant outlier too: farther from the others' mean than one of as many blocks
    gets in 1% of the cases (Grubbs' test in its form as a t-test on the block left out).
    """
    if ratios.size < _FEWEST_TO_LEAVE_OUT:
        return False
    farthest = int(np.abs(ratios - np.median(ratios)).argmax())
    others = np.delete(ratios, farthest)
    rest = _estimate(others, None)
    spread = rest.scatter * math.sqrt(1 + 1 / others.size)
    distance = abs(float(ratios[farthest]) - rest.effect)
    beyond = distance > spread * t_quantile(1 - _OUTLIER_ALPHA / (2 * ratios.size), rest.freedom)
    return beyond and _verdict(rest, bounds, thresholds) is not Verdict.INCONCLUSIVE


def _blocks_needed(estimate: _Estimate, bounds: _Bounds, thresholds: Thresholds) -> int | None:
    """The blocks that a verdict takes at the planned power if effect and scatter stay the same;
    None above MOST_BLOCKS."""
    counts = range(max(thresholds.blocks, estimate.blocks + 1), MOST_BLOCKS + 1)

    def power(blocks: int) -> float:
        """The same effect and scatter over another number of blocks."""
        size = max(blocks * estimate.size / estimate.blocks, 2.0)
        return _settling_power(replace(estimate, blocks=blocks, size=size), bounds, thresholds)

    index = bisect_left(counts, thresholds.power, key=power)
    return counts[index] if index < len(counts) else None


def _settling_power(estimate: _Estimate, bounds: _Bounds, thresholds: Thresholds) -> float:
    """The chance of a verdict where effect and scatter are as estimated; noncentral t."""
    size = abs(estimate.effect)
    if estimate.error == 0:
        return float(size > bounds.outer or size < bounds.inner)

    def missed(distance: float, level: float) -> float:
        scales = _scales(estimate.freedom)
        return _mean_below(estimate.t(level) * scales - distance / estimate.error)

    if size > bounds.margin:
        return 1 - missed(size - bounds.outer, thresholds.level)
    return 1 - sum(missed(bounds.inner - side, thresholds.same_level) for side in (size, -size))


def holm(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with p-values adjusted for their number (Holm 1979, Scand. J. Stat. 6).

    A REGRESSED or IMPROVED whose adjusted p-value isn't below 1 - level becomes INCONCLUSIVE; no
    verdict becomes stronger. SAME stays: it raises no alarm. INVALID ones don't count.
    """
    valid = [i for i, pair in enumerate(comparisons) if pair.verdict is not Verdict.INVALID]
    valid.sort(key=lambda i: comparisons[i].p_value)
    corrected = [replace(pair, p_adjusted=None) for pair in comparisons]
    highest = 0.0
    for rank, index in enumerate(valid):
        pair = comparisons[index]
        highest = max(highest, min(1.0, (len(valid) - rank) * pair.p_value))
        corrected[index] = pair = replace(pair, p_adjusted=highest)
        claimed = pair.verdict in {Verdict.REGRESSED, Verdict.IMPROVED}
        if claimed and not highest < 1 - pair.level:
            corrected[index] = undecided(pair, Reason.CORRECTED)
    return corrected


def undecided(comparison: Comparison, reason: Reason) -> Comparison:
    """The comparison without a verdict, nor a number of blocks that would give one."""
    return replace(comparison, verdict=Verdict.INCONCLUSIVE, reason=reason, blocks_needed=None)


def single_runs(
    a: results.Summary,
    b: results.Summary,
    floor: float | None = None,
    thresholds: Thresholds = DEFAULT,
) -> WithinRun:
    """The comparison of two saved runs that were not interleaved: "within-run only".

    A difference may come from the build, the process, the clocks or the time of day. So there is no
    verdict, unless the machine's A/A `floor` is known: the largest relative difference between the
    medians of two such runs of one and the same build. Then a difference is one of the builds as
    far as it exceeds the floor, and the ratio's interval has to lie beyond the margin, or within
    it; otherwise interleaved blocks are needed. Raises BadInput for a floor that isn't a share.
    """
    speedup = a.median / b.median
    if a.interval is None or b.interval is None or a.interval.low <= 0 or b.interval.low <= 0:
        return WithinRun(Verdict.INCONCLUSIVE, Reason.NO_INTERVAL, speedup, None, None, None)
    low, high = a.interval.low / b.interval.high, a.interval.high / b.interval.low
    if floor is None:
        return WithinRun(Verdict.INCONCLUSIVE, Reason.NOT_INTERLEAVED, speedup, low, high, None)
    margin = margin_of(thresholds.margin, floor)
    verdict, reason = _single_verdict(math.log(low), math.log(high), margin)
    return WithinRun(verdict, reason, speedup, low, high, margin)


def _single_verdict(low: float, high: float, margin: Margin) -> tuple[Verdict, Reason]:
    if low > margin.log:
        return Verdict.IMPROVED, Reason.BEYOND_MARGIN
    if high < -margin.log:
        return Verdict.REGRESSED, Reason.BEYOND_MARGIN
    if -margin.log < low and high < margin.log:
        return Verdict.SAME, Reason.WITHIN_MARGIN
    return Verdict.INCONCLUSIVE, Reason.NEEDS_BLOCKS
