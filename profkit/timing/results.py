"""What is said of samples and of two sides: statistics, intervals, verdicts and what they ask for.

`profkit.timing.statistics` and `profkit.timing.verdict` compute it; files hold it as it is.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Annotated

from msgspec import Meta

from profkit.core.typed_file import Model


class Reason(Enum):
    """Why samples can't be read as independent, or why that can't be told."""

    AUTOCORRELATED = "autocorrelated"
    DRIFTING = "drifting"
    START_UP = "start-up"
    TOO_FEW = "too few samples"
    CONSTANT = "constant"


class State(Enum):
    """Whether samples may be read as independent draws from one distribution."""

    INDEPENDENT = "independent"
    NOT_INDEPENDENT = "not independent"
    UNKNOWN = "unknown"


class Claim(Enum):
    """What an interval claims.

    HOLDS: its level, over blocks. WITHIN_RUN: no level; where the median of this run lies if its
    samples are independent. WIDENED: no level; the samples are seen not to be. IF_INDEPENDENT: in
    files of profkit 0.1 alone.
    """

    HOLDS = "holds"
    WITHIN_RUN = "within run"
    WIDENED = "widened"
    IF_INDEPENDENT = "if independent"


class Separation(Enum):
    """Cliff's delta in words (Romano et al. 2006): below 0.147, 0.33, 0.474, and above."""

    NEGLIGIBLE = "negligible"
    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"


class Interval(Model, frozen=True):
    """An interval for the median: `low` to `high` (s).

    `level` is the coverage claimed, None where none is. `tick` (s) was added at both ends for the
    timer's resolution.
    """

    low: float
    high: float
    level: float | None
    claim: Claim
    tick: float = 0.0


class Percentile(Model, frozen=True):
    """The `q` quantile (s), None below the `needs` samples that bound it at 95% on both sides."""

    q: float
    value: float | None
    needs: int


class Drift(Model, frozen=True):
    """`relative`: the second half's median over the first's, less 1; `p_value`: by chance."""

    relative: float
    p_value: float


class Independence(Model, frozen=True):
    """Whether the samples may be read as independent, and the reasons where not."""

    state: State
    reasons: tuple[Reason, ...] = ()


class Summary(Model, frozen=True):
    """The statistics of one run; times in s.

    `std` (n - 1 in the denominator) and `cv` (std / mean) are None for one sample. `interval` is
    the percentile-bootstrap interval of the median within this run, None for the reason `refused`;
    `order_interval` the one between order statistics, never scaled for dependence; neither states a
    level. `tick` is the timer's grid, None where none is seen. `autocorrelation` (lag 1) is over
    ranks and decides, `raw_autocorrelation` is over times; both are None where undefined.
    `effective_n` is the number of independent samples that the run is worth. `outliers` counts
    samples far from the median, `startup` those of them that are slow and come first in an unbroken
    run.
    """

    n: int
    median: float
    mean: float
    std: float | None
    cv: float | None
    percentiles: tuple[Percentile, ...]
    interval: Interval | None
    refused: Reason | None
    order_interval: Interval | None
    tick: float | None
    autocorrelation: float | None
    raw_autocorrelation: float | None
    effective_n: float
    drift: Drift | None
    outliers: int
    startup: int
    independence: Independence


class Delta(Model, frozen=True):
    """Cliff's delta: P(a > b) - P(a < b), its size in words, and the Mann-Whitney p-value."""

    value: float
    separation: Separation
    p_value: float


class Classic(Model, frozen=True):
    """The classic rule for "B is faster than A", as evidence beside a verdict.

    `delta` is Cliff's, `separation` its size in words, `p_value` Mann and Whitney's. `apart` says
    that the 95% intervals of the medians don't overlap, None where a side has none. `speedup` is
    median A / median B. `claimable` needs intervals apart, |delta| >= 0.3 and a speed-up of at
    least 1.10. All three compare launches, not builds: a drift or another process separates
    launches of one and the same build.
    """

    delta: float
    separation: Separation
    p_value: float
    apart: bool | None
    speedup: float
    claimable: bool


class Verdict(Enum):
    """What is known of B against A."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


class Source(Enum):
    """What set the margin."""

    ASKED = "asked"
    FLOOR = "A/A floor"


class Thresholds(Model, frozen=True):
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


class Margin(Model, frozen=True):
    """The relative change below which two sides count as the same, and what set it."""

    value: float
    source: Source

    @property
    def log(self) -> float:
        return math.log1p(self.value)


class Comparison(Model, frozen=True, kw_only=True):
    """The verdict on `b` against `a`, the baseline, and what it rests on.

    `reason` is one of `profkit.timing.verdict.Reason`, `details` are the reasons for INVALID.
    `speedup` is time of a over time of b (geometric mean over blocks): above 1, b is faster. `low`
    to `high` is its interval at `level`, widened by `resolution`, the relative difference that the
    timer can't resolve. `detectable` is the slowdown, as a share, that as many such blocks find at
    the planned power. `clocks` (Hz) are those of a and of b where what each draws left them at two;
    the verdict is on times. `blocks_needed` is set for an INCONCLUSIVE that more blocks would
    settle if the effect and the scatter stay as they are. `p_value`: chance of a difference this
    far beyond the margin where there is none beyond it; `p_adjusted` among the comparisons made
    with it. `ratios` are the typical times of b over that of a by block: the median over all pairs
    of their samples (Hodges-Lehmann). `classic` is evidence alone. `settle` has the options to time
    again with, which would settle an inconclusive.
    """

    a: str = ""
    b: str = ""
    verdict: Verdict
    reason: str
    details: tuple[str, ...]
    clocks: tuple[float, float] | None = None
    speedup: float
    low: float
    high: float
    level: float
    margin: Margin
    resolution: Annotated[float, Meta(ge=0)] = 0.0
    detectable: float
    blocks: int
    blocks_needed: int | None
    p_value: float
    p_adjusted: float | None
    dependence: float | None
    ratios: tuple[float, ...]
    classic: Classic
    settle: str | None = None


DEFAULT = Thresholds()
STRICT = Thresholds(margin=0.005, level=0.99, same_level=0.95, blocks=8)
PERMISSIVE = Thresholds(margin=0.02, level=0.90, blocks=4, samples=10)
PRESETS = {"strict": STRICT, "default": DEFAULT, "permissive": PERMISSIVE}
