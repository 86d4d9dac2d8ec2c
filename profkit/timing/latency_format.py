"""Latencies as files: `profkit.time/1`, and the parts that `profkit.cell/1` shares."""

from collections import Counter
from collections.abc import Sequence
from reprlib import repr as brief
from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, field
from msgspec.structs import force_setattr

from profkit.capture.correctness import Declared, Status
from profkit.capture.gpu import Moment
from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.typed_file import (
    Amount,
    Count,
    Derived,
    Facts,
    File,
    Maybe,
    Model,
    Number,
    row_of,
)
from profkit.timing.results import Classic, Comparison, Interval, Margin, Summary, Thresholds

SCHEMA = "profkit.time/1"
CPU = "cpu"
POWER_CAP = "software power cap"
SHORTEST, LONGEST = 1e-12, 1e6  # s, chosen: outside is a wrong unit, not a call

Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=LONGEST)] | Annotated[int, Meta(ge=0, le=10**6)]
Samples: TypeAlias = Annotated[
    tuple[Annotated[float, Meta(ge=SHORTEST, le=LONGEST)], ...], Meta(min_length=1)
]


class Recorded(Model, frozen=True, kw_only=True):
    """A block of samples, in seconds per call in the order of time, and the GPU during it.

    `turn` is the position of the block among those of all series, `seconds` its wall time;
    `overtaken` (`late_submitted` in Python) counts samples that the GPU started before the host had
    submitted them. `sm_clock` (Hz) is the mean over the samples and the time between them, measured
    on the device, null where it can't be; `gpu` is the NVML reading just before them.
    """

    turn: Count
    seconds: Amount | None = None
    gpu: Moment | None = None
    late_submitted: Count | None = field(default=None, name="overtaken")
    sm_clock: Amount | None = None
    samples: Samples


class Checked(Facts, frozen=True, kw_only=True):
    """A variant's check against the reference; `error` and `bound` are relative."""

    name: Maybe[str] = UNSET
    status: Maybe[Status] = UNSET
    error: Maybe[Number] = UNSET
    bound: Maybe[Number] = UNSET
    reason: Maybe[str] = UNSET


class MemoryUse(Facts, frozen=True, kw_only=True):
    """Device memory of torch in bytes: the peaks during a call; `allocations` of its pool."""

    peak_allocated: Maybe[Count] = UNSET
    peak_reserved: Maybe[Count] = UNSET
    allocations: Maybe[Count] = UNSET


class Readiness(Facts, frozen=True, kw_only=True):
    """Measurements before the samples; seconds. A sample has `group` calls.

    `host` is the host launch overhead of a call, `empty` the timer overhead, `steady`: the SM clock
    was stable at the end of the warm-up, `waits`: a call synchronizes with the GPU.
    """

    rough: Maybe[Seconds] = UNSET
    host: Maybe[Seconds] = UNSET
    empty: Maybe[Seconds] = UNSET
    flush: Maybe[Seconds] = UNSET
    warmup: Maybe[Seconds] = UNSET
    steady: Maybe[bool] = UNSET
    waits: Maybe[bool] = UNSET
    memory: Maybe[MemoryUse] = UNSET
    group: Maybe[Annotated[int, Meta(ge=1, le=1_000_000)]] = UNSET


class Setup(Model, frozen=True, kw_only=True):
    """How the samples of one variant were taken, as far as known."""

    label: str
    timer: Literal["events", "graph", "cupti", "wall", "synchronized", ""] = ""
    cache: Literal["cold", "warm", ""] = ""
    target: Declared = Declared()
    gpu: Device = Device()
    check: Checked = Checked()
    ready: Readiness = Readiness()

    def __post_init__(self) -> None:
        if self.gpu:
            self.gpu.refuse_unnamed()

    @property
    def measured_with(self) -> tuple[str, str, str]:
        """The setup of an A/A floor: the GPU's UUID (or `cpu`), the timer, the cache."""
        return CPU if self.timer == "wall" else self.gpu.uuid or "", self.timer, self.cache


class Latency(Setup, frozen=True, kw_only=True):
    """Samples of one variant, its blocks in the order of time."""

    blocks: Annotated[tuple[Recorded, ...], Meta(min_length=1)]

    def __post_init__(self) -> None:
        super().__post_init__()
        force_setattr(self, "blocks", tuple(sorted(self.blocks, key=lambda block: block.turn)))

    @property
    def samples(self) -> tuple[float, ...]:
        """All samples in the order of time."""
        return tuple(value for block in self.blocks for value in block.samples)

    @property
    def moments(self) -> tuple[Moment, ...]:
        """NVML readings just before blocks."""
        return tuple(block.gpu for block in self.blocks if block.gpu)

    @property
    def clocks_counted(self) -> tuple[float, ...]:
        """The SM clock (Hz) of blocks, measured on the device; empty where under half have one."""
        counted = [block.sm_clock for block in self.blocks if block.sm_clock]
        return tuple(counted) if 2 * len(counted) >= len(self.blocks) else ()

    @property
    def cycles(self) -> tuple[float, ...]:
        """SM cycles of a call by block: its mean time, without a tenth of the samples at either
        end, at the clock that the device measured over it."""
        means = [(block.sm_clock, _trimmed_mean(block.samples)) for block in self.blocks]
        return tuple(clock * mean for clock, mean in means if clock and self.clocks_counted)

    @property
    def clocks_read(self) -> tuple[float, ...]:
        """The SM clock (Hz) by NVML just before a block, where known."""
        return tuple(moment.sm_clock for moment in self.moments if moment.sm_clock)

    @property
    def clocks(self) -> tuple[float, ...]:
        """The SM clock (Hz) of blocks: measured on the device, else read by NVML before them."""
        return self.clocks_counted or self.clocks_read

    @property
    def took_turns(self) -> bool:
        """Whether its blocks are interleaved with others: never three of its own in a row."""
        turns = [block.turn for block in self.blocks]
        if len(turns) < 3:
            return len(turns) == 2 and turns[1] - turns[0] > 1
        return all(later - turn > 2 for turn, later in zip(turns, turns[2:], strict=False))


TRIMMED = 0.1
"""The share of samples cut at either end of a mean; chosen: it resists up to 10% of outliers."""


def _trimmed_mean(samples: Sequence[float]) -> float:
    cut = int(TRIMMED * len(samples))
    middle = sorted(samples)[cut : len(samples) - cut]
    return sum(middle) / len(middle)


class Rate(Model, frozen=True, kw_only=True):
    """A rate at the median latency, per second, from work that the target declares.

    `peak` is the datasheet's dense one at boost clock, by the name `of`; null where none is known
    to apply. `share` is of the peak: above 1 part of the declared work was not done, or by another
    unit.
    """

    value: Number
    peak: Number | None
    of: str
    verified: bool
    share: Number | None


class Series(Setup, frozen=True, kw_only=True):
    """A latency and the statistics of its samples.

    `interval` is the one of the median to quote: between-block at 95%, else that of `statistics`,
    within-run and without a level for the reason `without_level`. `throttled_blocks` counts blocks
    by NVML throttle reason. `sentence` is for publications.
    """

    interval: Interval | None = None
    without_level: str | None = None
    statistics: Derived[Summary] = UNSET
    flop_rate: Rate | None = None
    bandwidth: Rate | None = None
    throttled_blocks: dict[str, int] = field(default_factory=dict)
    launch_bound: bool = False
    sentence: str = ""
    blocks: Annotated[tuple[Recorded, ...], Meta(min_length=1)]

    @property
    def latency(self) -> Latency:
        """Its samples alone."""
        return row_of(Latency, self)

    @property
    def summary(self) -> Summary:
        """The statistics, which a file may lack but an analyzed series has."""
        assert self.statistics is not UNSET
        return self.statistics

    @property
    def clock(self) -> tuple[float, float] | None:
        """The lowest and the highest SM clock (Hz) of a block."""
        clocks = self.latency.clocks
        return (min(clocks), max(clocks)) if clocks else None

    @property
    def throttled_throughout(self) -> tuple[str, ...]:
        """Reasons in every block, except the power cap: a steady load may run at it."""
        counts, blocks = self.throttled_blocks.items(), len(self.blocks)
        return tuple(why for why, count in counts if count == blocks and why != POWER_CAP)


class SavedVerdict(Model, frozen=True, kw_only=True):
    """The comparison of two saved latencies: `b` against `a`.

    `medians` are in seconds. `speedup` is the median of a over that of b; `low` to `high` holds for
    these two runs, at no confidence level. `margin` is null without a known A/A `floor`, a share.
    `obstacles` are differences in how they were measured, `notes` versions that differ, `doubts`
    warnings on either.
    """

    a: str
    b: str
    verdict: str
    reason: str
    medians: tuple[float, float]
    speedup: float
    low: float | None
    high: float | None
    margin: Margin | None
    floor: float | None
    obstacles: tuple[str, ...]
    notes: tuple[str, ...]
    classic: Classic
    doubts: tuple[str, ...]


class Pair(Struct, frozen=True):
    """The verdict on `b` against `a`."""

    a: Series
    b: Series
    comparison: Comparison

    @property
    def samples_in_a_block(self) -> int:
        """The fewest of either side."""
        return min(len(block.samples) for block in self.a.blocks + self.b.blocks)


class LatencyFile(File, frozen=True, kw_only=True, tag=SCHEMA):
    """Latencies with their samples, and verdicts.

    Times are in seconds, shares of 1; a missing number is null. `floor` is the machine's A/A floor.
    `left_out` are variants that can't run here, and why; `spans` seconds by part of the work. It
    contains no host names or paths.
    """

    profkit: str = ""
    created: str = ""
    seed: Count | None = None
    warmup: Amount | None = None
    series: Annotated[tuple[Series, ...], Meta(min_length=1)]
    comparisons: tuple[Comparison, ...] = ()
    thresholds: Thresholds = Thresholds()
    floor: Amount | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    fingerprint: Fingerprint = Fingerprint()
    fingerprint_sha256: str | None = None
    seconds: Amount | None = None
    spans: dict[str, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The target's name, or the first series' label."""
        return self.series[0].target.name or self.series[0].label

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The comparisons with their sides."""
        sides = {series.label: series for series in self.series}
        return tuple(Pair(sides[row.a], sides[row.b], row) for row in self.comparisons)

    def __post_init__(self) -> None:
        """Series of one run have labels and turns of their own."""
        labels = Counter[str | int](series.label for series in self.series)
        turns = Counter[str | int](block.turn for series in self.series for block in series.blocks)
        for name, counts in (("the label", labels), ("turn", turns)):
            ((value, count),) = counts.most_common(1)
            if count > 1:
                raise ValueError(f"{name} {brief(value)} occurs {count} times")
