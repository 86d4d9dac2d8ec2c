"""Latencies and verdicts as text: one-line results, tables, the sentence to publish.

Markdown contains no host names or paths.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from msgspec import UNSET, UnsetType
from rich.console import Group, RenderableType
from rich.text import Text

from profkit.timing import results
from profkit.timing.energy_view import ENERGY_COLUMNS, ENERGY_NOTE, energy_ratio, energy_words
from profkit.timing.latency import LatencyReport, Pair, Timed
from profkit.timing.latency_format import MemoryUse, Rate
from profkit.timing.results import Comparison, Interval, Margin, State, Thresholds, Verdict
from profkit.timing.statistics import LEVEL, unmet_criteria
from profkit.timing.verdict import Reason, reason_words
from profkit.ui.markdown import escape
from profkit.ui.markdown import table_of as markdown_table
from profkit.ui.terminal import console, facts, rendered, table_of
from profkit.ui.text import literal, number, percent, plural, seconds_between, shorten
from profkit.ui.view import Grid, Panel, Row

# chosen: two decimals hardly separate the ends of a narrower interval, so it gets a third
_FINE = 0.02
# Chosen: a ratio within 10% of 1 gets a third decimal, a share below 0.1% a second one.
_CLOSE, _NARROW = 0.10, 0.001
_LONGEST_LABEL = 22  # chosen: longer labels are shortened, so that tables keep their columns at 100
_LEAST_NEEDED = (
    "P99", "P90", "P5", "Outliers", "Reserved", "Std", "Median by order", "Power", "P95",
    "Median within run",
)  # fmt: skip
_READ_BEFORE = "NVML reading before each block; the samples may have run at another clock"
_NO_COMPARISON = "no comparison requested: add --compare A,B"
WITHIN_RUN_NOTE = "≈: within-run interval, no confidence level"
_CLOCK, _CLOCK_BEFORE = "SM clock", "SM clock before block"
_QUALITY_NOTES = {
    "Median within run": "interval of the median over all samples, no confidence level",
    "Median by order": "the same from order statistics, not widened for dependence",
    "Autocorr.": "lag 1, of ranks",
    "Effective N": "effective sample size",
    "Drift": "median of the second half of the samples against the first",
    "Resolution": "of the timer",
}
_SAMPLES = "Samples"
_HOST_BOUND = 0.8  # chosen: nearer to 1 the GPU waits for the host between calls
_LAUNCH_NOTE = "Launch overhead: host time to submit one call"
_TIMERS = {
    "events": "CUDA events",
    "graph": "CUDA graph replay between CUDA events",
    "cupti": "CUPTI activity records",
    "wall": "host clock",
    "synchronized": "host clock, until the GPU has finished a sample's calls",
}
_COLORS = {
    Verdict.IMPROVED: "bold green",
    Verdict.REGRESSED: "bold red",
    Verdict.SAME: "bold",
    Verdict.INCONCLUSIVE: "bold yellow",
    Verdict.INVALID: "bold red",
}
_NO_MORE = {Reason.AT_MARGIN, Reason.NOT_INTERLEAVED, Reason.NO_INTERVAL}
_EVENT_TIMERS = {"events", "graph"}
_DEPENDENCE = {
    results.Reason.AUTOCORRELATED: "autocorrelated samples",
    results.Reason.DRIFTING: "the two halves differ significantly",
    results.Reason.START_UP: "slow samples at the start",
    results.Reason.TOO_FEW: "too few samples",
    results.Reason.CONSTANT: "all samples are equal",
}


def latency_terminal(report: LatencyReport, *, explain: bool, to_file: bool) -> str:
    """The report for a terminal; `to_file`: without colors, at the width of piped output."""
    width = console(to_file=to_file).width
    parts: list[RenderableType] = [Text(literal(report.title), "bold")]
    parts += [facts(_circumstances(report)), Text()]
    for pair in report.pairs:
        verdict = pair.comparison.verdict
        line = pair_line(pair).removesuffix(verdict.name)
        parts.append(Text(f"{heading(pair)}\n{line}").append(verdict.name, _COLORS[verdict]))
        parts += [Text(f"  {literal(line)}", "dim") for line in _evidence(pair, report)]
    if report.pairs:
        parts.append(Text())
    parts += [Text(variant_line(timed)) for timed in report.timed]
    if not report.pairs and len(report.timed) > 1:
        parts.append(Text(_NO_COMPARISON, "dim"))
    parts += [table_of(_fitting(grid, width), numbers=True) for grid in grids(report)]
    if lines := warnings(report):
        parts += [Text(), *(Text(f"! {line}", "yellow") for line in lines)]
    if explain:
        parts += [Text(), facts(_explanation(report.thresholds))]
    if report.spans:
        spans = ", ".join(f"{name} {_short(seconds)}" for name, seconds in report.spans.items())
        row = Row("Time", f"{report.seconds:.1f} s: {spans}")
        parts += [Text(), facts(Panel("Time", (row,)))]
    return rendered(Group(*parts), to_file=to_file)


def latency_markdown(report: LatencyReport) -> str:
    """The report in Markdown, with the sentence to publish."""
    lines = [f"# Latency of {escape(report.title)}", ""]
    lines += [f"- {row.label}: {escape(row.value)}" for row in _circumstances(report).rows]
    for pair in report.pairs:
        lines += ["", f"**{escape(heading(pair))}**: {escape(pair_line(pair))}", ""]
        lines += [f"- {escape(line)}" for line in _evidence(pair, report)]
    lines += ["", *(f"- {escape(variant_line(timed))}" for timed in report.timed)]
    if not report.pairs and len(report.timed) > 1:
        lines += ["", escape(_NO_COMPARISON)]
    for grid in grids(report):
        lines += ["", *markdown_table(grid)]
    for warning in warnings(report):
        lines += ["", f"> {escape(warning)}"]
    sentences = [f"> {escape(sentence(timed, report))}" for timed in report.timed]
    return "\n".join([*lines, "", "To publish:", "", "\n>\n".join(sentences)]) + "\n"


def variant_line(timed: Timed) -> str:
    """A variant in one line: `sdpa  49.31 µs ±0.2%   174.2 TFLOP/s, 17.6% of 989.0 TFLOP/s`."""
    line = f"{literal(timed.label)}  {latency_words(timed)}"
    return f"{line}   {_flop_rate(timed.flop_rate)}" if timed.flop_rate else line


def pair_line(pair: Pair) -> str:
    """A comparison: `69.6 µs ±0.4% → 46.8 µs ±0.3%   1.49x faster [...] over blocks  IMPROVED`."""
    times = f"{latency_words(pair.a)} → {latency_words(pair.b)}"
    return f"{times}   {change(pair.comparison)} over blocks  {pair.comparison.verdict.name}"


def change(comparison: Comparison) -> str:
    """The speedup over blocks with its interval: `1.49x faster [1.48, 1.50]`."""
    return times_as_fast(comparison.speedup, comparison.low, comparison.high)


def times_as_fast(speedup: float, low: float, high: float) -> str:
    """A ratio of times with its interval: `1.44x faster`, below 1 the reciprocals and `slower`.

    Of equal times `1.000x`.
    """
    values, word = (speedup, low, high), "faster"
    if speedup < 1:
        values, word = (1 / speedup, 1 / high, 1 / low), "slower"
    is_fine = abs(values[0] - 1) < _CLOSE or values[2] - values[1] < _FINE
    digits = 3 if is_fine else 2
    ratio, lowest, highest = (f"{value:.{digits}f}" for value in values)
    word = "" if float(ratio) == 1 else f" {word}"
    return f"{ratio}x{word} [{lowest}, {highest}]"


def sentence(timed: Timed, report: LatencyReport) -> str:
    """For a publication: value, interval, shape, dtype, machine, sample size, method, seed."""
    target, gpu = timed.latency.target, timed.latency.gpu
    versions = report.fingerprint.versions or {}
    software = (
        ("driver", gpu.driver), ("torch", versions.get("torch")), ("CUDA", versions.get("cuda"))
    )  # fmt: skip
    machine = [gpu.name or "GPU unknown", *(f"{name} {part}" for name, part in software if part)]
    parts = [
        f"{timed.label}: median {number(timed.summary.median, 's')}, {_interval_words(timed)}",
        f"{target.words}, {target.dtype}" if target.dtype else "",
        ", ".join(machine),
        method(timed),
        "" if report.warmup is None else f"warm-up {report.warmup:g} s",
        "" if report.seed is None else f"seed {report.seed} of the target's inputs",
    ]
    return "; ".join(filter(None, parts)) + "."


def warnings(report: LatencyReport) -> tuple[str, ...]:
    """What limits the validity of the numbers."""
    lines = [f"{label} can't run here: {why}" for label, why in report.left_out.items()]
    if report.other_processes:
        others = plural(report.other_processes, "other process")
        energies = " and energies" if any(timed.energy for timed in report.timed) else ""
        lines.append(f"{others} on the GPU: these times{energies} include their interference")
    return tuple(map(literal, lines)) + doubts(report.timed)


def doubts(variants: Iterable[Timed]) -> tuple[str, ...]:
    """Warnings about single latencies, each once with the labels that it concerns."""
    labels: dict[str, list[str]] = {}
    for timed in variants:
        for doubt in _doubts(timed):
            labels.setdefault(doubt, []).append(timed.label)
    return tuple(literal(f"{', '.join(names)}: {doubt}") for doubt, names in labels.items())


def _fitting(grid: Grid, width: int) -> Grid:
    """A grid without the columns that do not fit the width, the least needed dropped first."""
    labels, *others = zip(grid.columns, *grid.rows, strict=True)
    columns = [tuple(shorten(label, _LONGEST_LABEL) for label in labels), *others]
    for name in _LEAST_NEEDED:
        if sum(2 + max(map(len, column)) for column in columns) <= width + 2:
            break
        columns = [column for column in columns if column[0] != name]
    names, *rows = zip(*columns, strict=True)
    note = grid.note
    if grid.title == _SAMPLES:
        note = _notes(_QUALITY_NOTES, names)
    return replace(grid, columns=names, rows=tuple(rows), note=note)


def heading(pair: Pair) -> str:
    return f"{literal(pair.a.label)} → {literal(pair.b.label)}"


def _circumstances(report: LatencyReport) -> Panel:
    first = report.timed[0]
    target, gpu, empty = first.latency.target, first.latency.gpu, first.latency.ready.empty
    rows = []
    if target:
        dtype = "dtype unknown" if target.dtype is UNSET else target.dtype
        rows.append(Row("Work", f"{target.words}, {dtype}"))
    if gpu:
        driver = f", driver {gpu.driver}" if gpu.driver else ""
        rows.append(Row("GPU", f"{gpu.name}{driver}"))
    rows.append(Row("Method", method(first)))
    if empty:
        rows.append(Row("Timer overhead", f"{number(empty, 's')} (not subtracted)"))
    if report.pairs:
        margin = report.pairs[0].comparison.margin
        floor = "unknown (profkit calibrate)" if report.floor is None else percent(report.floor)
        origin = margin_words(margin)
        rows.append(Row("Margin", f"{origin}; A/A floor {floor}"))
    return Panel("Circumstances", tuple(rows))


def margin_words(margin: Margin) -> str:
    """A margin and where it comes from: `1.0% (default)`."""
    is_default = margin.value == results.DEFAULT.margin
    source = "default" if is_default else "requested"
    if margin.source is results.Source.FLOOR:
        source = f"calibrated, {margin.source.value}"
    return f"{percent(margin.value)} ({source})"


def method(timed: Timed) -> str:
    """How the samples were taken: timer, L2 state, sample size, blocks."""
    latency = timed.latency
    samples = plural(timed.summary.n, "sample")
    if len(latency.blocks) > 1:
        interleaved = "interleaved " if latency.took_turns else ""
        samples += f" in {len(latency.blocks)} {interleaved}blocks"
    if not latency.timer:
        return f"unknown, {samples}"
    cache = f", {latency.cache} L2" if latency.timer != "wall" else ""
    group = latency.ready.group or 1
    grouped = f" of {group} calls" if group > 1 else ""
    return f"{_TIMERS[latency.timer]}{cache}, {samples}{grouped}"


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
    interval, refused = timed.interval, timed.summary.refused
    if interval is None:
        return f"no interval ({_DEPENDENCE[refused] if refused else 'none'})"
    between = _between(interval)
    if interval.tick:
        between += " (extended by the timer resolution at both ends)"
    if interval.level is not None:
        blocks = len(timed.latency.blocks)
        level = f"{interval.level:.0%} confidence interval"
        return f"{level} {between} over the medians of {blocks} blocks"
    inflated = ", widened for dependent samples" if interval.claim is results.Claim.WIDENED else ""
    return f"within-run interval {between}, no confidence level stated{inflated}"


def _between(interval: Interval | None) -> str:
    return seconds_between(interval.low, interval.high) if interval else "n/a"


def _flop_rate(rate: Rate) -> str:
    value = number(rate.value, "FLOP/s")
    if rate.share is None:
        return value
    kind, _, dtype = rate.of.partition("_")
    peak = f"dense {dtype} tensor" if kind == "tensor" else rate.of
    doubt = "" if rate.verified else ", unverified"
    excess = " (above the peak!)" if rate.share > 1 else ""
    of_peak = f"{number(rate.peak or 0.0, 'FLOP/s')} (datasheet, {peak}{doubt})"
    return f"{value}, {percent(rate.share)}{excess} of {of_peak}"


def grids(report: LatencyReport) -> tuple[Grid, ...]:
    """The tables: times and rates, sample statistics, the GPU where it is known."""
    machine = [
        timed for timed in report.timed if timed.latency.moments or timed.latency.ready.memory
    ]
    notes, columns = [_LAUNCH_NOTE], dict(_MACHINE)
    doubtful = [timed for timed in machine if timed.clock and not timed.latency.clocks_counted]
    if doubtful and len(doubtful) == len(machine):
        names = (_CLOCK_BEFORE if name == _CLOCK else name for name in _MACHINE)
        columns = dict(zip(names, _MACHINE.values(), strict=True))
        columns[_CLOCK_BEFORE] = lambda timed: _clock(timed).removesuffix("?")
        notes.append(f"{_CLOCK_BEFORE}: {_READ_BEFORE}")
    elif doubtful:
        notes.append(f"?: {_READ_BEFORE}")
    known = [_grid("GPU", columns, machine, "; ".join(notes))] if machine else []
    quality = _grid(_SAMPLES, _QUALITY, report.timed, _notes(_QUALITY_NOTES, _QUALITY))
    drawn = tuple(
        (literal(timed.label), *energy_words(timed.energy))
        for timed in report.timed
        if timed.energy
    )
    energy = [Grid("Energy", ("Variant", *ENERGY_COLUMNS), drawn, ENERGY_NOTE)] if drawn else []
    return (_times(report.timed), *energy, quality, *known)


def _notes(meanings: Mapping[str, str], columns: Iterable[str]) -> str:
    """The meanings of the columns that a table has."""
    return "; ".join(f"{name}: {meanings[name]}" for name in columns if name in meanings)


_Columns = Mapping[str, Callable[[Timed], str]]


def _grid(title: str, columns: _Columns, variants: Sequence[Timed], note: str = "") -> Grid:
    rows = tuple(tuple(cell(timed) for cell in columns.values()) for timed in variants)
    return Grid(title, tuple(columns), rows, note)


def _times(variants: Sequence[Timed]) -> Grid:
    percentiles = variants[0].summary.percentiles
    levels = {timed.interval.level for timed in variants if timed.interval}
    columns: dict[str, Callable[[Timed], str]] = {
        "Variant": lambda timed: literal(timed.label),
        "Median": lambda timed: number(timed.summary.median, "s"),
        "Interval" if None in levels else f"{LEVEL:.0%} interval": marked_interval,
    }
    for index, entry in enumerate(percentiles):
        columns[f"P{round(100 * entry.q)}"] = partial(_percentile, index)
    columns["CV"] = lambda timed: "n/a" if timed.summary.cv is None else percent(timed.summary.cv)
    notes = [
        f"P{round(100 * entry.q)} needs {entry.needs} samples"
        for entry in percentiles
        if entry.value is None
    ]
    if None in levels:
        notes.append(WITHIN_RUN_NOTE)
    if any(timed.bandwidth for timed in variants):
        columns["Min. traffic"] = lambda timed: _bandwidth(timed.bandwidth)
    if any(timed.bandwidth and timed.bandwidth.share is not None for timed in variants):
        notes.append("Min. traffic: compulsory traffic over the median, % of DRAM peak")
    return _grid("Times", columns, variants, "; ".join(notes))


def _percentile(index: int, timed: Timed) -> str:
    return _seconds(timed.summary.percentiles[index].value)


def marked_interval(timed: Timed) -> str:
    """The between-block interval, else the within-run one after a `≈`; "none" without either."""
    if timed.interval is None:
        return "none"
    return f"{'≈ ' if timed.interval.level is None else ''}{_between(timed.interval)}"


def _bandwidth(rate: Rate | None) -> str:
    """The rate of compulsory traffic, with its share of the DRAM peak."""
    if rate is None:
        return "n/a"
    share = "" if rate.share is None else f" {percent(rate.share)}"
    return f"{number(rate.value, 'B/s')}{share}"


def _seconds(value: float | None) -> str:
    return "n/a" if value is None else number(value, "s")


def _decimal(value: float | None) -> str:
    return "n/a" if value is None else f"{value:+.2f}"


_QUALITY: _Columns = {
    "Variant": lambda timed: literal(timed.label),
    "Mean": lambda timed: number(timed.summary.mean, "s"),
    "Std": lambda timed: _seconds(timed.summary.std),
    "Median within run": lambda timed: _between(timed.summary.interval),
    "Median by order": lambda timed: _between(timed.summary.order_interval),
    "Autocorr.": lambda timed: _decimal(timed.summary.autocorrelation),
    "Effective N": lambda timed: f"{timed.summary.effective_n:.0f} of {timed.summary.n}",
    "Drift": lambda timed: f"{timed.summary.drift.relative:+.1%}" if timed.summary.drift else "n/a",
    "Outliers": lambda timed: str(timed.summary.outliers),
    "Resolution": lambda timed: (
        "not detected" if timed.summary.tick is None else _seconds(timed.summary.tick)
    ),
}


def _extremes(values: Iterable[float | None], unit: str) -> str:
    known = [round(value) for value in values if value is not None]
    if not known:
        return "n/a"
    low, high = min(known), max(known)
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def _mebibytes(size: int | UnsetType | None) -> str:
    return "n/a" if size is None or size is UNSET else f"{size / 2**20:,.1f} MiB"


def _clock(timed: Timed) -> str:
    """A `?` marks NVML readings taken before the blocks."""
    doubt = "" if timed.latency.clocks_counted or not timed.clock else "?"
    return _extremes([clock / 1e6 for clock in timed.clock or ()], "MHz") + doubt


def _memory(timed: Timed) -> MemoryUse:
    return timed.latency.ready.memory or MemoryUse()


_MACHINE: _Columns = {
    "Variant": lambda timed: literal(timed.label),
    "SM clock": _clock,
    "Power": lambda timed: _extremes([moment.power for moment in timed.latency.moments], "W"),
    "Temperature": lambda timed: _extremes(
        [moment.temperature for moment in timed.latency.moments], "°C"
    ),
    "Peak memory": lambda timed: _mebibytes(_memory(timed).peak_allocated),
    "Reserved": lambda timed: _mebibytes(_memory(timed).peak_reserved),
    "Launch overhead": lambda timed: _seconds(timed.latency.ready.host or None),
}


def _doubts(timed: Timed) -> Iterable[str]:
    summary, latency = timed.summary, timed.latency
    if timed.without_level and timed.interval is not None:
        yield f"no confidence level stated: {timed.without_level}"
    if summary.independence.state is State.NOT_INDEPENDENT:
        causes = ", ".join(_dependence(reason, timed) for reason in summary.independence.reasons)
        effect = (
            "no within-run interval"
            if summary.interval is None
            else "within-run interval widened to correct for it"
        )
        yield f"samples are not independent ({causes}): {effect}"
    elif timed.interval is None and summary.refused:
        yield f"no interval: {_DEPENDENCE[summary.refused]}"
    if summary.startup:
        yield f"{plural(summary.startup, 'slow sample')} at the start: raise --warmup-ms"
    overtaken = sum(block.overtaken or 0 for block in latency.blocks)
    if overtaken and not latency.ready.waits:
        yield (
            f"{overtaken} of {summary.n} samples submitted late (the GPU already ran them): "
            "they may include host launch gaps; --timer graph avoids these"
        )
    yield from _doubts_of_the_machine(timed)
    yield from _claims(timed)


def _doubts_of_the_machine(timed: Timed) -> Iterable[str]:
    latency = timed.latency
    for reason, blocks in timed.throttled.items():
        yield (f"NVML reports throttling in {blocks} of {len(latency.blocks)} blocks: {reason}")
    if latency.ready.steady is False:
        yield "the SM clock was not stable at the end of the warm-up: raise --warmup-ms"
    if latency.ready.waits:
        yield "a call synchronizes with the GPU: its time includes host time"
    if timed.without_energy:
        yield f"no energy: {timed.without_energy}"
    yield from _host_limits(timed)


def _host_limits(timed: Timed) -> Iterable[str]:
    """Where the host needs longer for a call than the GPU, or may."""
    host, median = timed.latency.ready.host or 0.0, timed.summary.median
    if timed.launch_bound:
        yield (
            f"launch-bound: per call {number(host, 's')} of host launch overhead, "
            f"{number(median, 's')} of GPU time; the host limits wall time"
        )
    if timed.latency.timer == "synchronized" and host > _HOST_BOUND * median:
        yield (
            f"host-bound: the host needs {number(host, 's')} to submit a call of "
            f"{number(median, 's')}, and the GPU may need less"
        )


def _dependence(reason: results.Reason, timed: Timed) -> str:
    summary = timed.summary
    if reason is results.Reason.AUTOCORRELATED:
        return f"lag-1 autocorrelation {_decimal(summary.autocorrelation)}"
    if reason is results.Reason.DRIFTING and summary.drift:
        return f"medians of the two halves differ by {_small(abs(summary.drift.relative))}"
    return _DEPENDENCE[reason]


def _claims(timed: Timed) -> Iterable[str]:
    """Where the file itself states a median or an interval."""
    claimed, summary = timed.claimed, timed.summary
    if claimed is None:
        return
    if claimed.median is not None:
        error = claimed.median / summary.median - 1
        agrees = "equals" if abs(error) < 1e-6 else f"differs by {error:+.2%} from"
        yield f"the file's median, {number(claimed.median, 's')}, {agrees} that of its samples"
    if claimed.low is not None and claimed.high is not None:
        width = claimed.high - claimed.low
        interval = f"the file's interval, {seconds_between(claimed.low, claimed.high)},"
        if summary.tick and abs(width - summary.tick) < 0.1 * summary.tick:
            yield f"{interval} is one timer tick wide: finer differences are not resolved"
        if summary.independence.state is State.NOT_INDEPENDENT:
            yield f"{interval} assumes independent samples: it is too narrow"


def _evidence(pair: Pair, report: LatencyReport) -> Iterable[str]:
    comparison = pair.comparison
    is_interleaved = comparison.reason != Reason.NOT_INTERLEAVED
    basis = (
        f"{reason_words(comparison.reason)}; margin {percent(comparison.margin.value)}, "
        f"{comparison.blocks} blocks of {pair.samples_in_a_block}"
    )
    if is_interleaved:
        open_question = comparison.verdict in {Verdict.SAME, Verdict.INCONCLUSIVE}
        detectable = f"; smallest detectable slowdown: {percent(comparison.detectable)}"
        yield f"{basis}{detectable if open_question else ''}"
    else:
        yield basis
        yield "blocks must be interleaved, in varying order: profkit time --compare"
    yield from comparison.details
    if comparison.clocks:
        before, after = comparison.clocks
        yield (
            f"SM clocks under each variant's power draw: {literal(pair.a.label)} "
            f"{before / 1e6:.0f} MHz, {literal(pair.b.label)} {after / 1e6:.0f} MHz; in SM cycles "
            f"{comparison.speedup * before / after:.2f}x as fast"
        )
    if pair.a.energy and pair.b.energy:
        yield energy_ratio(pair.a.energy, pair.b.energy)
    yield classic_line(comparison.classic, contradicted=comparison.verdict is not Verdict.IMPROVED)
    if is_interleaved and comparison.p_adjusted is not None and len(report.pairs) > 1:
        yield (
            f"p {_probability(comparison.p_adjusted)} after Holm's correction for "
            f"{len(report.pairs)} comparisons"
        )
    if comparison.reason == Reason.RESOLUTION:
        finer = "make several calls in one `run` of the target"
        if pair.a.latency.timer in _EVENT_TIMERS:
            finer = "group calls into a sample (--cache warm does), or use --timer cupti"
        open_share = percent(comparison.resolution)
        yield f"timer resolution leaves {open_share} unresolved, more blocks won't help: {finer}"
    if settle := settling_command(pair, report):
        yield f"for a verdict: {settle}"
    elif comparison.reason == Reason.AT_MARGIN:
        yield "more blocks won't give a verdict: choose another --margin"


def classic_line(classic: results.Classic, *, contradicted: bool = False) -> str:
    """The classic rule and its criteria, as evidence; `contradicted` by a verdict."""
    standing = "criteria for claiming a speedup met"
    if unmet := unmet_criteria(classic):
        standing = f"criteria for claiming a speedup not met ({', '.join(unmet)})"
    elif contradicted:
        standing = "this rule alone would accept a speedup; not valid here"
    overlap = {True: "disjoint", False: "overlap", None: "not available"}[classic.apart]
    return (
        f"classic rule: intervals {overlap}, Cliff's delta {classic.delta:+.2f} "
        f"({classic.separation.value}), ratio of medians {classic.speedup:#.4g}x: {standing}; "
        f"Mann-Whitney p {_probability(classic.p_value)}"
    )


def settling_command(pair: Pair, report: LatencyReport) -> str:
    """The command for a verdict instead of INCONCLUSIVE; empty where none is known or needed."""
    options = settling_options(pair, report.thresholds)
    if not report.command or not options:
        return ""
    words = list(report.command)
    own = words.index("--") if "--" in words else len(words)
    return shlex.join([*without(words[:own], options[::2]), *options, *words[own:]])


def settling_options(pair: Pair, thresholds: Thresholds) -> list[str]:
    """The options of another run that turn an INCONCLUSIVE into a verdict; none where none would.

    Further blocks are planned with as many samples as these had.
    """
    comparison = pair.comparison
    if comparison.verdict is not Verdict.INCONCLUSIVE or comparison.reason in _NO_MORE:
        return []
    if comparison.reason == Reason.RESOLUTION:
        return ["--timer", "cupti"] if pair.a.latency.timer in _EVENT_TIMERS else []
    blocks = comparison.blocks_needed or 2 * comparison.blocks
    too_few = comparison.reason == Reason.TOO_FEW_SAMPLES
    samples = thresholds.samples if too_few else pair.samples_in_a_block
    return ["--blocks", str(blocks), "--samples", str(blocks * samples)]


def without(words: Sequence[str], options: Sequence[str]) -> list[str]:
    """A command line without these options, which take a value each."""
    rest, remaining = [], iter(words)
    for word in remaining:
        if word in options:
            next(remaining, None)
        elif word.partition("=")[0] not in options:
            rest.append(word)
    return rest


def _probability(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _explanation(thresholds: Thresholds) -> Panel:
    level, same_level = percent(thresholds.level), percent(thresholds.same_level)
    beyond = "of the interval that lies beyond the margin for IMPROVED or REGRESSED"
    rows = {
        "margin": f"{percent(thresholds.margin)}: a smaller difference counts as no change",
        "confidence": f"{level}: {beyond}",
        "for SAME": f"{same_level}: of the interval that lies within the margin for SAME",
        "power": f"{percent(thresholds.power)}: chance to detect a slowdown as large as the "
        "smallest detectable one, which SAME and INCONCLUSIVE print",
        "blocks": f"a comparison needs at least {thresholds.blocks} blocks of at least "
        f"{thresholds.samples} samples per variant",
        "interval": "Student's t over Hodges-Lehmann log ratios of blocks: "
        "docs/reference/methods/statistics.md",
    }
    return Panel("Thresholds", tuple(Row(label, value) for label, value in rows.items()))


def _short(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 0.95 else f"{seconds * 1e3:.0f} ms"
