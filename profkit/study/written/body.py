"""The middle of a written baseline: what the samples are like, and what they amount to."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.study.evidence import Evidence, SameKernel
from profkit.study.report_model import Written
from profkit.study.summary import GAPS_MATTER, Best, Row, flagged_cells
from profkit.study.written import words
from profkit.study.written.drawings import drawings
from profkit.timing.results import Percentile, Verdict
from profkit.ui.document import (
    Block,
    Bullets,
    Figure,
    Heading,
    Paragraph,
    Table,
    cells,
    unmarked,
    verbatim,
)
from profkit.ui.text import compact, number, percent, plural

_AT_HELD, _AT_READ = "at held clock", "at read clock"
_CAPTIONS = {
    "latency.svg": "Latency by sequence length, both axes logarithmic. Whiskers are intervals of "
    "the median, dotted where they claim no level; hollow points have none. Lines join cells of "
    "one backend that differ in length alone, or in length and batch with as many tokens (dotted "
    "where there are both).",
    "peak.svg": "Share of the dense peak that each cell reaches.",
    "bandwidth.svg": "The least bytes of a call over its latency. It is DRAM traffic only where "
    "caches are cold and nothing is moved twice.",
    "roofline.svg": "Roofline by the declared work: the path that each backend takes as S grows. "
    "A point above DRAM's slope was served by caches.",
}
_RATES = (
    "Shape", "Backend", "FLOP/B", "FLOP/s", "of datasheet", _AT_HELD, "Bytes/s", "of DRAM",
    "Ridge", "Regime",
)  # fmt: skip
_VERDICTS = {
    Verdict.IMPROVED: "faster",
    Verdict.REGRESSED: "slower",
    Verdict.SAME: "the same",
    Verdict.INCONCLUSIVE: "open",
    Verdict.INVALID: "invalid",
}


def statistics(written: Written) -> Iterator[Block]:
    """What the samples are like, and what they do not support."""
    yield Heading(2, "Statistics")
    if not written.timed:
        yield Paragraph("No cell has samples.")
        return
    yield Paragraph(
        "No sample is dropped. CV is the standard deviation over the mean; outliers lie beyond "
        "3.5 scaled median absolute deviations; autocorrelation is that of ranks at lag 1; drift "
        "is the second half's median over the first half's, less 1; effective N is how many "
        "independent samples the run is worth; the tick is the grid of the timer. The interval of "
        "the median is over the medians of blocks, at 95%; ≈ marks one of the samples within the "
        "run, without a confidence level, where the blocks support none. The interval within the "
        "run is narrower where samples of a block resemble each other: it says how well this run's "
        "own median is known. A median has the digits that its interval supports."
    )
    columns, rows = words.known(
        ("Shape", "Backend", "Median", "Interval of the median", "Within the run", "N", "P5", "P95",
         "P99"),
        [_median(written, row) for row in written.timed],
    )  # fmt: skip
    yield Table("Medians and their intervals", columns, cells(rows), words=2)
    yield Table(
        "What the samples are like",
        ("Shape", "Backend", "CV", "Outliers", "Slow at first", "Autocorr.", "Drift", "Effective N",
         "Tick"),
        cells([_quality(row) for row in written.timed]),
        words=2,
    )  # fmt: skip
    yield Heading(3, "What the data do not support")
    yield Bullets(tuple(_unsupported(written)))


def _median(written: Written, row: Row) -> list[str]:
    summary = written.statistics.get(row.id)
    by_q = {percentile.q: percentile for percentile in summary.percentiles} if summary else {}
    return [
        verbatim(row.shape), verbatim(row.backend), words.median(row), words.interval(row),
        words.within_run(row), str(row.n),
        *(_percentile(by_q.get(q), row) for q in (0.05, 0.95, 0.99)),
    ]  # fmt: skip


def _percentile(percentile: Percentile | None, row: Row) -> str:
    if percentile is None:
        return words.NONE
    if percentile.value is None:
        return f"n/a, needs {percentile.needs}"
    return words.bare(percentile.value, "s", row)


def _quality(row: Row) -> list[str]:
    return [
        verbatim(row.shape), verbatim(row.backend), words.share(row.cv),
        words.NONE if row.outliers is None else str(row.outliers),
        words.NONE if row.startup is None else str(row.startup),
        words.decimal(row.autocorrelation),
        words.NONE if row.drift is None else f"{row.drift:+.1%}",
        words.decimal(row.effective_n, 1),
        words.time(row.tick),
    ]  # fmt: skip


def _unsupported(written: Written) -> Iterator[str]:
    yield from _without_level(written)
    yield from _unsteady(written)
    yield from _beside_the_work(written.evidence)
    yield "P99 of a cell below 368 samples; such a percentile is not given."
    yield (
        "Comparisons between shapes: they are different work, so the overlap of their intervals "
        "says nothing."
    )


def _without_level(written: Written) -> Iterator[str]:
    found = written.evidence
    if found.refused:
        cells_ = [row.id for row in written.timed if row.refused]
        reasons = ", ".join(
            dict.fromkeys(row.refused or "" for row in written.timed if row.refused)
        )
        yield (
            f"An interval for {plural(found.refused, 'cell')} ({reasons}): {words.listed(cells_)}. "
            "Their medians describe these runs and no more."
        )
    if found.within or found.widened:
        yield (
            f"A level for the intervals of {plural(found.within + found.widened, 'cell')}: too few "
            "blocks, none that took turns, or such that depend on each other; the samples of a run "
            "alone do not show what changes more slowly than the run lasts."
        )
    if found.gapped:
        yield (
            f"Anything by the intervals of {plural(found.gapped, 'cell')}: more than "
            f"{percent(GAPS_MATTER)} of the samples may hold gaps of the host."
        )
    if found.correlated and found.correlation is not None:
        yield (
            f"Independence: in {plural(found.correlated, 'cell')} a sample tells of the next, with "
            f"a lag-1 autocorrelation of up to {found.correlation:.2f} of their "
            f"ranks{_raw(found)}; of some cells all samples are worth {found.fewest_effective:.1f} "
            "independent ones."
        )


def _unsteady(written: Written) -> Iterator[str]:
    found = written.evidence
    if found.unready:
        yield (
            f"That the clock was steady in {plural(found.unready, 'cell')}: it still moved when "
            "the warm-up ended."
        )
    if found.started_up:
        slow = max(row.startup or 0 for row in written.timed)
        yield (
            f"That warm-up was over: {_cells(found.started_up)} up to "
            f"{plural(slow, 'slow sample')}, which inflate mean and CV (up to "
            f"{words.share(found.cv)})."
        )
    if found.drifting and found.drift is not None:
        yield (
            f"A steady state in {plural(found.drifting, 'cell')}: the halves of a run differ by up "
            f"to {abs(found.drift):.1%}."
        )
    if found.unsteady:
        yield (
            f"A steady state in {plural(found.unsteady, 'cell')}: the halves differ, and the "
            "samples are too few to tell drift from chance."
        )


def _beside_the_work(found: Evidence) -> Iterator[str]:
    if found.tick is not None and found.tick_share is not None:
        yield (
            f"Differences below one tick of the timer, {number(found.tick, 's')} (up to "
            f"{percent(found.tick_share)} of a median)."
        )
    if found.throttled:
        yield f"A free clock: in {plural(found.throttled, 'cell')} the driver held the clock down."
    if found.read:
        capped = f"; {plural(found.capped, 'cell')} met a power cap" if found.capped else ""
        yield (
            f"The clock of the samples in {plural(found.read, 'cell')}: the driver was asked just "
            "before each block, not during it"
            f"{capped}. Under a power cap the clock moves within milliseconds, so shares of a peak "
            "at that clock are rough; those of the datasheet's are to be quoted."
        )
    if found.overtaken:
        yield (
            f"GPU time alone in {plural(found.overtaken, 'cell')}: the GPU began some samples "
            "before the host had submitted them, so they may hold its gaps."
        )
    if found.launch_bound:
        yield (
            f"The time of a program that submits call after call: in "
            f"{plural(found.launch_bound, 'cell')} the host needs longer for a call than the GPU. "
            "Calls were queued before they were timed."
        )


def _cells(count: int) -> str:
    return "1 cell begins with" if count == 1 else f"{count} cells begin with"


def _raw(found: Evidence) -> str:
    return "" if found.raw is None else f" (over the times themselves {found.raw:.2f} in a cell)"


def _held_at(written: Written) -> str:
    if not written.evidence.clock:
        return ""
    if written.evidence.read:
        return ", and of that at the SM clock that was read before the samples, which is rough"
    return ", and of what the SMs can do in as many cycles as a call was counted to take"


def performance(written: Written) -> Iterator[Block]:
    """Rates, shares of peaks, drawings, scaling, verdicts between backends."""
    yield Heading(2, "Performance")
    rated = [row for row in written.timed if row.flop_rate]
    if rated:
        read = written.evidence.read
        yield Paragraph(
            "FLOP and bytes are those that the target declares for a call: what the problem "
            "needs, each input read and each output written once. Shares are of dense peaks: of "
            f"the datasheet's{_held_at(written)}. "
            "The regime is the side of the ridge that the intensity lies on; it says "
            "which roof is lower, not what limits the kernel."
        )
        names = [_AT_READ if read and name == _AT_HELD else name for name in _RATES]
        columns, rows = words.known(names, [_rates(row) for row in rated])
        yield Table("What the medians amount to", columns, rows, words=2)
    yield from _tokens(written)
    for name, svg in drawings(written.rows, written.summary.scaling).items():
        yield Figure(name, _CAPTIONS[name], svg)
    yield from _clocks(written)
    yield from _scaling(written)
    yield from _versus(written)
    flags = list(_flags(written))
    if flags:
        yield Heading(3, "To be doubted")
        yield Bullets(tuple(flags))


def _rates(row: Row) -> list[str]:
    return [
        verbatim(row.shape), verbatim(row.backend), words.decimal(row.intensity, 0),
        words.bare(row.flop_rate, "FLOP/s", row), words.share(row.share_of_datasheet),
        words.share(row.share_of_held), words.bare(row.bandwidth, "B/s", row),
        "cached" if (row.share_of_dram or 0) > 1 else words.share(row.share_of_dram),
        words.decimal(row.ridge, 0), row.regime or words.NONE,
    ]  # fmt: skip


def _tokens(written: Written) -> Iterator[Block]:
    columns, rows = words.known(
        ("Shape", "Backend", "Tokens/s", "Peak memory"),
        [
            [verbatim(row.shape), verbatim(row.backend),
             words.NONE if row.tokens_per_second is None
             else compact(row.tokens_per_second, words.bare_digits(row)),
             words.quantity(row.peak_memory, "B")]
            for row in written.timed
        ],
    )  # fmt: skip
    if len(columns) > 2:
        yield Table(
            "Query tokens (batch times length) a second at the median; the most memory that was "
            "allocated, inputs and outputs included",
            columns,
            rows,
            words=2,
        )


def _uncounted(written: Written) -> str:
    """In which blocks no clock was to be had."""
    lacking = [
        row for row in written.timed if row.clocked is not None and row.clocked < (row.blocks or 0)
    ]
    if not lacking:
        return ""
    blocks = sum((row.blocks or 0) - (row.clocked or 0) for row in lacking)
    return (
        f" In {plural(blocks, 'block')} of {plural(len(lacking), 'cell')} "
        f"({words.listed([row.id for row in lacking])}) it could not be counted."
    )


def _clocks(written: Written) -> Iterator[Block]:
    if not written.evidence.clock:
        return
    low, high = written.evidence.clock
    clocks = f"{number(low, 'Hz')} to {number(high, 'Hz')}"
    reasons = sorted({why for row in written.timed for why in row.throttled})
    told = f" The driver held it down for: {unmarked(', '.join(reasons))}." if reasons else ""
    if written.evidence.read:
        yield Paragraph(
            f"The SM clock was {clocks}, the median of each cell's readings, one just before each "
            f"block.{told}"
        )
        return
    yield Paragraph(
        f"Over the samples the SM clock was {clocks}, the median of each cell's blocks; the SMs "
        f"counted their cycles against the device's timer.{_uncounted(written)}{told}"
    )


def _scaling(written: Written) -> Iterator[Block]:
    if not written.summary.scaling:
        return
    yield Heading(3, "Scaling")
    yield Paragraph(
        "Between neighbouring cells that differ in one size: the exponent of time over that size, "
        "beside that of the work. A smaller exponent than the work's means that the chip was used "
        "better."
    )
    yield Table(
        "",
        ("From", "To", "Along", "Size", "Time", "Work", "Exponent", "of the work"),
        cells([
            [verbatim(one.before), verbatim(one.after), one.along, f"{one.factor:g}x",
             f"{one.time_ratio:.2f}x",
             words.NONE if one.flop_ratio is None else f"{one.flop_ratio:g}x",
             f"{one.exponent:.2f}", words.decimal(one.flop_exponent)]
            for one in written.summary.scaling
        ]),
        words=3,
    )  # fmt: skip
    sizes = [best for best in written.summary.best if best.what != "backend"]
    if sizes:
        rows = {row.id: row for row in written.rows}
        yield Bullets(
            tuple(
                f"Highest rate along {best.what} for {verbatim(best.backend)} with "
                f"{_common(best.where, rows[best.id])}: {best.what} {best.value}, "
                f"{words.flop_rate(rows[best.id])}{_tied(best)}."
                for best in sizes
            )
        )


def _tied(best: Best) -> str:
    return f"; tied with {words.listed(best.tied)}" if best.tied else ""


def _common(where: dict[str, object], row: Row) -> str:
    """What the cells of a group share; `row` is one of them."""
    names = ("batch", "heads", "kv heads", "length", "dim", "tokens", "dtype", "causal", "backward")
    shared = {**where, "kv heads": row.kv_heads if row.kv_heads != row.heads else None}
    told = [
        name if shared[name] is True else f"{name} {shared[name]:g}"
        if isinstance(shared[name], float) else f"{name} {shared[name]}"
        for name in names
        if shared.get(name)
    ]  # fmt: skip
    return ", ".join(told)


def _versus(written: Written) -> Iterator[Block]:
    found = written.summary.comparisons
    if not found:
        return
    yield Heading(3, "Backends against each other")
    yield Paragraph(
        "Verdicts on the second backend against the first, from blocks that took turns: times "
        "decide, each at the clock that its own power leaves it; p-values are corrected by Holm "
        "over all comparisons of this baseline. Whether intervals overlap "
        'is told for alternatives at one shape alone. Claimable is "faster" by the verdict and '
        "by the classic rule (see What must be beaten), between two intervals that claim a level. "
        "The reason is what the verdict rests on, of one that is open or invalid what stands "
        "against it."
    )
    if written.same:
        yield Paragraph(_same_kernel(written.same))
    yield Table(
        "",
        ("Shape", "Of", "Against", "Verdict", "Speed-up", "Interval", "p (Holm)", "Delta",
         "Overlap", "Claimable", "Reason"),
        cells([
            [verbatim(pair.shape), verbatim(pair.b), verbatim(pair.a),
             _VERDICTS[pair.verdict], f"{pair.speedup:.3g}x",
             f"[{pair.low:.3g}, {pair.high:.3g}]",
             words.NONE if pair.p_adjusted is None else f"{pair.p_adjusted:.2g}",
             f"{pair.delta:+.2f}", {None: words.NONE, True: "yes", False: "no"}[pair.overlap],
             "yes" if pair.claimable else "no",
             unmarked("; ".join(pair.details) or pair.reason)]
            for pair in found
        ]),
        words=4,
    )  # fmt: skip


def _same_kernel(same: SameKernel) -> str:
    false = "none tells" if not same.told else f"{same.told} of them tell"
    return (
        f"In {plural(same.pairs, 'comparison')} a backend chose the other, so that both ran one "
        f"kernel and nothing differs: {false} a difference, {same.apart} of {same.pairs} intervals "
        f"at 95% leave 1 out, and the ratios over blocks are up to {percent(same.largest)} from 1. "
        "What it is at a shape is the least margin there."
    )


def _flags(written: Written) -> Iterator[str]:
    for flag, ids in flagged_cells(written.rows).items():
        yield f"{words.listed(ids)}: {unmarked(flag)}"
    yield from map(unmarked, written.summary.notes)
