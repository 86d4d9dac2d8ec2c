"""Results derived from a baseline's cells: rates, shares of peaks, regimes, scaling, the best.

Seconds, FLOP, bytes; shares of 1; None is unknown. Cells of different shapes are different work and
are never compared; backends of a shape are, where they were interleaved.
"""

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from statistics import median
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, structs

from profkit.capture.gpu import VISIBLE
from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.grouping import grouped
from profkit.core.typed_file import known, part
from profkit.hardware.gpus import Datasheet
from profkit.study.summary_format import (
    COUNTED,
    GAPS,
    BaselineFile,
    Best,
    Contrast,
    Quoted,
    Row,
    Scaling,
)  # fmt: skip
from profkit.timing import latency as latencies
from profkit.timing.cell import Cell, CellStatus, Value
from profkit.timing.latency_format import MemoryUse, Pair, Series
from profkit.timing.results import DEFAULT, Comparison, State, Thresholds, Verdict
from profkit.timing.statistics import DRIFT_MATTERS, intervals_apart
from profkit.timing.verdict import FEWEST_BLOCKS, Reason, holm, undecided

_Kind: TypeAlias = Literal["backend", "batch", "length"]
_Measure: TypeAlias = Literal["seconds", "flop_rate"]

THRESHOLDS: Thresholds = structs.replace(DEFAULT, samples=latencies.FEWEST_IN_A_BLOCK)
_SIZES = ("batch", "heads", "kv_heads", "length", "dim")
_KNOWN_OPTIONS = frozenset({*_SIZES, "dtype", "causal", "backward"})
GAPS_MATTER = 0.1
"""The share of such samples above which the interval is invalid.

A gap only lengthens a sample. Without the gaps in k of n samples the median is one of the observed
times between the quantiles (1 - k/n) / 2 and 1/2: a tenth moves it by 5% of the ranks, half of the
interval's reach to either side with the default 100 samples (0.98 / sqrt(n), 10%). With twice as
many it may lie beyond the end.
"""
_SAME_TOKENS = "length (same tokens)"
_OF_THE_CELL = (
    "id", "shape", "at", "backend", "status", "reason", "arguments", "version", "chosen", "round",
    "asked", "fewer",
)  # fmt: skip
_OF_THE_VERDICT = (
    "verdict", "details", "speedup", "low", "high", "p_value", "p_adjusted", "blocks"
)  # fmt: skip
_OF_THE_SAMPLES = (
    "n", "mean", "cv", "outliers", "startup", "autocorrelation", "effective_n", "tick"
)  # fmt: skip


def flagged_cells(rows: Iterable[Row]) -> dict[str, list[str]]:
    """Caveats, each with its cells."""
    return grouped((flag, row.id) for row in rows for flag in row.flags)


def unmeasured(rows: Iterable[Row]) -> dict[tuple[str, CellStatus, str], list[str]]:
    """The shapes that were not measured, by backend, status and reason."""
    return grouped(
        ((row.backend, row.status, row.reason), row.shape)
        for row in rows
        if row.status not in {CellStatus.measured, CellStatus.imported}
    )


def top_rows(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The fastest timed cell of each of the three shapes with the highest FLOP rates.

    Where no rate is known, those of the shapes in their order.
    """
    shapes = grouped((row.shape, row) for row in rows if row.is_timed).values()
    fastest = [min(group, key=lambda row: row.seconds or 0.0) for group in shapes]
    return tuple(sorted(fastest, key=lambda row: -(row.flop_rate or 0.0))[:3])


def derive(
    summary: BaselineFile,
    cells: Sequence[Cell],
    *,
    again: Sequence[Cell] = (),
    floor: float | None = None,
) -> BaselineFile:
    """The summary, with all that follows from its cells.

    The first of its backends that a shape has is compared with the others. `floor` is the A/A floor
    of the GPU. `again` are repeated cells, interleaved with others that came later: the references
    of these, and nothing else. Sizes are compared on one GPU alone.
    Raises BadInput for invalid samples.
    """
    gpu = summary.gpu or Device()
    sheet, note = latencies.datasheet_of(gpu)
    timed = [(cell, latencies.analyze_latency(cell.latency)) for cell in cells if cell.latency]
    repeated = [(cell, latencies.analyze_latency(cell.latency)) for cell in again if cell.latency]
    by_id = {cell.id: each for cell, each in timed}
    own = [_row(cell, by_id.get(cell.id), gpu, sheet) for cell in cells]
    rows = _with_siblings(cells, own, sheet)
    order = [backend.name for backend in summary.backends]
    rounds = _Rounds([*timed, *repeated], rows, order, floor)
    counts = dict(Counter(row.status.value for row in rows))
    every = [*cells, *again]
    wanted = len(summary.matrix.shapes) * len(order)
    notes = (*_notes(every, rows), *_gpu_notes(rows), *rounds.not_compared())
    return structs.replace(
        summary,
        complete=len(rows) == wanted and CellStatus.no_time not in counts,
        datasheet=_quoted(sheet) if sheet else None,
        datasheet_note=note,
        fingerprints={
            cell.fingerprint_sha256: cell.fingerprint for cell in every if cell.fingerprint_sha256
        },
        counts=counts,
        cells=rows,
        comparisons=rounds.comparisons(),
        scaling=tuple(_scaling(rows)),
        best=(*rounds.best(), *_best_sizes(rows)),
        notes=notes,
    )


def _quoted(sheet: Datasheet) -> Quoted:
    peaks = sheet.peaks.items()
    unverified = tuple(name for name, peak in peaks if not peak.verified)
    values = {name: peak.value for name, peak in peaks}
    return Quoted(name=sheet.name, peaks=values, unverified=unverified)


def _row(cell: Cell, timed: Series | None, gpu: Device, sheet: Datasheet | None) -> Row:
    shapes = (cell.latency.target.shapes or {}) if cell.latency else {}
    row = Row(
        **part(cell, *_OF_THE_CELL),
        gpu=known(gpu.name),
        gpu_uuid=known((known(cell.fingerprint.gpu) or Device()).uuid),
        file=None if cell.status is CellStatus.unavailable else f"cells/{cell.id}.json",
    )
    row = _with_sizes(row, {**cell.arguments, **shapes})
    if timed is None:
        return row
    row = _with_statistics(row, timed)
    claimed = cell.source.median if cell.source else None
    return _flagged(_with_rates(row, timed, sheet), timed, claimed)


def _with_sizes(row: Row, options: Mapping[str, Value]) -> Row:
    """The row with the sizes in the options of an attention target; as it is for another target."""
    sizes = {
        name: value for name in _SIZES if type(value := options.get(name)) is int and value > 0
    }
    if isinstance(dtype := options.get("dtype"), str):
        row = structs.replace(row, dtype=dtype)
    if "heads" in sizes:
        sizes.setdefault("kv_heads", sizes["heads"])
        sizes |= {name: bool(options.get(name, False)) for name in ("causal", "backward")}
    return structs.replace(row, **sizes)


def _with_statistics(row: Row, timed: Series) -> Row:
    summary, latency = timed.summary, timed.latency
    within, interval = summary.interval, timed.interval
    over = interval if interval and interval.level is not None else None
    counts = [block.late_submitted for block in latency.blocks if block.late_submitted is not None]
    late_submitted = sum(counts) if counts else None
    claim = GAPS if (late_submitted or 0) > GAPS_MATTER * summary.n else None
    powers = [block.gpu.power for block in latency.blocks if block.gpu and block.gpu.power]
    ends = {
        f"{name}{end}": getattr(each, end)
        for name, each in (("", interval), ("blocks_", over), ("run_", within))
        for end in ("low", "high")
        if each
    }
    return structs.replace(
        row,
        **ends,
        **part(summary, *_OF_THE_SAMPLES),
        dtype=latency.target.dtype or row.dtype,
        timer=latency.timer,
        cache=latency.cache,
        blocks=len(latency.blocks),
        seconds=summary.median,
        level=interval.level if interval and claim != GAPS else None,
        claim=claim or (interval.claim.value if interval else None),
        refused=summary.refused.value if summary.refused and interval is None else None,
        drift=summary.drift.relative if summary.drift else None,
        independence=summary.independence.state.value,
        dependence=tuple(reason.value for reason in summary.independence.reasons),
        late_submitted=late_submitted,
        sm_clock=latencies.median_clock(timed),
        clock_by=COUNTED if latency.clocks_counted else "driver" if latency.clocks_read else None,
        clocked=sum(bool(block.sm_clock) for block in latency.blocks),
        cycles=median(latency.cycles) if latency.cycles else None,
        empty=latency.ready.empty or None,
        throttled=timed.throttled_blocks,
        power=median(powers) if powers else None,
        steady=known(latency.ready.steady),
        launch_bound=timed.launch_bound,
        peak_memory=known((latency.ready.memory or MemoryUse()).peak_allocated),
    )


def _with_rates(row: Row, timed: Series, sheet: Datasheet | None) -> Row:
    work, seconds = timed.latency.target.work, timed.summary.median
    flop, moved = (work.flop, work.bytes) if work else (None, None)
    peaks = sheet.peaks if sheet else {}
    precision = latencies.compute_peak(row.dtype or "", peaks)
    peak, dram = peaks.get(precision), peaks["dram"].value if peaks else None
    quoted = peak.value if peak else None
    clock, held = row.sm_clock if row.cycles is None else row.cycles / seconds, None
    if sheet and peak and clock:
        held = sheet.sm_count * sheet.per_cycle(precision) * clock or None
    rate, bandwidth = _over(flop, seconds), _over(moved, seconds)
    intensity, ridge = _over(flop, moved), _over(held or quoted, dram)
    regime = None
    if intensity is not None and ridge is not None:
        regime = "compute" if intensity >= ridge else "memory"
    # Above the DRAM peak, with bytes that fit: L2 served them.
    served = sheet and (bandwidth or 0.0) > (dram or 0.0) and (moved or 0.0) <= sheet.l2.value
    return structs.replace(
        row,
        flop=flop,
        bytes=moved,
        intensity=intensity,
        flop_rate=rate,
        flop_rate_low=_over(flop, row.high),
        flop_rate_high=_over(flop, row.low),
        bandwidth=bandwidth,
        tokens_per_second=_over(_tokens(row), seconds),
        precision=precision or None,
        held_peak=held,
        share_of_held=_over(rate, held),
        datasheet_peak=quoted,
        share_of_datasheet=_over(rate, quoted),
        verified=peak.verified if peak else None,
        cache=row.cache or ("warm" if served else ""),
        dram_peak=dram,
        share_of_dram=_over(bandwidth, dram),
        ridge=ridge,
        regime=regime,
    )


def _with_siblings(
    cells: Sequence[Cell], rows: Sequence[Row], sheet: Datasheet | None
) -> tuple[Row, ...]:
    """The rows, without a share of DRAM where L2 may have served it.

    Where the state of L2 is unknown, and one cell shows that it was warm, it was warm for the
    others that fit into it too: they were taken in the same way.
    """
    served = [
        row.id
        for cell, row in zip(cells, rows, strict=True)
        if cell.latency and not cell.latency.cache and row.cache == "warm"
    ]
    if sheet is None or not served:
        return tuple(rows)
    why = f"share of DRAM peak unknown: the data fit in L2, which served {served[0]}"
    return tuple(
        structs.replace(row, share_of_dram=None, flags=(*row.flags, why))
        if row.is_timed and row.cache == "" and (row.bytes or math.inf) <= sheet.l2.value
        else row
        for row in rows
    )


def _tokens(row: Row) -> float | None:
    """Query rows of a call, over the batch."""
    return None if row.batch is None or row.length is None else float(row.batch * row.length)


def _over(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _flagged(row: Row, timed: Series, claimed: float | None) -> Row:
    """The row with its flags; `claimed` is the median (s) that an imported file states."""
    flags = []
    if claimed and row.seconds and abs(claimed / row.seconds - 1) >= _ROUNDED:
        flags.append(
            f"the file's median differs by {claimed / row.seconds - 1:+.1%} from its samples'"
        )
    if max(row.share_of_held or 0.0, row.share_of_datasheet or 0.0) > 1:
        flags.append("above the dense peak: less work than declared, or by another unit")
    if (row.share_of_dram or 0.0) > 1:
        flags.append("compulsory traffic above the DRAM peak: caches served part of it")
    if row.steady is False:
        flags.append("SM clock not stable at the end of the warm-up")
    if row.launch_bound:
        flags.append("launch-bound: host launch overhead above GPU time")
    flags += [f"throttled in every block: {why}" for why in timed.throttled_throughout]
    return structs.replace(row, flags=(*flags, *_doubts_of_samples(row)))


def _doubts_of_samples(row: Row) -> Iterator[str]:
    if row.refused:
        yield f"no interval: {row.refused}"
    elif row.independence == State.NOT_INDEPENDENT.value:
        yield f"samples are not independent: {', '.join(row.dependence)}"
    elif row.independence == State.UNKNOWN.value and abs(row.drift or 0.0) >= DRIFT_MATTERS:
        yield f"the two halves differ by {row.drift:+.1%}, too few samples to test for drift"
    if row.late_submitted:
        gaps = f"{row.late_submitted} of {row.n} samples may include host launch gaps"
        yield f"{gaps}: the interval is invalid" if row.claim == GAPS else gaps


_ROUNDED = 0.001  # chosen: stated medians are rounded to three digits or more


class _Rounds:
    """Of each shape, the interleaved backends of every round, and the reference of its comparisons:
    the backend interleaved with the most others, among several the first in the `order`."""

    def __init__(
        self,
        measured: Sequence[tuple[Cell, Series]],
        rows: Sequence[Row],
        order: Sequence[str],
        floor: float | None,
    ) -> None:
        rounds = grouped(
            ((cell.shape, cell.round), (cell.backend, timed))
            for cell, timed in measured
            if cell.round
        )
        self._of_shape = grouped((shape, dict(round_)) for (shape, _), round_ in rounds.items())
        self._rows, self._order, self._floor = rows, order, floor
        self._references = {
            shape: min(
                {name for round_ in several for name in round_},
                key=lambda name: (-len(_together(several, name)), *self._place(name)),
            )
            for shape, several in self._of_shape.items()
        }

    def _place(self, name: str) -> tuple[int, str]:
        return (self._order.index(name) if name in self._order else len(self._order)), name

    def not_compared(self) -> Iterator[str]:
        """A note on backends that were not interleaved with their reference."""
        apart = []
        for shape, several in self._of_shape.items():
            beside = _together(several, self._references[shape])
            every = dict.fromkeys(name for round_ in several for name in round_)
            apart += [f"{shape}.{name}" for name in every if name not in beside]
        if apart:
            who = f"{apart[0]} and {len(apart) - 1} more are" if apart[1:] else f"{apart[0]} is"
            yield f"{who} not compared: not interleaved with the reference"

    def comparisons(self) -> tuple[Contrast, ...]:
        """Backends of a shape, interleaved with its reference, against that; corrected for all."""
        versus: list[tuple[str, Pair]] = []
        for shape, several in self._of_shape.items():
            reference = self._references[shape]
            done = {reference}
            for round_ in several:
                names = sorted(round_.keys() - done, key=self._place)
                pairs = self._against(shape, reference, round_, names)
                done |= {pair.b.label for pair in pairs}
                versus += [(shape, pair) for pair in pairs]
        corrected = holm([pair.comparison for _, pair in versus])
        claiming = {row.id for row in self._rows if row.level is not None}
        return tuple(
            _contrast(shape, pair, comparison, claiming)
            for (shape, pair), comparison in zip(versus, corrected, strict=True)
        )

    def best(self) -> Iterator[Best]:
        """The fastest backend of each shape by the medians, and the others that may be as fast.

        Every other is tested against it in the round of both, corrected for all tests.
        """
        groups = grouped((row.shape, row) for row in self._rows if row.is_timed).values()
        leaders = [min(group, key=lambda row: row.seconds or math.inf) for group in groups]
        tests = []
        for leader in leaders:
            several, name = self._of_shape.get(leader.shape, ()), leader.backend
            round_ = next((round_ for round_ in several if name in round_), {})
            others = [other for other in round_ if other != name]
            pairs = self._against(leader.shape, name, round_, others)
            tests += [(f"{leader.shape}.{pair.b.label}", pair.comparison) for pair in pairs]
        corrected = holm([comparison for _, comparison in tests])
        slower = {
            cell
            for (cell, _), comparison in zip(tests, corrected, strict=True)
            if comparison.verdict is Verdict.REGRESSED
        }
        for group, leader in zip(groups, leaders, strict=True):
            tied = [row for row in group if row is not leader and row.id not in slower]
            yield _best("backend", {"shape": leader.shape}, group, leader, tied)

    def _against(
        self, shape: str, name: str, round_: Mapping[str, Series], others: Sequence[str]
    ) -> Sequence[Pair]:
        """Pairs of a round with one of its backends; the margin is at least the A/A difference of
        backends that run its kernel.

        An A/A pair that is invalid or has an outlier block does not count.
        """
        first = round_.get(name)
        if first is None or len(first.latency.blocks) < FEWEST_BLOCKS:
            return ()
        timed = [round_[other] for other in others]
        plain = latencies.compare_with(first, timed, thresholds=THRESHOLDS, floor=self._floor)
        same_kernel = {other for other in others if is_same_kernel(shape, name, other, self._rows)}
        apart = [
            math.expm1(abs(math.log(pair.comparison.speedup)))
            for pair in plain
            if pair.b.label in same_kernel
            and pair.comparison.verdict is not Verdict.INVALID
            and pair.comparison.reason is not Reason.OUTLIER_BLOCK
        ]
        if not apart:
            return plain
        known = max(self._floor or 0.0, *apart)
        strict = latencies.compare_with(first, timed, thresholds=THRESHOLDS, floor=known)
        return [
            pair if pair.b.label in same_kernel else _withheld(pair, harder)
            for pair, harder in zip(plain, strict, strict=True)
        ]


def _together(rounds: Sequence[Mapping[str, Series]], name: str) -> set[str]:
    """A backend and those that were interleaved with it."""
    return {other for round_ in rounds if name in round_ for other in round_}


def is_same_kernel(shape: str, backend: str, other: str, rows: Sequence[Row]) -> bool:
    """Whether one of two backends dispatched to the other at a shape."""
    chosen = {row.backend: row.chosen for row in rows if row.shape == shape}
    return chosen.get(backend) == other or chosen.get(other) == backend


def _withheld(pair: Pair, strict: Pair) -> Pair:
    """A verdict of a difference only if it is one at the larger margin too; never SAME."""
    if pair.comparison.verdict not in {Verdict.IMPROVED, Verdict.REGRESSED}:
        return pair
    if strict.comparison.verdict is not Verdict.SAME:
        return strict
    return structs.replace(strict, comparison=undecided(strict.comparison, Reason.AT_MARGIN))


def _contrast(shape: str, pair: Pair, comparison: Comparison, claiming: Set[str]) -> Contrast:
    """`claiming` are the cells whose intervals have a confidence level."""
    disjoint = intervals_apart(pair.a.interval, pair.b.interval)
    faster = comparison.verdict is Verdict.IMPROVED and comparison.classic.claimable
    return Contrast(
        shape=shape,
        a=pair.a.label,
        b=pair.b.label,
        **part(comparison, *_OF_THE_VERDICT),
        reason=comparison.reason,
        margin=comparison.margin.value,
        overlap=None if disjoint is None else not disjoint,
        delta=comparison.classic.delta,
        claimable=faster and {f"{shape}.{pair.a.label}", f"{shape}.{pair.b.label}"} <= claiming,
        samples_in_a_block=pair.samples_in_a_block,
    )


def _best(
    kind: _Kind, where: dict[str, Value], group: Sequence[Row], best: Row, tied: Sequence[Row]
) -> Best:
    by: _Measure = "seconds" if kind == "backend" else "flop_rate"
    ids = tuple(row.id for row in tied)
    measure = getattr(best, by) or math.nan
    return Best(
        kind, where, len(group), best.id, best.backend, getattr(best, kind), by, measure, ids
    )


def _scaling(rows: Iterable[Row]) -> Iterator[Scaling]:
    timed = [row for row in rows if row.is_timed]
    for along in ("length", "batch", "heads", "dim", _SAME_TOKENS):
        for _, group in _adjacent(timed, along):
            steps = (_step(row, other, along) for row, other in itertools.pairwise(group))
            yield from filter(None, steps)


def _adjacent(
    rows: Sequence[Row], along: str
) -> Iterator[tuple[dict[str, Value | None], list[Row]]]:
    """Cells of a GPU that differ in one size alone, by that size; each group with what it has in
    common."""

    def key(row: Row) -> tuple[Any, ...]:
        others = {name: row.arguments[name] for name in row.arguments.keys() - _KNOWN_OPTIONS}
        same = json.dumps(others, sort_keys=True)
        return tuple(_common(row, along).items()), same, row.gpu_uuid

    groups = grouped((key(row), row) for row in rows if _size(row, along) is not None)
    for (common, _, _), group in groups.items():
        group.sort(key=lambda row: _size(row, along) or 0)
        sizes = [_size(row, along) for row in group]
        if len(group) > 1 and len(set(sizes)) == len(sizes):
            yield dict(common), group


def _size(row: Row, along: str) -> int | None:
    value: int | None = getattr(row, "length" if along == _SAME_TOKENS else along)
    return value


def _common(row: Row, along: str) -> dict[str, Value | None]:
    """What adjacent cells along a size share; the ratio of Q heads to KV heads is constant."""
    shared = {
        name: getattr(row, name)
        for name in ("backend", "batch", "heads", "length", "dim", "dtype", "causal", "backward")
    }
    ratio = None if not row.kv_heads or not row.heads else row.heads // row.kv_heads
    shared |= {"queries_a_head": ratio}
    if along == _SAME_TOKENS:
        tokens = _tokens(row)
        return {**shared, "batch": None, "length": None, "tokens": tokens}
    return {**shared, along: None}


def _step(row: Row, other: Row, along: str) -> Scaling | None:
    small, large = _size(row, along), _size(other, along)
    if not small or not large or not row.seconds or not other.seconds:
        return None
    if along == _SAME_TOKENS and row.batch == other.batch:
        return None
    factor, ratio = large / small, other.seconds / row.seconds
    flop = _over(other.flop, row.flop)
    return Scaling(
        backend=row.backend,
        along=along,
        before=row.id,
        after=other.id,
        factor=factor,
        time_ratio=ratio,
        flop_ratio=flop,
        exponent=math.log(ratio) / math.log(factor),
        flop_exponent=math.log(flop) / math.log(factor) if flop else None,
    )


def _best_sizes(rows: Sequence[Row]) -> Iterator[Best]:
    """Along batch and length the cell of a backend with the highest FLOP rate."""
    timed = [row for row in rows if row.flop_rate is not None]
    sizes: tuple[_Kind, ...] = ("batch", "length")
    for along in sizes:
        for common, group in _adjacent(timed, along):
            best = max(group, key=lambda row: row.flop_rate or 0.0)
            where = {name: value for name, value in common.items() if value is not None}
            tied = [row for row in group if row is not best and _may_reach(row, best)]
            yield _best(along, where, group, best, tied)


def _may_reach(row: Row, best: Row) -> bool:
    """Whether a rate may be as high as the best, by their intervals; where one has none, yes."""
    highest, least = row.flop_rate_high, best.flop_rate_low
    return highest is None or least is None or highest >= least


def _gpu_notes(rows: Sequence[Row]) -> Iterator[str]:
    gpus = {row.gpu_uuid for row in rows if row.is_timed and row.gpu_uuid}
    if len(gpus) > 1:
        yield (
            f"measured on {len(gpus)} GPUs of one kind, each shape on one: sizes are compared on "
            "the same GPU alone"
        )


def _notes(cells: Sequence[Cell], rows: Sequence[Row]) -> Iterator[str]:
    environments: list[Fingerprint] = []
    for cell in cells:
        gpu = known(cell.fingerprint.gpu)
        gpu = structs.replace(gpu, uuid=UNSET) if gpu else gpu
        variables = {**(known(cell.fingerprint.variables) or {})}
        variables.pop(VISIBLE, None)  # the GPU's UUID
        environment = structs.replace(cell.fingerprint, dtype=UNSET, gpu=gpu, variables=variables)
        if cell.latency and cell.fingerprint and environment not in environments:
            environments.append(environment)
    if len(environments) > 1:
        yield f"measured in {len(environments)} environments: compare their fingerprints"
    versions = grouped(
        (cell.backend, cell.version) for cell in cells if cell.latency and cell.version
    )
    for backend, several in versions.items():
        distinct = list(dict.fromkeys(several))
        if len(distinct) > 1:
            yield f"{backend} was measured in {len(distinct)} versions: {'; '.join(distinct)}"
    few = sum(bool(row.fewer) for row in rows)
    if few:
        yield f"{few} cells have fewer samples than requested, to meet the budget"
    left = sum(row.status is CellStatus.no_time for row in rows)
    if left:
        yield f"{left} cells not measured, budget spent: continue with --resume"
    held = [row for row in rows if row.is_timed and row.sm_clock is None and row.gpu]
    if held:
        yield "SM clock unknown: shares are of the datasheet peak only"
