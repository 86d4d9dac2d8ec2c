"""Results on samples and comparisons: statistics, intervals, verdicts and their thresholds.

`profkit.timing.statistics` and `profkit.timing.verdict` compute them; files contain them as they
are.
"""

import math
from enum import Enum
from typing import Annotated

from msgspec import Meta

from profkit.core.typed_file import Model


class Reason(Enum):
    """Why samples are not independent, or why that is unknown."""

    AUTOCORRELATED = "autocorrelated"
    DRIFTING = "drifting"
    START_UP = "start-up"
    TOO_FEW = "too few samples"
    CONSTANT = "constant"


class State(Enum):
    """Whether samples count as independent draws from one distribution."""

    INDEPENDENT = "independent"
    NOT_INDEPENDENT = "not independent"
    UNKNOWN = "unknown"


class Claim(Enum):
    """The confidence of an interval.

    HOLDS: its confidence level, between blocks. WITHIN_RUN: no level; for the median of this run if
    its samples are independent. WIDENED: no level; inflated since they are not. IF_INDEPENDENT:
    only in files of profkit 0.1.
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

    `level` is its confidence level, None where none is stated. `tick` (s) was added at both ends
    for the timer's resolution.
    """

    low: float
    high: float
    level: float | None
    claim: Claim
    tick: float = 0.0


class Percentile(Model, frozen=True):
    """The `q` quantile (s), None below the `needs` samples for a two-sided 95% interval of it."""

    q: float
    value: float | None
    needs: int


class Drift(Model, frozen=True):
    """`relative`: the second half's median over the first's, minus 1; `p_value` of no drift."""

    relative: float
    p_value: float


class Independence(Model, frozen=True):
    """Whether the samples count as independent, and the reasons where not."""

    state: State
    reasons: tuple[Reason, ...] = ()


class Summary(Model, frozen=True):
    """The statistics of one run; times in s.

    `std` (n - 1 in the denominator) and `cv` (std / mean) are None for one sample. `interval` is
    the percentile-bootstrap interval of the median within this run, None for the reason `refused`;
    `order_interval` the one between order statistics, never inflated for dependence; neither states
    a confidence level. `tick` is the timer's grid, None where none is detected. `autocorrelation`
    (lag 1) is over ranks and decides, `raw_autocorrelation` is over times; both are None where
    undefined. `effective_n` is the effective sample size. `outliers` counts samples far from the
    median, `startup` the slow outliers at the start.
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


class Classic(Model, frozen=True):
    """The classic rule for "B is faster than A", as evidence next to a verdict.

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
    """The verdict on B against A."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


class Source(Enum):
    """Where the margin comes from."""

    ASKED = "asked"
    FLOOR = "A/A floor"


class Thresholds(Model, frozen=True):
    """The thresholds of a verdict.

    `margin`: the smallest relative change of interest. `level`: confidence of the interval that
    must lie beyond the margin; `same_level`: of the one that must lie within it (90% is the two
    one-sided tests at 5%). `power`: that of the detectable effect and of the blocks needed.
    `blocks` and `samples` (per block and side): the fewest for a verdict.
    docs/reference/methods/statistics.md has the measured error rates of the defaults.
    """

    margin: float = 0.01
    level: float = 0.95
    same_level: float = 0.90
    power: float = 0.90
    blocks: int = 6
    samples: int = 30


class Margin(Model, frozen=True):
    """The relative change below which two sides count as the same, and where it comes from."""

    value: float
    source: Source

    @property
    def log(self) -> float:
        return math.log1p(self.value)


class Comparison(Model, frozen=True, kw_only=True):
    """The verdict on `b` against `a`, the reference, and its evidence.

    `reason` is one of `profkit.timing.verdict.Reason`, `details` are the reasons for INVALID.
    `speedup` is time of a over time of b (geometric mean over blocks): above 1, b is faster. `low`
    to `high` is its interval at `level`, extended by `resolution`, the relative difference that the
    timer can't resolve. `detectable` is the smallest detectable slowdown, a share: the one that as
    many such blocks detect at the planned power. `clocks` (Hz) are those of a and of b where they
    differ under each variant's power draw; the verdict is on times. `blocks_needed` is set for an
    INCONCLUSIVE that more blocks would decide at the same effect and scatter. `p_value`: of no
    difference beyond the margin; `p_adjusted`: corrected for the comparisons made with it. `ratios`
    are times of b over a by block: the median over all pairs of their samples (Hodges-Lehmann).
    `classic` is additional evidence. `settle` has the options of a rerun that would decide an
    INCONCLUSIVE.
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
