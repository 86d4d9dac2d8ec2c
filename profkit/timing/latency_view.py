"""Latencies and verdicts as people get them: lines to read aloud, tables, the sentence to publish.

Markdown holds nothing of the host.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace

from msgspec import UNSET, UnsetType
from rich.console import Group, RenderableType
from rich.text import Text

from profkit.timing.latency import LatencyReport, Pair, Timed
from profkit.timing.latency_format import MemoryUse, Rate
from profkit.timing.results import (
    Claim,
    Classic,
    Interval,
    Reason,
    State,
    Summary,
    Thresholds,
    Verdict,
)
from profkit.timing.statistics import LEVEL
from profkit.timing.verdict import Comparison
from profkit.timing.verdict import Reason as VerdictReason
from profkit.ui.markdown import escape
from profkit.ui.markdown import table_of as markdown_table
from profkit.ui.terminal import console, facts, rendered, table_of
from profkit.ui.text import literal, number, percent, plural, seconds_between, shorten
from profkit.ui.view import Grid, Panel, Row

_CLOSE, _NARROW = 0.10, 0.001
_LONGEST_LABEL = 22
_LEAST_NEEDED = (
    "P99", "P90", "P5", "Far off", "Reserved", "Std", "Order interval", "Power", "P95",
    "Within run",
)  # fmt: skip
_TOLD_BEFORE = "?: as the driver told it before the blocks; samples may have run at another clock"
_TIMERS = {
    "events": "CUDA events",
    "graph": "CUDA graph replay between events",
    "cupti": "GPU work by CUPTI",
    "wall": "the host's clock",
}
_COLOURS = {
    Verdict.IMPROVED: "bold green",
    Verdict.REGRESSED: "bold red",
    Verdict.SAME: "bold",
    Verdict.INCONCLUSIVE: "bold yellow",
    Verdict.INVALID: "bold red",
}
_NO_MORE = {VerdictReason.AT_MARGIN, VerdictReason.NOT_INTERLEAVED, VerdictReason.NO_INTERVAL}
_EVENT_TIMERS = {"events", "graph"}
_DEPENDENCE = {
    Reason.AUTOCORRELATED: "neighbouring samples resemble each other",
    Reason.DRIFTING: "the first and the second half differ beyond chance",
    Reason.START_UP: "it begins with slow samples",
    Reason.TOO_FEW: "too few samples",
    Reason.CONSTANT: "all samples are equal",
}


def latency_terminal(report: LatencyReport, *, explain: bool, to_file: bool) -> str:
    """The report for a terminal, or as it would stand there when it goes to a file."""
    width = console(to_file=to_file).width
    return rendered(_view(report, explain, width), to_file=to_file)


def latency_markdown(report: LatencyReport) -> str:
    """The report in Markdown, with the sentence to publish."""
    lines = [f"# Latency of {escape(report.title)}", ""]
    lines += [f"- {row.label}: {escape(row.value)}" for row in _circumstances(report).rows]
    for pair in report.pairs:
        lines += ["", f"**{escape(_heading(pair))}**: {escape(pair_line(pair))}", ""]
        lines += [f"- {escape(line)}" for line in _evidence(pair, report)]
    lines += ["", *(f"- {escape(variant_line(timed))}" for timed in report.timed)]
    for grid in grids(report):
        lines += ["", *markdown_table(grid)]
    for warning in warnings(report):
        lines += ["", f"> {escape(warning)}"]
    lines += ["", "To publish:", ""]
    sentences = [f"> {escape(sentence(timed, report))}" for timed in report.timed]
    return "\n".join(lines) + "\n" + "\n>\n".join(sentences) + "\n"


def variant_line(timed: Timed) -> str:
    """A variant read aloud: `sdpa  49.31 µs ±0.2%   174.2 TFLOP/s, 17.6% of fp16 tensor peak`."""
    parts = [f"{literal(timed.label)}  {latency_words(timed)}"]
    if timed.flop_rate:
        parts.append(_rate(timed.flop_rate, "FLOP/s"))
    return "   ".join(parts)


def pair_line(pair: Pair) -> str:
    """A comparison read aloud: `69.6 µs ±0.4% → 46.8 µs ±0.3%   1.49x faster [...]  IMPROVED`."""
    comparison = pair.comparison
    times = f"{latency_words(pair.a)} → {latency_words(pair.b)}"
    return f"{times}   {change(comparison)}  {comparison.verdict.name}"


def change(comparison: Comparison) -> str:
    """How many times as fast or slow, with the interval: `1.49x faster [1.48, 1.50]`."""
    return times_as_fast(comparison.speedup, comparison.low, comparison.high)


def times_as_fast(speedup: float, low: float, high: float) -> str:
    """A ratio of times with its interval: `1.44x faster`, below 1 the reciprocals and `slower`.

    Where the interval holds 1 neither is said: `1.004x as fast`.
    """
    if low < 1 < high:
        return f"{speedup:.3f}x as fast [{low:.3f}, {high:.3f}]"
    values, word = (speedup, low, high), "faster"
    if speedup < 1:
        values, word = (1 / speedup, 1 / high, 1 / low), "slower"
    digits = 3 if abs(values[0] - 1) < _CLOSE else 2
    shown = [f"{value:.{digits}f}" for value in values]
    return f"{shown[0]}x {word} [{shown[1]}, {shown[2]}]"


def sentence(timed: Timed, report: LatencyReport) -> str:
    """What to write in a paper: value, interval, shape, dtype, machine, number, method, seed."""
    summary, latency = timed.summary, timed.latency
    target, gpu = latency.target, latency.gpu
    versions = report.fingerprint.versions or {}
    machine = [gpu.name or "GPU unknown"]
    if gpu.driver:
        machine.append(f"driver {gpu.driver}")
    if versions.get("torch"):
        machine.append(f"torch {versions['torch']}")
    if versions.get("cuda"):
        machine.append(f"CUDA {versions['cuda']}")
    told = f"{timed.label}: median {number(summary.median, 's')}, {_interval_words(timed)}"
    of = f"; {target.words}, {target.dtype}" if target.dtype else ""
    ready = f"; warm-up {report.warmup:g} s" if report.warmup is not None else ""
    seed = f"; inputs of the target, seed {report.seed}" if report.seed is not None else ""
    return f"{told}{of}; {', '.join(machine)}; {method(timed)}{ready}{seed}."


def grids(report: LatencyReport) -> tuple[Grid, ...]:
    """The tables: times and rates, then how good the samples are."""
    machine = _machine(report.timed)
    return (_times(report.timed), _quality(report.timed), *([machine] if machine.rows else []))


def warnings(report: LatencyReport) -> tuple[str, ...]:
    """What a reader has to know before believing a number."""
    found = [f"{label} can't run here: {why}" for label, why in report.left_out.items()]
    if report.neighbours:
        others = plural(report.neighbours, "process")
        found.append(f"{others} of others on the GPU: what they did is in these times")
    return tuple(map(literal, found)) + doubts(report.timed)


def doubts(timed: Iterable[Timed]) -> tuple[str, ...]:
    """What speaks against single latencies, each once with the labels that it concerns."""
    labels: dict[str, list[str]] = {}
    for one in timed:
        for what in _doubts(one):
            labels.setdefault(what, []).append(one.label)
    return tuple(literal(f"{', '.join(names)}: {what}") for what, names in labels.items())


def _fitting(grid: Grid, width: int) -> Grid:
    """A grid without the columns that a narrow terminal has no room for, the least needed first."""
    columns = list(range(len(grid.columns)))
    for name in _LEAST_NEEDED:
        if _table_width(grid, columns) <= width:
            break
        columns = [at for at in columns if grid.columns[at] != name]
    rows = tuple(
        (shorten(row[0], _LONGEST_LABEL), *(row[at] for at in columns[1:])) for row in grid.rows
    )
    return replace(grid, columns=tuple(grid.columns[at] for at in columns), rows=rows)


def _table_width(grid: Grid, columns: Sequence[int]) -> int:
    cells = [grid.columns, *grid.rows]
    widths = [max(len(row[at]) for row in cells) for at in columns]
    return min(widths[0], _LONGEST_LABEL) + sum(2 + width for width in widths[1:])


def _view(report: LatencyReport, explain: bool, width: int) -> RenderableType:
    parts: list[RenderableType] = [Text(literal(report.title), "bold")]
    parts += [facts(_circumstances(report)), Text()]
    for pair in report.pairs:
        parts += [_pair_text(pair), *_indented(_evidence(pair, report))]
    if report.pairs:
        parts.append(Text())
    parts += [Text(variant_line(timed)) for timed in report.timed]
    for grid in grids(report):
        parts.append(table_of(_fitting(grid, width), numbers=True))
    found = warnings(report)
    if found:
        parts += [Text(), *(Text(f"! {line}", "yellow") for line in found)]
    if explain:
        parts += [Text(), _explanation(report)]
    if report.spans:
        parts += [Text(), facts(Panel("Time", (Row("Time", _where_time_went(report)),)))]
    return Group(*parts)


def _heading(pair: Pair) -> str:
    return f"{literal(pair.a.label)} → {literal(pair.b.label)}"


def _pair_text(pair: Pair) -> Text:
    heading = Text.assemble(f"{_heading(pair)}\n")
    line = pair_line(pair)
    verdict = pair.comparison.verdict
    heading.append(line.removesuffix(verdict.name))
    heading.append(verdict.name, _COLOURS[verdict])
    return heading


def _indented(lines: Iterable[str]) -> list[RenderableType]:
    return [Text(f"  {literal(line)}", "dim") for line in lines]


def _circumstances(report: LatencyReport) -> Panel:
    first = report.timed[0]
    target, gpu = first.latency.target, first.latency.gpu
    rows = []
    if target:
        dtype = "dtype unknown" if target.dtype is UNSET else target.dtype
        rows.append(Row("Work", f"{target.words}, {dtype}"))
    if gpu:
        driver = f", driver {gpu.driver}" if gpu.driver else ""
        rows.append(Row("GPU", f"{gpu.name}{driver}"))
    rows.append(Row("Method", method(first)))
    if first.latency.ready.empty:
        empty = number(first.latency.ready.empty, "s")
        rows.append(Row("Of nothing", f"the timer reads {empty}, which is not taken off"))
    if report.pairs:
        margin = report.pairs[0].comparison.margin
        floor = "unknown: profkit calibrate" if report.floor is None else percent(report.floor)
        rows.append(
            Row("Margin", f"{percent(margin.value)} ({margin.source.value}); A/A floor {floor}")
        )
    return Panel("Circumstances", tuple(rows))


def method(timed: Timed) -> str:
    """How the samples were taken: timer, cache, number, blocks."""
    latency = timed.latency
    blocks = len(latency.blocks)
    taken = f"{plural(timed.summary.n, 'sample')}"
    if blocks > 1:
        taken += f" in {blocks} blocks{' taken in turns' if latency.took_turns else ''}"
    if not latency.timer:
        return f"unknown, {taken}"
    cache = f", {latency.cache} L2" if latency.timer != "wall" else ""
    group = latency.ready.group or 1
    grouped = f" of {group} calls" if group > 1 else ""
    return f"{_TIMERS[latency.timer]}{cache}, {taken}{grouped}"


def latency_words(timed: Timed) -> str:
    """A median and the half-width of its interval: `±` at 95% over blocks, `≈` without a level."""
    median, interval = timed.summary.median, timed.interval
    if interval is None:
        return f"{number(median, 's')} (no interval)"
    half = max(interval.high - median, median - interval.low) / median
    return f"{number(median, 's')} {'≈' if interval.level is None else '±'}{_small(half)}"


def _small(share: float) -> str:
    """A share that may be well below 0.1%."""
    if share >= _NARROW:
        return percent(share)
    return f"{share:.2%}" if share >= _NARROW / 10 else "<0.01%"


def _interval_words(timed: Timed) -> str:
    interval = timed.interval
    if interval is None:
        refused = timed.summary.refused
        return f"no interval ({_DEPENDENCE[refused] if refused else 'none'})"
    between = _between(interval)
    if interval.tick:
        between += " (a tick of the timer added at both ends)"
    if interval.level is not None:
        blocks = len(timed.latency.blocks)
        return f"{interval.level:.0%} interval {between} over the medians of {blocks} blocks"
    within = f"interval {between} within this run, no confidence level"
    return f"{within}, widened for dependence" if interval.claim is Claim.WIDENED else within


def _between(interval: Interval) -> str:
    return seconds_between(interval.low, interval.high)


def _rate(rate: Rate, unit: str) -> str:
    told = number(rate.value, unit)
    if rate.share is None:
        return told
    doubt = "" if rate.verified else ", a peak from memory"
    over = " (above it!)" if rate.share > 1 else ""
    return f"{told}, {percent(rate.share)}{over} of the {_peak_name(rate.of)} peak{doubt}"


def _peak_name(of: str) -> str:
    kind, _, dtype = of.partition("_")
    return f"dense {dtype} tensor" if kind == "tensor" else of.upper() if of == "dram" else of


def _times(timed: Sequence[Timed]) -> Grid:
    rates = any(one.bandwidth for one in timed)
    rows = []
    for one in timed:
        summary = one.summary
        moved = _bandwidth(one.bandwidth) if one.bandwidth else "n/a"
        rows.append(
            (
                literal(one.label),
                number(summary.median, "s"),
                marked_interval(one),
                *(_percentile(summary, at) for at in range(len(summary.percentiles))),
                "n/a" if summary.cv is None else percent(summary.cv),
                *([moved] if rates else []),
            )
        )
    names = [f"P{round(100 * entry.q)}" for entry in timed[0].summary.percentiles]
    least = ["Least bytes"] if rates else []
    levels = {one.interval.level for one in timed if one.interval}
    interval = f"{LEVEL:.0%} interval" if None not in levels else "Interval"
    columns = ("Variant", "Median", interval, *names, "CV", *least)
    needs = timed[0].summary.percentiles
    notes = [f"P{round(100 * p.q)} needs {p.needs} samples" for p in needs if p.value is None]
    if None in levels:
        notes.append("≈ within the run, no confidence level")
    if any(one.bandwidth and one.bandwidth.share is not None for one in timed):
        notes.append("Least bytes: those that the work must move, over the median; share of DRAM")
    return Grid("Times", columns, tuple(rows), "; ".join(notes))


def marked_interval(timed: Timed) -> str:
    """The interval over blocks, else that within the run after a `≈`; "none" without either."""
    if timed.interval is None:
        return "none"
    return f"{'≈ ' if timed.interval.level is None else ''}{_between(timed.interval)}"


def _bandwidth(rate: Rate) -> str:
    """A rate at the least traffic, with its share of the DRAM's peak."""
    told = number(rate.value, "B/s")
    return told if rate.share is None else f"{told} {percent(rate.share)}"


def _percentile(summary: Summary, at: int) -> str:
    value = summary.percentiles[at].value
    return "n/a" if value is None else number(value, "s")


def _quality(timed: Sequence[Timed]) -> Grid:
    rows = []
    for one in timed:
        summary = one.summary
        rows.append(
            (
                literal(one.label),
                number(summary.mean, "s"),
                "n/a" if summary.std is None else number(summary.std, "s"),
                _between(summary.interval) if summary.interval else "n/a",
                _between(summary.order_interval) if summary.order_interval else "n/a",
                _decimal(summary.autocorrelation),
                f"{summary.effective_n:.0f} of {summary.n}",
                "n/a" if summary.drift is None else f"{summary.drift.relative:+.1%}",
                str(summary.outliers),
                "none" if summary.tick is None else number(summary.tick, "s"),
            )
        )
    columns = (
        "Samples", "Mean", "Std", "Within run", "Order interval", "Lag 1", "Worth", "Drift",
        "Far off", "Tick",
    )  # fmt: skip
    return Grid("Samples", columns, tuple(rows))


def _machine(timed: Sequence[Timed]) -> Grid:
    """The GPU during each; no rows where nothing is known of it."""
    rows = []
    for one in timed:
        moments = [block.gpu for block in one.latency.blocks if block.gpu is not None]
        ready = one.latency.ready
        if not moments and not ready.memory:
            continue
        memory = ready.memory or MemoryUse()
        rows.append(
            (
                literal(one.label),
                _clock(one),
                _extremes([moment.power for moment in moments], "W"),
                _extremes([moment.temperature for moment in moments], "°C"),
                _mebibytes(memory.peak_allocated),
                _mebibytes(memory.peak_reserved),
                number(ready.host, "s") if ready.host else "n/a",
            )
        )
    columns = ("GPU", "SM clock", "Power", "Temperature", "Peak memory", "Reserved", "To submit")
    doubted = any(row[1].endswith("?") for row in rows)
    return Grid("GPU", columns, tuple(rows), _TOLD_BEFORE if doubted else "")


def _extremes(values: Iterable[float | None], unit: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "n/a"
    low, high = round(min(known)), round(max(known))
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def _mebibytes(size: int | UnsetType | None) -> str:
    return "n/a" if size is None or size is UNSET else f"{size / 2**20:,.1f} MiB"


def _decimal(value: float | None) -> str:
    return "n/a" if value is None else f"{value:+.2f}"


def _clock(timed: Timed) -> str:
    """A `?` marks the driver's word of before the blocks."""
    doubt = "" if timed.latency.clocks_counted or not timed.clock else "?"
    return _extremes([clock / 1e6 for clock in timed.clock or ()], "MHz") + doubt


def _doubts(timed: Timed) -> Iterable[str]:
    summary = timed.summary
    if timed.without_level and timed.interval is not None:
        yield f"no confidence level: {timed.without_level}"
    if summary.independence.state is State.NOT_INDEPENDENT:
        whys = " and ".join(_dependence(reason, summary) for reason in summary.independence.reasons)
        within = "is refused" if summary.interval is None else "is widened"
        yield f"the samples are not independent ({whys}): the interval within the run {within}"
    elif timed.interval is None and summary.refused:
        yield f"no interval: {_DEPENDENCE[summary.refused]}"
    if summary.startup:
        yield f"{plural(summary.startup, 'slow sample')} at the start: warm up longer"
    overtaken = sum(block.overtaken or 0 for block in timed.latency.blocks)
    if overtaken and not timed.latency.ready.waits:
        yield (
            f"the GPU began {overtaken} of {summary.n} samples before the host had submitted them: "
            "they may hold its gaps (--timer graph has none)"
        )
    for reason, blocks in timed.throttled.items():
        yield f"{reason} held the clock in {blocks} of {len(timed.latency.blocks)} blocks"
    if timed.latency.ready.steady is False:
        yield "the SM clock still moved at the end of the warm-up: raise --warmup-ms"
    if timed.latency.ready.waits:
        yield "a call waits for the GPU: its time holds some of the host's"
    if timed.launch_bound:
        host = number(timed.latency.ready.host or 0.0, "s")
        yield (
            f"launch-bound: the host needs {host} to submit a call, the GPU "
            f"{number(summary.median, 's')} for it; wall time is the host's"
        )
    yield from _claims(timed)


def _dependence(reason: Reason, summary: Summary) -> str:
    match reason:
        case Reason.AUTOCORRELATED:
            return f"lag-1 autocorrelation {_decimal(summary.autocorrelation)}"
        case Reason.DRIFTING if summary.drift:
            return f"the halves' medians differ by {_small(abs(summary.drift.relative))}"
        case _:
            return _DEPENDENCE[reason]


def _claims(timed: Timed) -> Iterable[str]:
    """Where the file itself claims a median or an interval."""
    claimed, summary = timed.claimed, timed.summary
    if claimed is None:
        return
    if claimed.median is not None:
        off = claimed.median / summary.median - 1
        agrees = "agrees with" if abs(off) < 1e-6 else f"is {off:+.2%} off"
        yield f"the file's median, {number(claimed.median, 's')}, {agrees} the samples"
    if claimed.low is not None and claimed.high is not None:
        width = claimed.high - claimed.low
        told = f"the file's interval, {seconds_between(claimed.low, claimed.high)},"
        if summary.tick and abs(width - summary.tick) < 0.1 * summary.tick:
            yield f"{told} is one tick of the timer wide: it says nothing finer than that"
        if summary.independence.state is State.NOT_INDEPENDENT:
            yield f"{told} takes the samples for independent: it is too narrow"


def _evidence(pair: Pair, report: LatencyReport) -> list[str]:
    comparison = pair.comparison
    samples = pair.samples_in_a_block
    told = (
        f"{comparison.reason.value}; margin {percent(comparison.margin.value)}, "
        f"{comparison.blocks} blocks of {samples}"
    )
    in_turns = comparison.reason is not VerdictReason.NOT_INTERLEAVED
    if in_turns:
        lines = [f"{told}; smallest detectable slowdown: {percent(comparison.detectable)}"]
    else:
        lines = [told, "blocks have to take turns, in changing order: profkit time --compare"]
    lines += comparison.details
    if pair.clocks and pair.speedup_in_cycles:
        clocks = " and ".join(
            f"{literal(side.label)} at {clock / 1e6:.0f} MHz"
            for side, clock in zip((pair.a, pair.b), pair.clocks, strict=True)
        )
        ratio = f"{pair.speedup_in_cycles:.2f}x as fast"
        lines.append(f"what each draws left {clocks}: in SM cycles {ratio}")
    lines.append(classic_line(comparison.classic))
    if in_turns and comparison.p_adjusted is not None and len(report.pairs) > 1:
        lines.append(
            f"p {_probability(comparison.p_adjusted)} after Holm's correction for "
            f"{len(report.pairs)} comparisons"
        )
    if comparison.reason is VerdictReason.RESOLUTION:
        lines.append(
            f"the timer leaves {percent(comparison.resolution)} open and more blocks won't help: "
            f"{_finer(pair)}"
        )
    settle = settling_command(pair, report)
    if settle:
        lines.append(f"to settle it: {settle}")
    elif comparison.reason is VerdictReason.AT_MARGIN:
        lines.append("more blocks won't settle it: choose another --margin, or take it as it is")
    return lines


def _finer(pair: Pair) -> str:
    """How to time what the timer's resolution leaves open."""
    if pair.a.latency.timer in _EVENT_TIMERS:
        return "group calls into a sample (--cache warm does), or use --timer cupti"
    return "let the target do several calls in one"


def classic_line(classic: Classic) -> str:
    """The classic rule and what it rests on, as evidence."""
    apart = {True: "apart", False: "overlap", None: "not to be had"}[classic.apart]
    return (
        f"classic rule: intervals {apart}, Cliff's delta {classic.delta:+.2f} "
        f"({classic.separation.value}), Mann-Whitney p "
        f"{_probability(classic.p_value)}, speed-up {classic.speedup:.2f}x: "
        f"{'claimable' if classic.claimable else 'not claimable'}"
    )


def settling_command(pair: Pair, report: LatencyReport) -> str:
    """The command that would settle an INCONCLUSIVE; empty where none is known or needed."""
    options = settling_options(pair, report.thresholds)
    if not report.command or not options:
        return ""
    words = list(report.command)
    own = words.index("--") if "--" in words else len(words)
    changed = without(words[:own], options[::2])
    return shlex.join([*changed, *options, *words[own:]])


def settling_options(pair: Pair, thresholds: Thresholds) -> list[str]:
    """The options to time again with for an INCONCLUSIVE to be settled; none where none would.

    Blocks to come are planned with as many samples as these had.
    """
    comparison = pair.comparison
    if comparison.verdict is not Verdict.INCONCLUSIVE or comparison.reason in _NO_MORE:
        return []
    if comparison.reason is VerdictReason.RESOLUTION:
        return ["--timer", "cupti"] if pair.a.latency.timer in _EVENT_TIMERS else []
    blocks = comparison.blocks_needed or 2 * comparison.blocks
    too_few = comparison.reason is VerdictReason.TOO_FEW_SAMPLES
    samples = thresholds.samples if too_few else pair.samples_in_a_block
    return ["--blocks", str(blocks), "--samples", str(blocks * samples)]


def without(words: Sequence[str], options: Sequence[str]) -> list[str]:
    """A command line without these options, which take a value each."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in options:
            skip = True
        elif word.partition("=")[0] not in options:
            kept.append(word)
    return kept


def _probability(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _explanation(report: LatencyReport) -> RenderableType:
    return facts(Panel("How it is judged", tuple(_thresholds(report.thresholds))))


def _thresholds(asked: Thresholds) -> Iterable[Row]:
    yield Row("margin", f"{percent(asked.margin)}: a smaller difference counts as none")
    yield Row(
        "level",
        f"{percent(asked.level)}: the interval that must lie beyond the margin for IMPROVED or "
        "REGRESSED",
    )
    yield Row("same level", f"{percent(asked.same_level)}: the one that must lie within for SAME")
    yield Row("power", f"{percent(asked.power)}: the chance that blocks to come are planned for")
    yield Row("blocks", f"{asked.blocks} at least, of {asked.samples} samples at least")
    yield Row("interval", "Student's t over the blocks' typical log ratios: docs/statistics.md")


def _where_time_went(report: LatencyReport) -> str:
    parts = [f"{name} {_short(seconds)}" for name, seconds in report.spans.items()]
    return f"{report.seconds:.1f} s: {', '.join(parts)}"


def _short(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 0.95 else f"{seconds * 1e3:.0f} ms"
