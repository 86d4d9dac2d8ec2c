"""What latencies say: their statistics, the rates they amount to, and verdicts on pairs of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from msgspec import structs

from profkit.capture.work import Work
from profkit.core.errors import BadInput, EnvironmentProblem, UsageError
from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.typed_file import Model
from profkit.report.gpus import Datasheet, Peak, find_datasheet
from profkit.timing.latency_file import Claimed, Saved
from profkit.timing.latency_format import Latency, Rate
from profkit.timing.resolution import common_tick
from profkit.timing.results import (
    DEFAULT,
    Claim,
    Classic,
    Interval,
    Summary,
    Thresholds,
    Verdict,
)
from profkit.timing.results import Reason as Refusal
from profkit.timing.spread import difference_bound, enlarged_bound, run_bound
from profkit.timing.statistics import classic, summarize
from profkit.timing.verdict import (
    Comparison,
    Reason,
    WithinRun,
    compare,
    holm,
    interval_over_blocks,
    single_runs,
)

POWER_CAP = "software power cap"
FEWEST_BLOCKS = 6
"""Blocks from which on an interval over them is given: t at 5 degrees of freedom is 1.3 times the
normal quantile, at 3 1.6 times."""
FEWEST_IN_A_BLOCK = 10
"""Samples a block from which on it is given: below, skewed times bias the median of a block by as
much as its scatter lets eight of them show (benchmarks/error_rates.py, rows of 8 x 13)."""
_CLOCK_MOVED = 0.02
_WILD = 5
_FEWEST_OF_AN_ORDER = 0.25
PEAKS: Mapping[str, tuple[str, ...]] = {
    "float16": ("tensor_fp16",),
    "bfloat16": ("tensor_bf16",),
    "float32": ("fp32",),
    "float64": ("tensor_fp64", "fp64"),
}


@dataclass(frozen=True)
class Timed:
    """A latency and what it says. Clocks in Hz; `clock` is the lowest and highest of a block.

    `over_blocks` is the between-block interval of the median, None where the blocks support none.
    `claimed` is what a file of others gives beside its samples. `throttled` counts the blocks by
    each reason for which the driver held the clock down; `launch_bound` says that the host needs
    longer to submit a call than the GPU for its work.
    """

    latency: Latency
    summary: Summary
    flop_rate: Rate | None
    bandwidth: Rate | None
    clock: tuple[float, float] | None
    throttled: Mapping[str, int]
    launch_bound: bool
    over_blocks: Interval | None = None
    claimed: Claimed | None = None

    @property
    def label(self) -> str:
        return self.latency.label

    @property
    def interval(self) -> Interval | None:
        """The interval to quote: over blocks, at its level, else within the run, without one."""
        return self.over_blocks or self.summary.interval

    @property
    def without_level(self) -> str:
        """Why no confidence level is stated; "" where one is."""
        if self.over_blocks:
            return ""
        sizes = [len(block.samples) for block in self.latency.blocks]
        if len(sizes) == 1:
            return "one unbroken run shows nothing of what differs between runs"
        if len(sizes) < FEWEST_BLOCKS or min(sizes) < FEWEST_IN_A_BLOCK:
            return (
                f"{len(sizes)} blocks of {min(sizes)}, an interval over blocks takes "
                f"{FEWEST_BLOCKS} of {FEWEST_IN_A_BLOCK}"
            )
        if not self.latency.took_turns:
            return "the blocks followed each other with nothing in between"
        return "the blocks depend on each other, or the timer can't tell them apart"

    @property
    def throttled_throughout(self) -> tuple[str, ...]:
        """Reasons in force in every block, the power cap left out: a steady load may run at it."""
        blocks = len(self.latency.blocks)
        return tuple(
            reason
            for reason, count in self.throttled.items()
            if count == blocks and reason != POWER_CAP
        )


@dataclass(frozen=True)
class Pair:
    """The verdict on `b` against `a`."""

    a: Timed
    b: Timed
    comparison: Comparison

    @property
    def samples_in_a_block(self) -> int:
        """The fewest of either side."""
        return min(len(block.samples) for block in self.a.latency.blocks + self.b.latency.blocks)

    @property
    def clocks(self) -> tuple[float, float] | None:
        """The SM clocks (Hz) of `a` and `b` where they are surely apart though blocks took turns.

        All else that moves a clock fell on both alike: it is what the power that each draws leaves
        it, and belongs to its time. None where they are not apart, or did not take turns.
        """
        in_turns = interleaved(self.a.latency, self.b.latency)
        return _clocks_apart(self.a, self.b) if in_turns else None

    @property
    def speedup_in_cycles(self) -> float | None:
        """SM cycles of `a` over those of `b`, where they ran at two clocks."""
        clocks = self.clocks
        return self.comparison.speedup * clocks[0] / clocks[1] if clocks else None


@dataclass(frozen=True)
class SavedPair:
    """What two saved latencies, not measured in turns, say of `b` against `a`.

    `obstacles` is what differs in how they were measured, `notes` are versions that differ; `open`
    says that there is no verdict.
    """

    a: Timed
    b: Timed
    within: WithinRun
    classic: Classic
    obstacles: tuple[str, ...]
    notes: tuple[str, ...]
    floor: float | None
    open: bool


@dataclass(frozen=True)
class LatencyReport:
    """All that is to be told of one timing, measured or read from a file.

    `left_out` are variants that can't run here, and why. `spans` are seconds by part of the work,
    `seconds` all of it; empty and None for a file. `floor` is the machine's A/A floor, a share.
    `neighbours` counts processes of others on the GPU. `command` repeats the timing, for a
    comparison that needs more of it.
    """

    title: str
    timed: tuple[Timed, ...]
    pairs: tuple[Pair, ...] = ()
    thresholds: Thresholds = DEFAULT
    floor: float | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    fingerprint_sha256: str = ""
    seed: int | None = None
    warmup: float | None = None
    spans: Mapping[str, float] = field(default_factory=dict)
    seconds: float | None = None
    neighbours: int = 0
    command: tuple[str, ...] = ()


def analyze_latency(latency: Latency, claimed: Claimed | None = None) -> Timed:
    """The statistics of a latency and the rates at its median; raises BadInput for bad samples."""
    summary = summarize(latency.samples)
    over_blocks = _over_blocks(latency, summary)
    flop_rate, bandwidth = _rates(latency, summary.median)
    moments = [block.gpu for block in latency.blocks if block.gpu is not None]
    clocks = latency.clocks
    throttled: dict[str, int] = {}
    for moment in moments:
        for reason in moment.throttled_by:
            throttled[reason] = throttled.get(reason, 0) + 1
    return Timed(
        latency=latency,
        summary=summary,
        flop_rate=flop_rate,
        bandwidth=bandwidth,
        clock=(min(clocks), max(clocks)) if clocks else None,
        throttled=throttled,
        launch_bound=_launch_bound(latency, summary.median),
        over_blocks=over_blocks,
        claimed=claimed,
    )


def _over_blocks(latency: Latency, summary: Summary) -> Interval | None:
    """The between-block interval; None where the blocks support none.

    Blocks that followed each other are one run cut in pieces: what changes slowly makes neighbours
    alike, and eight pieces don't show it. Nor is there one where all times are equal and no tick is
    known: it would have no width.
    """
    if summary.refused is Refusal.CONSTANT or not latency.took_turns:
        return None
    thresholds = structs.replace(DEFAULT, blocks=FEWEST_BLOCKS, samples=FEWEST_IN_A_BLOCK)
    tick = summary.tick or 0.0
    found = interval_over_blocks([block.samples for block in latency.blocks], tick, thresholds)
    if found is None or found.low == found.high:
        return None
    return Interval(found.low, found.high, found.level, Claim.HOLDS, tick)


def latency_report(
    saved: Saved,
    names: Sequence[str] = (),
    *,
    thresholds: Thresholds = DEFAULT,
    floor: float | None = None,
) -> LatencyReport:
    """What a file of latencies says, with verdicts on the series of `names` against their first.

    `floor` is the machine's A/A floor, that of the file where it is None. Raises what
    `analyze_latency` and `compare_with` do.
    """
    timed = {one.label: analyze_latency(one, saved.claimed) for one in saved.latencies}
    known = saved.floor if floor is None else floor
    pairs: tuple[Pair, ...] = ()
    if names:
        first, *others = [timed[name] for name in names]
        pairs = compare_with(first, others, thresholds=thresholds, floor=known)
    return LatencyReport(
        title=saved.latencies[0].target.name or Path(saved.path).name,
        timed=tuple(timed.values()),
        pairs=pairs,
        thresholds=thresholds,
        floor=known,
        fingerprint=saved.fingerprint,
        fingerprint_sha256=saved.fingerprint_sha256 or "",
        seed=saved.file.seed if saved.file else None,
        warmup=saved.file.warmup if saved.file else None,
    )


def compare_with(
    baseline: Timed,
    others: Sequence[Timed],
    *,
    thresholds: Thresholds = DEFAULT,
    floor: float | None = None,
) -> tuple[Pair, ...]:
    """Each of `others` against `baseline`, corrected for their number.

    `floor` is the machine's A/A floor, a share, None where it is unknown. Blocks that weren't taken
    in turns leave the comparison INCONCLUSIVE. Raises UsageError for latencies whose blocks don't
    pair up, BadInput for blocks that differ beyond measure.
    """
    for other in others:
        if len(other.latency.blocks) != len(baseline.latency.blocks):
            raise UsageError(
                f"{baseline.label} has {len(baseline.latency.blocks)} blocks, {other.label} "
                f"{len(other.latency.blocks)}",
                "time both in one run: profkit time --compare",
            )
    comparisons = holm([_compared(baseline, other, thresholds, floor) for other in others])
    return tuple(
        Pair(baseline, other, comparison)
        for other, comparison in zip(others, comparisons, strict=True)
    )


def _compared(a: Timed, b: Timed, thresholds: Thresholds, floor: float | None) -> Comparison:
    comparison = compare(
        [block.samples for block in a.latency.blocks],
        [block.samples for block in b.latency.blocks],
        tick=common_tick(np.array(a.latency.samples), np.array(b.latency.samples)),
        floor=floor or 0.0,
        invalid=_faults(a, b),
        thresholds=thresholds,
    )
    if not (comparison.low > 0 and math.isfinite(comparison.high + comparison.detectable)):
        raise BadInput(f"the blocks of {a.label} and {b.label} differ beyond measure", "time anew")
    if comparison.verdict is Verdict.INVALID or interleaved(a.latency, b.latency):
        return comparison
    return replace(
        comparison,
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.NOT_INTERLEAVED,
        blocks_needed=None,
    )


def interleaved(a: Latency, b: Latency) -> bool:
    """Whether the blocks of two latencies were taken in turns, so that a drift falls on both alike.

    Block i of both comes before block i + 1 of either (blocks of others may lie in between), and
    each of the two begins at least a quarter of the pairs.
    """
    pairs = [(one.turn, other.turn) for one, other in zip(a.blocks, b.blocks, strict=True)]
    in_rounds = all(max(pair) < min(following) for pair, following in pairwise(pairs))
    first = sum(one < other for one, other in pairs)
    second = sum(one > other for one, other in pairs)
    return in_rounds and min(first, second) >= _FEWEST_OF_AN_ORDER * len(pairs)


def compare_saved(
    a: Timed,
    b: Timed,
    *,
    thresholds: Thresholds,
    floor: float | None,
    force: bool,
    versions: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {}),
) -> SavedPair:
    """What can be said of two saved latencies; nothing where they were measured differently.

    `floor` is the A/A floor between runs, None where it is unknown. `force` concludes all the same.
    `versions` are those of the software by name, of `a` and of `b`.
    """
    before, after = (structs.replace(side.summary, interval=side.interval) for side in (a, b))
    within = single_runs(before, after, floor, thresholds)
    if min(a.summary.n, b.summary.n) < thresholds.samples:
        within = replace(within, verdict=Verdict.INCONCLUSIVE, reason=Reason.TOO_FEW_SAMPLES)
    obstacles = incomparable(a, b)
    undecided = within.verdict is Verdict.INCONCLUSIVE or (bool(obstacles) and not force)
    tick = max(a.summary.tick or 0.0, b.summary.tick or 0.0) or None
    evidence = classic(a.latency.samples, b.latency.samples, tick)
    notes = _versions_apart(a, b, versions)
    return SavedPair(a, b, within, evidence, obstacles, notes, floor, undecided)


def incomparable(a: Timed, b: Timed) -> tuple[str, ...]:
    """What speaks against comparing two saved latencies; empty where nothing known does."""
    one, other = a.latency, b.latency
    facts = (
        ("timer", one.timer, other.timer),
        ("cache", one.cache, other.cache),
        ("calls a sample", one.ready.group, other.ready.group),
        ("GPU", one.gpu.name, other.gpu.name),
        ("GPU", one.gpu.uuid, other.gpu.uuid),
        ("shapes", one.target.shapes, other.target.shapes),
        ("dtype", one.target.dtype, other.target.dtype),
        ("work", one.target.work, other.target.work),
    )
    return _apart(facts)


def _versions_apart(
    a: Timed, b: Timed, versions: tuple[Mapping[str, Any], Mapping[str, Any]]
) -> tuple[str, ...]:
    """Versions of the driver and of software that are known of both and differ."""
    before, after = versions
    drivers = ("driver", a.latency.gpu.driver, b.latency.gpu.driver)
    return _apart([drivers, *((name, before[name], after.get(name)) for name in before)])


def _apart(facts: Iterable[tuple[str, Any, Any]]) -> tuple[str, ...]:
    return tuple(
        f"{name}: {_brief(one)} against {_brief(other)}"
        for name, one, other in facts
        if one and other and one != other
    )


def _brief(fact: Any) -> str:
    if isinstance(fact, Work):
        return fact.what or f"flop={fact.flop} bytes={fact.bytes}"
    if isinstance(fact, Mapping):
        return " ".join(f"{key}={value}" for key, value in fact.items())
    return str(fact)


def _launch_bound(latency: Latency, seconds: float) -> bool:
    """Whether the host needs longer to submit a call than the GPU for its work."""
    host = latency.ready.host or 0.0
    return latency.timer not in {"", "wall"} and not latency.ready.waits and host > seconds


def _faults(a: Timed, b: Timed) -> list[str]:
    """Why a comparison can't be believed."""
    faults = [
        f"{side.label} was throttled throughout: {', '.join(side.throttled_throughout)}"
        for side in (a, b)
        if side.throttled_throughout
    ]
    clocks = _clocks_apart(a, b)
    if clocks and not interleaved(a.latency, b.latency):
        faults.append(_clock_words(a, b, clocks))
    return faults


def _clocks_apart(a: Timed, b: Timed) -> tuple[float, float] | None:
    """The median clocks (Hz) of sides that surely ran at two: every block of one above the other's.

    Under a power cap the clock moves by 20% from one moment to the next, so that medians of few
    readings differ where nothing else does. What was counted is held against what was counted. None
    where the clocks are not surely apart by over 2%.
    """
    counted = [side.latency.clocks_counted for side in (a, b)]
    clocks = counted if all(counted) else [side.latency.clocks_read for side in (a, b)]
    if not all(clocks):
        return None
    low, high = sorted(clocks, key=median)
    if min(high) <= max(low) or median(high) <= median(low) * (1 + _CLOCK_MOVED):
        return None
    return median(clocks[0]), median(clocks[1])


def _clock_words(a: Timed, b: Timed, clocks: tuple[float, float]) -> str:
    words = [
        f"{clock / 1e6:.0f} MHz for {side.label}"
        for clock, side in zip(clocks, (a, b), strict=True)
    ]
    return f"the SM clock was {' and '.join(words)}"


def median_clock(side: Timed) -> float | None:
    """The SM clock (Hz) of a series, the median of its blocks'; None where it is unknown."""
    clocks = side.latency.clocks
    return median(clocks) if clocks else None


def _rates(latency: Latency, seconds: float) -> tuple[Rate | None, Rate | None]:
    work = latency.target.work
    if not work:
        return None, None
    peaks = _peaks(latency.gpu)
    compute = compute_peak(latency.target.dtype or "", peaks)
    return (
        _rate(work.flop / seconds, compute, peaks) if work.flop else None,
        _rate(work.bytes / seconds, "dram", peaks) if work.bytes else None,
    )


def _rate(value: float, name: str, peaks: Mapping[str, Peak]) -> Rate:
    peak = peaks.get(name)
    return Rate(
        value=value,
        peak=peak.value if peak else None,
        of=name,
        verified=peak.verified if peak else False,
        share=value / peak.value if peak else None,
    )


def compute_peak(dtype: str, peaks: Mapping[str, Peak]) -> str:
    """The name of the peak that arithmetic on a dtype is held against; "" where there is none."""
    return next((name for name in PEAKS.get(dtype, ()) if name in peaks), "")


def _peaks(gpu: Device) -> Mapping[str, Peak]:
    sheet, _ = datasheet_of(gpu)
    return sheet.peaks if sheet else {}


def datasheet_of(gpu: Device) -> tuple[Datasheet | None, str]:
    """The datasheet of a fingerprint's GPU; None and the reason where there is none."""
    if not gpu:
        return None, "no GPU"
    major, minor = (int(part) for part in (gpu.compute_capability or "").split("."))
    return find_datasheet(
        gpu.name or "", (major, minor), gpu.multiprocessors or 0, gpu.memory_bytes or 0
    )


class Differences(Model, frozen=True):
    """What runs of one build differ by, as shares of a latency.

    `largest` is the largest difference among comparisons that nothing disturbed, `bound` what 1% of
    those to come exceed at most (at 95% confidence, see `difference_bound`); `disturbed` counts the
    others, whose intervals are more than five times as wide as the typical one, and which the
    default thresholds leave open. `verdicts` counts what these make of all comparisons: a REGRESSED
    or an IMPROVED is a false alarm.
    """

    largest: float
    bound: float
    disturbed: int
    all: tuple[float, ...]
    typical_width: float
    verdicts: dict[str, int]

    @property
    def floor(self) -> float:
        """What a difference must exceed to be more than one of a build from itself."""
        return max(self.largest, self.bound)


def differences(
    pairs: Sequence[tuple[Latency, Latency]], typical_width: float | None = None
) -> Differences:
    """What pairs of latencies of one build differ by; their blocks took turns.

    `typical_width` (log of upper over lower end) is that of other pairs, for pairs too few to tell.
    Raises EnvironmentProblem where all were disturbed.
    """
    comparisons = [
        compare_with(analyze_latency(a), [analyze_latency(b)])[0].comparison for a, b in pairs
    ]
    widths = [math.log(one.high / one.low) for one in comparisons]
    typical = median(widths) if typical_width is None else typical_width
    calm = [
        one
        for one, width in zip(comparisons, widths, strict=True)
        if width <= _WILD * typical or one.verdict in {Verdict.REGRESSED, Verdict.IMPROVED}
    ]
    if not calm:
        raise EnvironmentProblem(
            "something else disturbed every comparison: no floor can be told", "calibrate again"
        )
    return Differences(
        largest=max(_share(one.speedup) for one in calm),
        bound=difference_bound([math.log(one.speedup) for one in calm]),
        disturbed=len(comparisons) - len(calm),
        all=tuple(one.speedup - 1 for one in comparisons),
        typical_width=typical,
        verdicts=dict(Counter(one.verdict.name for one in comparisons)),
    )


class Sharper(Model, frozen=True):
    """What more pairs of processes would give: a floor of `bound`, a share, were they to scatter
    as those that were measured."""

    processes: int
    bound: float


def sharper(between: Differences) -> tuple[Sharper, ...]:
    """The floors between processes that two and four times as many pairs would give."""
    pairs = len(between.all) - between.disturbed
    return tuple(
        Sharper(times * len(between.all), enlarged_bound(between.bound, pairs, times * pairs))
        for times in (2, 4)
    )


def between_runs(runs: Sequence[Latency]) -> float:
    """What two runs of one build differ by, a share: the bound from their medians, see `run_bound`,
    or the largest difference seen."""
    medians = [float(np.median(run.samples)) for run in runs]
    return max(run_bound(medians), max(medians) / min(medians) - 1)


def _share(speedup: float) -> float:
    """A ratio of times as a share, from the side that makes it larger."""
    return max(speedup, 1 / speedup) - 1
