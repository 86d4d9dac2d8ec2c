"""Latencies analyzed: statistics, rates, and verdicts on pairs."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct, structs

from profkit.core.errors import BadInput, UsageError
from profkit.core.fingerprint import Device
from profkit.core.timestamp import timestamp
from profkit.core.typed_file import part
from profkit.core.version import __version__
from profkit.core.work import Work
from profkit.hardware.gpus import Datasheet, Peak, find_datasheet
from profkit.timing import results, statistics, verdict
from profkit.timing.latency_file import Claimed, Saved
from profkit.timing.latency_format import Latency, LatencyFile, Pair, Rate, SavedVerdict, Series
from profkit.timing.latency_view import doubts, in_words
from profkit.timing.resolution import common_tick
from profkit.timing.results import DEFAULT, Comparison, Interval, Summary, Thresholds, Verdict
from profkit.timing.verdict import Reason

FEWEST_BLOCKS = 6
"""Fewest blocks for a between-block interval: t at 5 degrees of freedom is 1.3 times the normal
quantile, at 3 1.6 times."""
FEWEST_IN_A_BLOCK = 10
"""Fewest samples per block for it: below, skewed times bias the median of a block by as much as the
scatter of eight of them shows (benchmarks/error_rates.py, rows of 8 x 13)."""
# Chosen: twice the 1% to which readings of a stable SM clock agree (stopwatch).
_CLOCK_MOVED = 0.02
_FEWEST_OF_AN_ORDER = 0.25  # chosen: each side begins a quarter of the pairs, so that drifts cancel
INCOMPARABLE = "incomparable"
PEAKS: Mapping[str, tuple[str, ...]] = {
    "float16": ("tensor_fp16",),
    "bfloat16": ("tensor_bf16",),
    "float32": ("fp32",),
    "float64": ("tensor_fp64", "fp64"),
}


Versions: TypeAlias = Mapping[str, str | None]


class SavedPair(Struct, frozen=True):
    """The comparison of two saved latencies, not interleaved: `b` against `a`."""

    a: Series
    b: Series
    result: SavedVerdict

    @property
    def open(self) -> bool:
        """Whether there is no verdict."""
        return self.result.verdict in {INCOMPARABLE, Verdict.INCONCLUSIVE.value}


def analyze_latency(latency: Latency) -> Series:
    """The statistics of a latency and the rates at its median; raises BadInput for bad samples."""
    summary = statistics.summarize(latency.samples)
    seconds, ready = summary.median, latency.ready
    work = latency.target.work or Work(0, 0)
    sheet = datasheet_of(latency.gpu)[0] if latency.target.work else None
    peaks = sheet.peaks if sheet else {}
    on_gpu = latency.timer not in {"", "wall", "synchronized"}
    between = _over_blocks(latency, summary)
    return Series(
        **part(latency, *Latency.__struct_fields__),
        interval=between or summary.interval,
        without_level=None if between else _without_level(latency),
        statistics=summary,
        flop_rate=_rate(work.flop, seconds, compute_peak(latency.target.dtype or "", peaks), peaks),
        bandwidth=_rate(work.bytes, seconds, "dram", peaks),
        throttled_blocks=dict(
            Counter(why for moment in latency.moments for why in moment.throttled_by)
        ),
        launch_bound=on_gpu and not ready.waits and (ready.host or 0.0) > seconds,
    )


def _without_level(latency: Latency) -> str:
    """Why no confidence level is stated."""
    sizes = [len(block.samples) for block in latency.blocks]
    if len(sizes) == 1:
        return "a single uninterrupted run does not show run-to-run variation"
    if len(sizes) < FEWEST_BLOCKS or min(sizes) < FEWEST_IN_A_BLOCK:
        return (
            f"{len(sizes)} blocks of {min(sizes)} samples; a between-block interval needs at "
            f"least {FEWEST_BLOCKS} blocks of at least {FEWEST_IN_A_BLOCK} samples"
        )
    if not latency.took_turns:
        return "the blocks are not interleaved"
    return "the blocks are autocorrelated, or equal within the timer resolution"


def _over_blocks(latency: Latency, summary: Summary) -> Interval | None:
    """The between-block interval; None where the blocks support none.

    Consecutive blocks are one run cut in pieces: slow changes make neighbors similar, which eight
    pieces don't show. Nor is there one where all times are equal and no tick is known: it would
    have no width.
    """
    if summary.refused is results.Reason.CONSTANT or not latency.took_turns:
        return None
    interval = verdict.interval_over_blocks(
        [block.samples for block in latency.blocks],
        summary.tick or 0.0,
        structs.replace(DEFAULT, blocks=FEWEST_BLOCKS, samples=FEWEST_IN_A_BLOCK),
    )
    return None if interval is None or interval.low == interval.high else interval


def latency_report(
    saved: Saved,
    names: Sequence[str] = (),
    *,
    thresholds: Thresholds = DEFAULT,
    floor: float | None = None,
) -> LatencyFile:
    """The report on a file of latencies, with verdicts on series of `names` against their first.

    `floor` is the machine's A/A floor, that of the file where it is None. Raises what
    `analyze_latency` and `compare_with` do.
    """
    series = {row.label: analyze_latency(row) for row in saved.latencies}
    floor = saved.floor if floor is None else floor
    sides = [series[name] for name in names]
    pairs = compare_with(sides[0], sides[1:], thresholds=thresholds, floor=floor) if sides else ()
    file = LatencyFile(
        profkit=__version__,
        created=timestamp(),
        seed=saved.file.seed if saved.file else None,
        warmup=saved.file.warmup if saved.file else None,
        series=tuple(series.values()),
        comparisons=tuple(pair.comparison for pair in pairs),
        thresholds=thresholds,
        floor=floor,
        fingerprint=saved.fingerprint,
        fingerprint_sha256=saved.fingerprint_sha256 or None,
    )
    return in_words(file, claimed=saved.claimed)


def compare_with(
    baseline: Series,
    others: Sequence[Series],
    *,
    thresholds: Thresholds = DEFAULT,
    floor: float | None = None,
) -> tuple[Pair, ...]:
    """Each of `others` against `baseline`, corrected for their number.

    `floor` is the machine's A/A floor, a share, None where it is unknown. Without interleaved
    blocks the comparison is INCONCLUSIVE. Raises UsageError for latencies whose blocks don't pair
    up, BadInput for blocks whose ratio is not a finite number.
    """
    for other in others:
        if len(other.latency.blocks) != len(baseline.latency.blocks):
            raise UsageError(
                f"{baseline.label} has {len(baseline.latency.blocks)} blocks, {other.label} "
                f"{len(other.latency.blocks)}",
                "time both in one run: profkit time --compare",
            )
    comparisons = verdict.holm([_compared(baseline, other, thresholds, floor) for other in others])
    return tuple(Pair(baseline, *side) for side in zip(others, comparisons, strict=True))


def _compared(a: Series, b: Series, thresholds: Thresholds, floor: float | None) -> Comparison:
    is_interleaved, clocks = interleaved(a.latency, b.latency), _clocks_apart(a, b)
    faults = [
        f"{side.label} was throttled throughout: {', '.join(side.throttled_throughout)}"
        for side in (a, b)
        if side.throttled_throughout
    ]
    if clocks and not is_interleaved:
        first, second = (f"{clock / 1e6:.0f} MHz for " for clock in clocks)
        faults.append(f"the SM clock was {first}{a.label} and {second}{b.label}")
    comparison = verdict.compare(
        [block.samples for block in a.latency.blocks],
        [block.samples for block in b.latency.blocks],
        tick=common_tick(np.array(a.latency.samples), np.array(b.latency.samples)),
        floor=floor or 0.0,
        invalid=faults,
        thresholds=thresholds,
    )
    if not (comparison.low > 0 and math.isfinite(comparison.high + comparison.detectable)):
        raise BadInput(f"the blocks of {a.label} and {b.label} differ too much", "time again")
    comparison = structs.replace(comparison, a=a.label, b=b.label)
    if is_interleaved:
        return structs.replace(comparison, clocks=clocks)
    if comparison.verdict is Verdict.INVALID:
        return comparison
    return verdict.undecided(comparison, Reason.NOT_INTERLEAVED)


def interleaved(a: Latency, b: Latency) -> bool:
    """Whether the blocks of two latencies are interleaved, so that a drift affects both equally.

    Block i of both comes before block i + 1 of either (blocks of others may lie in between), and
    each of the two begins at least a quarter of the pairs.
    """
    pairs = [(one.turn, other.turn) for one, other in zip(a.blocks, b.blocks, strict=True)]
    in_rounds = all(max(pair) < min(following) for pair, following in pairwise(pairs))
    first = sum(turn < other for turn, other in pairs)
    second = sum(turn > other for turn, other in pairs)
    return in_rounds and min(first, second) >= _FEWEST_OF_AN_ORDER * len(pairs)


def compare_saved(
    a: Series,
    b: Series,
    *,
    thresholds: Thresholds,
    floor: float | None,
    versions: tuple[Versions, Versions] = ({}, {}),
    claimed: tuple[Claimed | None, Claimed | None] = (None, None),
) -> SavedPair:
    """The comparison of two saved latencies; no verdict where they were measured differently.

    `floor` is the A/A floor between runs, None where it is unknown. `versions` are those of the
    software by name, `claimed` what third-party files state, of `a` and of `b`.
    """
    before, after = (structs.replace(side.summary, interval=side.interval) for side in (a, b))
    within = verdict.single_runs(before, after, floor, thresholds)
    if min(a.summary.n, b.summary.n) < thresholds.samples:
        within = structs.replace(
            within, verdict=Verdict.INCONCLUSIVE, reason=Reason.TOO_FEW_SAMPLES
        )
    obstacles = incomparable(a, b)
    tick = max(a.summary.tick or 0.0, b.summary.tick or 0.0) or None
    drivers = ("driver", a.latency.gpu.driver, b.latency.gpu.driver)
    first, second = versions
    sides = zip(("before:", "after:"), (a, b), claimed, strict=True)
    result = SavedVerdict(
        a=a.label,
        b=b.label,
        verdict=INCOMPARABLE if obstacles else within.verdict.value,
        medians=(a.summary.median, b.summary.median),
        **part(within, "reason", "speedup", "low", "high", "margin"),
        floor=floor,
        obstacles=obstacles,
        notes=_apart([drivers, *((name, first[name], second.get(name)) for name in first)]),
        classic=statistics.classic(a.latency.samples, b.latency.samples, tick),
        doubts=tuple(
            f"{name} {doubt}" for name, side, stated in sides for doubt in doubts([side], stated)
        ),
    )
    return SavedPair(a, b, result)


def incomparable(a: Series, b: Series) -> tuple[str, ...]:
    """Why two saved latencies are not comparable; empty where nothing known is in the way."""
    before, after = a.latency, b.latency
    return _apart(
        (
            ("timer", before.timer, after.timer),
            ("cache", before.cache, after.cache),
            ("calls per sample", before.ready.group, after.ready.group),
            ("GPU", before.gpu.name, after.gpu.name),
            ("GPU", before.gpu.uuid, after.gpu.uuid),
            ("shapes", before.target.shapes, after.target.shapes),
            ("dtype", before.target.dtype, after.target.dtype),
            ("work", before.target.work, after.target.work),
        )
    )


def _apart(facts: Iterable[tuple[str, Any, Any]]) -> tuple[str, ...]:
    """Facts that are known of both sides and differ."""
    return tuple(
        f"{name}: {_brief(before)} vs {_brief(after)}"
        for name, before, after in facts
        if before and after and before != after
    )


def _brief(fact: Any) -> str:
    if isinstance(fact, Work):
        return fact.what or f"flop={fact.flop} bytes={fact.bytes}"
    if isinstance(fact, Mapping):
        return " ".join(f"{key}={value}" for key, value in fact.items())
    return str(fact)


def _clocks_apart(a: Series, b: Series) -> tuple[float, float] | None:
    """The median clocks (Hz) of sides with disjoint clocks: every block of one above the other's.

    With interleaved blocks everything else that changes a clock affected both equally: each runs at
    the clock under its own power draw, which is part of its time. Under a power cap the clock
    changes by 20% between readings, so that medians of few readings differ by chance. Device
    measurements are compared with device measurements alone. None where the clocks are not disjoint
    by over _CLOCK_MOVED.
    """
    counted = [side.latency.clocks_counted for side in (a, b)]
    clocks = counted if all(counted) else [side.latency.clocks_read for side in (a, b)]
    if not all(clocks):
        return None
    low, high = sorted(clocks, key=median)
    if min(high) <= max(low) or median(high) <= median(low) * (1 + _CLOCK_MOVED):
        return None
    return median(clocks[0]), median(clocks[1])


def median_clock(side: Series) -> float | None:
    """The SM clock (Hz) of a series, the median of its blocks'; None where it is unknown."""
    clocks = side.latency.clocks
    return median(clocks) if clocks else None


def _rate(amount: float, seconds: float, name: str, peaks: Mapping[str, Peak]) -> Rate | None:
    if not amount:
        return None
    value, peak = amount / seconds, peaks.get(name)
    if peak is None:
        return Rate(value=value, peak=None, of=name, verified=False, share=None)
    share = value / peak.value
    return Rate(value=value, peak=peak.value, of=name, verified=peak.verified, share=share)


def compute_peak(dtype: str, peaks: Mapping[str, Peak]) -> str:
    """The name of the compute peak of a dtype; "" where there is none."""
    return next((name for name in PEAKS.get(dtype, ()) if name in peaks), "")


def datasheet_of(gpu: Device) -> tuple[Datasheet | None, str]:
    """The datasheet of a fingerprint's GPU; None and the reason where there is none."""
    if not gpu:
        return None, "no GPU"
    major, minor = (int(part) for part in (gpu.compute_capability or "").split("."))
    return find_datasheet(
        gpu.name or "", (major, minor), gpu.multiprocessors or 0, gpu.memory_bytes or 0
    )
