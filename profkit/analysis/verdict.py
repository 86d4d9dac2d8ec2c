"""Whether B is slower than A, from interleaved blocks of both, and how sure that is.

Launches of one process share its clocks, its memory layout and its neighbours, so a test over
launches sees differences between two processes of the same build. What is compared here are blocks:
r = log(median B / median A) of each pair of neighbouring blocks, and Student's t over the pairs.
What the launches of a block have in common, and how they depend on each other, then costs power but
makes no false alarm. docs/statistics.md has the rule and its measured error rates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import special

from profkit.analysis.statistics import (
    Array,
    Classic,
    Summary,
    checked,
    classic,
    correlation_p_value,
    effective_size,
    rank_correlation,
)
from profkit.errors import BadInput

Blocks: TypeAlias = Sequence[npt.ArrayLike]

MOST_BLOCKS = 200
_FEWEST_BLOCKS = 2
_FEWEST_TO_LEAVE_OUT = 4
_DEPENDENT_ALPHA = 0.025
_WILD_ALPHA = 0.01
_HIGHEST_EXPONENT = 700.0


class Verdict(Enum):
    """What is known of B against A."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


class Reason(Enum):
    """What a verdict rests on.

    BEYOND_MARGIN and WITHIN_MARGIN settle it. NEEDS_BLOCKS: more blocks would. AT_MARGIN: the
    difference is so close to the margin that 200 blocks wouldn't. WILD_BLOCK: all blocks but one
    would settle it. DEPENDENT_BLOCKS: it would be settled were the blocks independent. CORRECTED:
    settled alone, but not among the comparisons made with it. ENVIRONMENT: what the caller found.
    NOT_INTERLEAVED: two single runs without a known A/A floor. NO_INTERVAL: a run's median has no
    interval.
    """

    BEYOND_MARGIN = "beyond the margin"
    WITHIN_MARGIN = "within the margin"
    NEEDS_BLOCKS = "needs more blocks"
    AT_MARGIN = "too close to the margin"
    WILD_BLOCK = "one block differs from the others"
    DEPENDENT_BLOCKS = "blocks depend on each other"
    TOO_FEW_BLOCKS = "too few blocks"
    TOO_FEW_SAMPLES = "too few samples in a block"
    CORRECTED = "not beyond chance among several comparisons"
    ENVIRONMENT = "the environment moved"
    NOT_INTERLEAVED = "measured one after the other"
    NO_INTERVAL = "a median without an interval"


class Source(Enum):
    """What set the margin."""

    ASKED = "asked"
    TICK = "timer tick"
    FLOOR = "A/A floor"


@dataclass(frozen=True)
class Thresholds:
    """What a verdict asks for.

    `margin`: the relative change that matters. `level`: confidence of the interval that must lie
    beyond the margin; `same_level`: of the one that must lie within it (90% is the two one-sided
    tests at 5%). `power`: chance of a verdict that the detectable effect and the blocks needed are
    planned for. `blocks` and `samples` (a block and side): the fewest that are judged.
    """

    margin: float = 0.01
    level: float = 0.95
    same_level: float = 0.90
    power: float = 0.90
    blocks: int = 6
    samples: int = 30


DEFAULT = Thresholds()
STRICT = Thresholds(margin=0.005, level=0.99, same_level=0.95, blocks=8)
PERMISSIVE = Thresholds(margin=0.02, level=0.90, blocks=4, samples=10)
PRESETS = {"strict": STRICT, "default": DEFAULT, "permissive": PERMISSIVE}


@dataclass(frozen=True)
class Margin:
    """The relative change below which two sides count as the same, and what set it."""

    value: float
    source: Source

    @property
    def log(self) -> float:
        return math.log1p(self.value)


@dataclass(frozen=True)
class Ruling:
    """What the block ratios say; `effect` and its interval are mean log ratios (B slower: > 0).

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


@dataclass(frozen=True)
class Comparison:
    """The verdict on B against A, and what it rests on.

    `speedup` is time A / time B (geometric mean over blocks): above 1, B is faster. `low` to `high`
    is its interval at `level`, widened by what the timer can't resolve. `margin` is relative, as is
    `detectable`, the smallest slow-down that as many such blocks would find at the planned power.
    `blocks_needed` is set for an INCONCLUSIVE that more blocks would settle if the effect and the
    scatter stay as they are. `p_value`: chance of a difference this far beyond the margin where
    there is none beyond it; `p_adjusted` among the comparisons given to `holm`. `ratios` are the
    blocks' median B / median A. `details` are the caller's reasons for INVALID.
    """

    verdict: Verdict
    reason: Reason
    speedup: float
    low: float
    high: float
    level: float
    margin: Margin
    detectable: float
    blocks: int
    blocks_needed: int | None
    p_value: float
    p_adjusted: float | None
    dependence: float | None
    ratios: tuple[float, ...]
    classic: Classic
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class WithinRun:
    """What two saved runs, not interleaved, say of B against A.

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
) -> Comparison:
    """The verdict on B against A from blocks measured in turn (A B B A ..., or shuffled pairs).

    `a` and `b` hold a row of times (s) a block; block i of one was measured next to block i of the
    other. `tick` (s) is the timer's grid, `floor` the largest relative difference that this machine
    shows between two runs of the same build. `invalid` says why the measurement can't be believed.
    Raises BadInput for less than two blocks, unequal numbers of blocks, or bad samples.
    """
    before, after = _blocks(a), _blocks(b)
    if len(before) != len(after) or len(before) < _FEWEST_BLOCKS:
        raise BadInput(
            f"{len(before)} blocks of A and {len(after)} of B",
            "a comparison needs at least two blocks, as many of one side as of the other",
        )
    ratios = np.log(_medians(after)) - np.log(_medians(before))
    resolution = tick / float(min(np.median(_medians(before)), np.median(_medians(after))))
    margin = margin_of(thresholds.margin, resolution, floor)
    fewest = min(block.size for block in before + after)
    ruling = judge(ratios, margin, thresholds, fewest)
    verdict, reason = ruling.verdict, ruling.reason
    if invalid:
        verdict, reason = Verdict.INVALID, Reason.ENVIRONMENT
    slack = math.log1p(resolution)
    return Comparison(
        verdict=verdict,
        reason=reason,
        speedup=_exp(-ruling.effect),
        low=_exp(-ruling.high - slack),
        high=_exp(-ruling.low + slack),
        level=thresholds.level,
        margin=margin,
        detectable=ruling.detectable,
        blocks=len(before),
        blocks_needed=ruling.blocks_needed if verdict is Verdict.INCONCLUSIVE else None,
        p_value=ruling.p_value,
        p_adjusted=None,
        dependence=ruling.dependence,
        ratios=tuple(np.exp(ratios).tolist()),
        classic=classic(np.concatenate(before), np.concatenate(after), tick or None),
        details=tuple(invalid),
    )


@dataclass(frozen=True)
class OverBlocks:
    """Where the typical median of a block lies (s), at confidence `level`: `low` to `high`."""

    low: float
    high: float
    level: float


def interval_over_blocks(
    side: Blocks, tick: float = 0.0, thresholds: Thresholds = DEFAULT
) -> OverBlocks | None:
    """Student's t interval over the logarithms of block medians, a tick wider at either end.

    Samples of a block may depend on each other: it is the blocks that are taken for independent.
    None where there are fewer blocks, or samples in one, than are judged, or where the blocks are
    worth fewer since they are seen to depend on each other. Raises BadInput for bad samples.
    """
    blocks = _blocks(side)
    fewest = min((block.size for block in blocks), default=0)
    if len(blocks) < thresholds.blocks or fewest < thresholds.samples:
        return None
    medians = np.log(_medians(blocks))
    estimate = _estimate(medians, rank_correlation(medians))
    if estimate.worth < thresholds.blocks:
        return None
    half = _t(estimate.freedom, (1 + thresholds.level) / 2) * estimate.error
    low, high = (_exp(estimate.effect + sign * half) for sign in (-1, 1))
    if estimate.scatter == 0:
        low = high = float(np.median(blocks[0]))
    return OverBlocks(max(low - tick, 0.0), high + tick, thresholds.level)


def _blocks(side: Blocks) -> list[Array]:
    return [checked(block) for block in side]


def _medians(side: list[Array]) -> Array:
    return np.array([np.median(block) for block in side])


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < _HIGHEST_EXPONENT else math.inf


def margin_of(asked: float, resolution: float, floor: float) -> Margin:
    """The largest of the margin asked for, the tick over the median, and the A/A floor.

    Raises BadInput unless all three are finite and not negative.
    """
    if not all(math.isfinite(part) and part >= 0 for part in (asked, resolution, floor)):
        raise BadInput(f"margin {asked}, tick {resolution}, floor {floor}: not shares of a time")
    if asked >= max(resolution, floor):
        return Margin(asked, Source.ASKED)
    source = Source.TICK if resolution >= floor else Source.FLOOR
    return Margin(max(resolution, floor), source)


def judge(
    log_ratios: npt.ArrayLike,
    margin: Margin,
    thresholds: Thresholds = DEFAULT,
    samples: int | None = None,
) -> Ruling:
    """The ruling on log ratios, shape (blocks,), of which there are at least two.

    `samples` is the smallest number of samples a block; None where it needs no check. The whole
    interval at `level` beyond the margin is a verdict of a difference, the one at `same_level`
    within it a verdict of none (Schuirmann 1987), anything else is inconclusive.
    """
    ratios = np.asarray(log_ratios, dtype=np.float64)
    dependence = rank_correlation(ratios)
    estimate = _estimate(ratios, dependence)
    verdict = _verdict(estimate, margin, thresholds)
    reason = Reason.WITHIN_MARGIN if verdict is Verdict.SAME else Reason.BEYOND_MARGIN
    needed = None
    if ratios.size < thresholds.blocks:
        verdict, reason = Verdict.INCONCLUSIVE, Reason.TOO_FEW_BLOCKS
    elif samples is not None and samples < thresholds.samples:
        verdict, reason = Verdict.INCONCLUSIVE, Reason.TOO_FEW_SAMPLES
    if verdict is Verdict.INCONCLUSIVE:
        needed = _blocks_needed(estimate, margin, thresholds)
    if verdict is Verdict.INCONCLUSIVE and reason is Reason.BEYOND_MARGIN:
        reason = _why_open(ratios, estimate, margin, thresholds, needed)
    half = _t(estimate.freedom, (1 + thresholds.level) / 2) * estimate.error
    return Ruling(
        verdict=verdict,
        reason=reason,
        effect=estimate.effect,
        low=estimate.effect - half,
        high=estimate.effect + half,
        detectable=_exp(margin.log + half + _t(estimate.freedom, thresholds.power) * estimate.error)
        - 1,
        blocks_needed=needed,
        p_value=_difference_p(estimate, margin),
        dependence=dependence,
    )


@dataclass(frozen=True)
class _Estimate:
    """A mean log ratio, its standard error, and what both come from.

    `scatter` is the standard deviation of one block, `worth` the independent blocks that the blocks
    are worth.
    """

    effect: float
    scatter: float
    blocks: int
    worth: float

    @property
    def error(self) -> float:
        return self.scatter / math.sqrt(self.worth)

    @property
    def freedom(self) -> float:
        return max(self.worth - 1, 1.0)


def _estimate(ratios: Array, dependence: float | None) -> _Estimate:
    """The estimate over blocks, worth fewer of them where they depend on each other."""
    n = ratios.size
    worth = float(n)
    if dependence is not None and correlation_p_value(dependence, n) < _DEPENDENT_ALPHA:
        worth = effective_size(n, dependence)
    return _Estimate(float(ratios.mean()), float(ratios.std(ddof=1)), n, worth)


def _t(freedom: float, probability: float) -> float:
    return float(special.stdtrit(freedom, probability))


def _tail(estimate: _Estimate, distance: float) -> float:
    """The one-sided p-value of an effect `distance` beyond what is to be refuted."""
    if estimate.error == 0:
        return 0.0 if distance > 0 else 1.0
    return float(special.stdtr(estimate.freedom, -distance / estimate.error))


def _difference_p(estimate: _Estimate, margin: Margin) -> float:
    """Two-sided: below 1 - level exactly where the interval lies beyond the margin."""
    return min(1.0, 2 * _tail(estimate, abs(estimate.effect) - margin.log))


def _verdict(estimate: _Estimate, margin: Margin, thresholds: Thresholds) -> Verdict:
    if _difference_p(estimate, margin) < 1 - thresholds.level:
        return Verdict.REGRESSED if estimate.effect > 0 else Verdict.IMPROVED
    if _tail(estimate, margin.log - abs(estimate.effect)) < (1 - thresholds.same_level) / 2:
        return Verdict.SAME
    return Verdict.INCONCLUSIVE


def _why_open(
    ratios: Array,
    estimate: _Estimate,
    margin: Margin,
    thresholds: Thresholds,
    needed: int | None,
) -> Reason:
    """Why a sufficient number of blocks didn't settle it."""
    independent = replace(estimate, worth=float(estimate.blocks))
    if _verdict(independent, margin, thresholds) is not Verdict.INCONCLUSIVE:
        return Reason.DEPENDENT_BLOCKS
    if _one_block_spoils(ratios, margin, thresholds):
        return Reason.WILD_BLOCK
    return Reason.AT_MARGIN if needed is None else Reason.NEEDS_BLOCKS


def _one_block_spoils(ratios: Array, margin: Margin, thresholds: Thresholds) -> bool:
    """Whether the blocks agree on a verdict but for the one farthest from their median.

    It has to be beyond chance too: farther from the others' mean than one of as many blocks gets in
    1% of the cases (Grubbs' test in its form as a t-test on the block left out).
    """
    if ratios.size < _FEWEST_TO_LEAVE_OUT:
        return False
    farthest = int(np.abs(ratios - np.median(ratios)).argmax())
    others = np.delete(ratios, farthest)
    rest = _estimate(others, None)
    spread = rest.scatter * math.sqrt(1 + 1 / others.size)
    distance = abs(float(ratios[farthest]) - rest.effect)
    beyond = distance > spread * _t(rest.freedom, 1 - _WILD_ALPHA / (2 * ratios.size))
    return beyond and _verdict(rest, margin, thresholds) is not Verdict.INCONCLUSIVE


def _blocks_needed(estimate: _Estimate, margin: Margin, thresholds: Thresholds) -> int | None:
    """The blocks that settle it at the planned power if effect and scatter stay; None above 200."""
    distance = abs(estimate.effect) - margin.log
    level = (1 + (thresholds.level if distance > 0 else thresholds.same_level)) / 2
    for blocks in range(max(thresholds.blocks, estimate.blocks + 1), MOST_BLOCKS + 1):
        planned = replace(
            estimate, blocks=blocks, worth=max(blocks * estimate.worth / estimate.blocks, 2.0)
        )
        reach = _t(planned.freedom, level) + _t(planned.freedom, thresholds.power)
        if reach * planned.error < abs(distance):
            return blocks
    return None


def holm(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with p-values adjusted for their number (Holm 1979, Scand. J. Stat. 6).

    A REGRESSED or IMPROVED whose adjusted p-value isn't below 1 - level becomes INCONCLUSIVE; no
    verdict becomes stronger. SAME stays: it raises no alarm. INVALID ones don't count.
    """
    valid = [i for i, one in enumerate(comparisons) if one.verdict is not Verdict.INVALID]
    valid.sort(key=lambda i: comparisons[i].p_value)
    adjusted: dict[int, float] = {}
    highest = 0.0
    for rank, index in enumerate(valid):
        highest = max(highest, min(1.0, (len(valid) - rank) * comparisons[index].p_value))
        adjusted[index] = highest
    return [_corrected(one, adjusted.get(i)) for i, one in enumerate(comparisons)]


def _corrected(comparison: Comparison, p_adjusted: float | None) -> Comparison:
    comparison = replace(comparison, p_adjusted=p_adjusted)
    claimed = comparison.verdict in {Verdict.REGRESSED, Verdict.IMPROVED}
    if claimed and p_adjusted is not None and not p_adjusted < 1 - comparison.level:
        return replace(comparison, verdict=Verdict.INCONCLUSIVE, reason=Reason.CORRECTED)
    return comparison


def single_runs(
    a: Summary, b: Summary, floor: float | None = None, thresholds: Thresholds = DEFAULT
) -> WithinRun:
    """What two saved runs say that were not interleaved: "within-run only".

    What differs may be the build, the process, the clocks or the hour. So there is no verdict,
    unless the machine's A/A `floor` is known: the largest relative difference between the medians
    of two such runs of one and the same build. Then a difference is one of the builds as far as it
    exceeds the floor, and the ratio's interval has to lie beyond the margin, or within it;
    otherwise interleaved blocks are needed. Raises BadInput for a floor that isn't a share.
    """
    speedup = a.median / b.median
    if a.interval is None or b.interval is None or a.interval.low <= 0 or b.interval.low <= 0:
        return WithinRun(
            Verdict.INCONCLUSIVE, Reason.NO_INTERVAL, speedup, low=None, high=None, margin=None
        )
    low, high = a.interval.low / b.interval.high, a.interval.high / b.interval.low
    if floor is None:
        return WithinRun(Verdict.INCONCLUSIVE, Reason.NOT_INTERLEAVED, speedup, low, high, None)
    resolution = max(a.tick or 0.0, b.tick or 0.0) / min(a.median, b.median)
    margin = margin_of(thresholds.margin, resolution, floor)
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
