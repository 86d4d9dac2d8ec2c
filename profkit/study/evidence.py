"""What a baseline's samples support, what a change has to reach, what measuring it costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from profkit.study.summary import GAPS, Row, Versus
from profkit.timing.results import Reason, State, Summary, Verdict
from profkit.timing.statistics import CLAIMABLE_DELTA, CLAIMABLE_SPEEDUP, DRIFT_MATTERS

TOP = 3


@dataclass(frozen=True)
class Evidence:
    """How many timed cells have which fault, and the worst of it.

    `correlation` is the highest lag-1 autocorrelation over ranks of a cell that is not independent,
    `raw` the highest over the times themselves of any cell,
    `drift` the largest change from the first half of a drifting cell's samples to the second as a
    share, `unsteady` cells differ so too but have too few samples to tell drift by,
    `cv` is the highest of a cell that begins with slow samples, `tick` (s) the coarsest timer grid
    and `tick_share` the largest share of a median that it is; None where there is none. `claimed`
    counts the cells whose interval, over blocks, states a level, `within` those with one of their
    run alone, without a level, `widened` those where it is wider for dependence, `gapped` those
    that claim nothing for gaps of the host. `overtaken` cells have samples that may hold such gaps,
    `launch_bound` ones take the host longer than the GPU. The clock of `unready` cells still moved
    when their warm-up ended.
    `clock` is the lowest and highest of the cells' SM clocks (Hz), `read` the cells whose clock the
    driver told before blocks (the device counted the others' over the samples), `capped` those
    that were at a power cap then.
    """

    cells: int
    claimed: int
    within: int
    widened: int
    gapped: int
    refused: int
    correlated: int
    correlation: float | None
    raw: float | None
    started_up: int
    drifting: int
    drift: float | None
    unsteady: int
    cv: float | None
    fewest_effective: float | None
    tick: float | None
    tick_share: float | None
    throttled: int
    launch_bound: int
    overtaken: int
    unready: int
    clock: tuple[float, float] | None
    read: int
    capped: int


def evidence(rows: Sequence[Row], statistics: Mapping[str, Summary] | None = None) -> Evidence:
    """What the timed cells of a baseline support; `statistics` by cell."""
    timed = [row for row in rows if row.is_timed]
    correlated = [row for row in timed if Reason.AUTOCORRELATED.value in row.dependence]
    drifting = [row for row in timed if Reason.DRIFTING.value in row.dependence]
    unsteady = [row for row in timed if abs(row.drift or 0.0) >= DRIFT_MATTERS]
    clocks = [row.sm_clock for row in timed if row.sm_clock]
    ticks = [row for row in timed if row.tick]
    return Evidence(
        cells=len(timed),
        claimed=sum(row.claim == "holds" for row in timed),
        within=sum(row.claim == "within run" for row in timed),
        widened=sum(row.claim == "widened" for row in timed),
        gapped=sum(row.claim == GAPS for row in timed),
        refused=sum(row.refused is not None for row in timed),
        correlated=len(correlated),
        correlation=_largest(row.autocorrelation for row in correlated),
        raw=_largest(one.raw_autocorrelation for one in (statistics or {}).values()),
        started_up=sum(bool(row.startup) for row in timed),
        drifting=len(drifting),
        drift=max((row.drift for row in drifting if row.drift is not None), key=abs, default=None),
        unsteady=sum(row.independence == State.UNKNOWN.value for row in unsteady),
        cv=_largest(row.cv for row in timed if row.startup),
        fewest_effective=min((row.effective_n for row in timed if row.effective_n), default=None),
        tick=_largest(row.tick for row in ticks),
        tick_share=_largest((row.tick or 0.0) / (row.seconds or 1.0) for row in ticks),
        throttled=sum(bool(row.throttled) for row in timed),
        launch_bound=sum(bool(row.launch_bound) for row in timed),
        overtaken=sum(bool(row.overtaken) for row in timed),
        unready=sum(row.steady is False for row in timed),
        clock=(min(clocks), max(clocks)) if clocks else None,
        read=sum(row.clock_is_read for row in timed),
        capped=sum(any("power" in why for why in row.throttled) for row in timed),
    )


@dataclass(frozen=True)
class SameKernel:
    """Comparisons of a backend with the one that it came down to: in truth nothing differs.

    `told` is how many verdicts say a difference all the same, `apart` how many intervals leave 1
    out, `largest` the largest difference of times, a share.
    """

    pairs: int
    told: int
    apart: int
    largest: float


def same_kernel(rows: Sequence[Row], comparisons: Sequence[Versus]) -> SameKernel | None:
    """What backends that chose another show of the measuring itself; None where none did."""
    chosen = {(row.shape, row.backend, row.chosen) for row in rows if row.chosen}
    found = [
        one.pair.comparison
        for one in comparisons
        for sides in [(one.pair.a.label, one.pair.b.label)]
        if (one.shape, *sides) in chosen or (one.shape, *sides[::-1]) in chosen
    ]
    if not found:
        return None
    return SameKernel(
        pairs=len(found),
        told=sum(one.verdict in {Verdict.IMPROVED, Verdict.REGRESSED} for one in found),
        apart=sum(not one.low <= 1 <= one.high for one in found),
        largest=max(max(one.speedup, 1 / one.speedup) - 1 for one in found),
    )


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


@dataclass(frozen=True)
class Goal:
    """What a change has to reach so that "faster" may be claimed of it over a cell.

    Its median is at most `median` (s), its interval ends below `below` (s; None where the cell has
    no interval or one that gaps of the host leave without a claim, so that nothing can be claimed
    over it), Cliff's delta is at least `delta`, which means that `pairs` of all pairs of samples (a
    share, ties split) have the change's faster.
    """

    row: Row
    median: float
    below: float | None
    delta: float
    pairs: float
    speedup: float


def goal(row: Row) -> Goal:
    """The goal over a timed cell: the classic rule of `profkit.timing.statistics.Classic`.

    The interval must lie below the cell's, so its median must too where the cell's interval is
    wider than the speed-up asked for.
    Cliff's delta is P(slower) - P(faster), so that its share of pairs is (1 + delta) / 2. Raises
    ValueError for a cell without a time.
    """
    if row.seconds is None:
        raise ValueError(f"{row.id} has no time")
    median = row.seconds / CLAIMABLE_SPEEDUP
    low = None if row.claim == GAPS else row.low
    if low is not None:
        median = min(median, low)
    return Goal(
        row=row,
        median=median,
        below=low,
        delta=CLAIMABLE_DELTA,
        pairs=(1 + CLAIMABLE_DELTA) / 2,
        speedup=CLAIMABLE_SPEEDUP,
    )


def top_rows(rows: Sequence[Row], most: int = TOP) -> tuple[Row, ...]:
    """The fastest timed cell of each of the `most` shapes with the highest FLOP rates.

    Where no rate is known, those of the shapes in their order.
    """
    best: dict[str, Row] = {}
    for row in rows:
        if row.seconds is not None:
            kept = best.get(row.shape)
            if kept is None or row.seconds < (kept.seconds or 0.0):
                best[row.shape] = row
    return tuple(sorted(best.values(), key=lambda row: -(row.flop_rate or 0.0))[:most])


def cost(seconds: float, price: float, gpus: int = 1) -> float:
    """What `seconds` on GPUs cost at `price` an hour and GPU, in the price's currency."""
    return seconds / 3600 * price * gpus
