"""Latencies and verdicts: their file, their document, one-line results, the sentence to publish.

They contain no host names or paths.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec import UNSET, UnsetType, structs

from profkit.core.grouping import grouped
from profkit.timing import results
from profkit.timing.latency_file import Claimed
from profkit.timing.latency_format import (
    LatencyFile,
    MemoryUse,
    Pair,
    Rate,
    Series,
)
from profkit.timing.results import Comparison, Interval, Margin, State, Thresholds, Verdict
from profkit.timing.statistics import LEVEL, unmet_criteria
from profkit.timing.verdict import Reason, reason_words
from profkit.ui import document as doc
from profkit.ui.badge import badge_svg
from profkit.ui.text import literal, number, percent, plural, seconds_between

# chosen: two decimals hardly separate the ends of a narrower interval, so it gets a third
_FINE = 0.02
# Chosen: a ratio within 10% of 1 gets a third decimal, a share below 0.1% a second one.
_CLOSE, _NARROW = 0.10, 0.001
_UNEVEN = 2.0  # mean over median, chosen: the slow samples have most of the time
_NOISY = 0.5  # of the median, chosen: a wider half-interval says less than its ends
_LEAST_NEEDED = (
    "P99", "P90", "P5", "Outliers", "Reserved", "Std", "Median by order", "Power", "P95",
    "Median within run",
)  # fmt: skip
_READ_BEFORE = "NVML reading before each block; the samples may have run at another clock"
WITHIN_RUN_NOTE = "≈: within-run interval, no confidence level"
_QUALITY_NOTES = {
    "Median within run": "interval of the median over all samples, no confidence level",
    "Median by order": "the same from order statistics, not widened for dependence",
    "Autocorr.": "lag 1, of ranks",
    "Effective N": "effective sample size",
    "Drift": "median of the second half of the samples against the first",
    "Resolution": "of the timer",
}
_GAP = doc.Lines((), gap=True)
_HOST_BOUND = 0.8  # chosen: nearer to 1 the GPU waits for the host between calls
_LAUNCH_NOTE = "host time to submit one call"
_TIMERS = {
    "events": "CUDA events",
    "graph": "CUDA graph replay between CUDA events",
    "cupti": "CUPTI activity records",
    "wall": "host clock",
    "synchronized": "host clock, until the GPU has finished a sample's calls",
}
_COLORS = {
    Verdict.IMPROVED: "#2e7d32",
    Verdict.REGRESSED: "#c62828",
    Verdict.SAME: "#546e7a",
    Verdict.INCONCLUSIVE: "#b26a00",
    Verdict.INVALID: "#6a1b9a",
}
"""Of badges, the worst verdict last."""
_STYLES = {
    Verdict.IMPROVED: doc.Style.good,
    Verdict.REGRESSED: doc.Style.bad,
    Verdict.SAME: doc.Style.strong,
    Verdict.INCONCLUSIVE: doc.Style.warning,
    Verdict.INVALID: doc.Style.bad,
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


def in_words(
    file: LatencyFile, *, other_processes: int = 0, claimed: Claimed | None = None
) -> LatencyFile:
    """The file with its sentences and warnings, and how to settle what it leaves open.

    `other_processes` were on the GPU; `claimed` is what a third-party file states.
    """
    options = [" ".join(settling_options(pair, file.thresholds)) for pair in file.pairs]
    return structs.replace(
        file,
        series=tuple(structs.replace(row, sentence=sentence(row, file)) for row in file.series),
        comparisons=tuple(
            structs.replace(comparison, settle=settle or None)
            for comparison, settle in zip(file.comparisons, options, strict=True)
        ),
        warnings=(*_warnings(file, other_processes), *doubts(file.series, claimed)),
    )


def latency_document(
    report: LatencyFile,
    command: Sequence[str] = (),
    *,
    explain: bool = False,
    sentences: bool = False,
) -> doc.Document:
    """How it was timed, verdicts, times, statistics.

    `command` repeats the timing, for a comparison that needs more blocks; `explain` the thresholds;
    `sentences` are for publications.
    """
    blocks: list[doc.Block] = [doc.Heading(report.title, 1), _circumstances(report)]
    for pair in report.pairs:
        verdict = pair.comparison.verdict
        result = doc.in_style(verdict.name, _STYLES[verdict])
        line = doc.styled(pair_line(pair).removesuffix(verdict.name), result)
        evidence = tuple(map(doc.quiet, _evidence(pair, report, command)))
        blocks += [doc.Heading(heading(pair)), doc.Lines((line,)), doc.Lines(evidence, indent=2)]
    lines = [variant_line(timed) for timed in report.series]
    if not report.pairs and len(report.series) > 1:
        lines.append(doc.quiet("no comparison requested: add --compare A,B"))
    blocks += [doc.Lines(tuple(lines), gap=True), *latency_tables(report)]
    if report.warnings:
        blocks += [_GAP, *map(doc.Note, report.warnings)]
    if explain:
        blocks += [_GAP, _explanation(report.thresholds)]
    if report.spans:
        spans = ", ".join(f"{name} {_short(seconds)}" for name, seconds in report.spans.items())
        blocks += [_GAP, doc.Facts("", (doc.Row("Time", f"{report.seconds:.1f} s: {spans}"),))]
    if sentences:
        published = (doc.Paragraph(timed.sentence) for timed in report.series)
        blocks += [doc.Heading("To publish"), *published]
    return doc.Document(f"Latency of {report.title}", tuple(blocks))


def badge(report: LatencyFile) -> str:
    """A small SVG with the verdicts, or the latencies where nothing was compared."""
    if pairs := report.pairs:
        worst = max((pair.comparison.verdict for pair in pairs), key=list(_COLORS).index)
        words = ", ".join(f"{pair.b.label} {change(pair.comparison)}" for pair in pairs)
        return badge_svg(worst.name, words, _COLORS[worst])
    words = "; ".join(f"{timed.label} {latency_words(timed)}" for timed in report.series)
    return badge_svg("latency", words, _COLORS[Verdict.SAME])


def variant_line(timed: Series) -> str:
    """A variant in one line: `sdpa  49.31 µs ±0.2%   174.2 TFLOP/s, 17.6% of 989.0 TFLOP/s`."""
    line = f"{literal(timed.label)}  {latency_words(timed)}"
    return f"{line}   {_flop_rate(timed.flop_rate)}" if timed.flop_rate else line


def pair_line(pair: Pair) -> str:
    """Times and verdict: `69.6 µs ±0.4% → 46.8 µs ±0.3%   1.49x faster [...] over timing blocks
    IMPROVED`."""
    times = f"{latency_words(pair.a)} → {latency_words(pair.b)}"
    factor = f"{change(pair.comparison)} over timing blocks"
    return f"{times}   {factor}  {pair.comparison.verdict.name}"


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


def sentence(timed: Series, report: LatencyFile) -> str:
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


def _warnings(file: LatencyFile, other_processes: int) -> Iterable[str]:
    """What limits the validity of all numbers."""
    for label, why in file.left_out.items():
        yield literal(f"{label} can't run here: {why}")
    if other_processes:
        others = plural(other_processes, "other process")
        yield f"{others} on the GPU: these times include their interference"


def doubts(variants: Iterable[Series], claimed: Claimed | None = None) -> tuple[str, ...]:
    """Warnings about single latencies, each once with the labels that it concerns."""
    labels = grouped(
        (doubt, timed.label)
        for timed in variants
        for doubt in (*_doubts(timed), *(_claims(timed, claimed) if claimed else ()))
    )
    return tuple(literal(f"{', '.join(names)}: {doubt}") for doubt, names in labels.items())


def heading(pair: Pair) -> str:
    """The labels of a comparison, the reference first."""
    return f"{literal(pair.a.label)} → {literal(pair.b.label)}"


def _circumstances(report: LatencyFile) -> doc.Facts:
    first = report.series[0]
    target, gpu, empty = first.latency.target, first.latency.gpu, first.latency.ready.empty
    dtype = "dtype unknown" if target.dtype is UNSET else target.dtype
    driver = f", driver {gpu.driver}" if gpu.driver else ""
    rows = {
        "Work": f"{target.words}, {dtype}" if target else "",
        "GPU": f"{gpu.name}{driver}" if gpu else "",
        "Method": method(first),
        "Timer overhead": f"{number(empty, 's')} (not subtracted)" if empty else "",
    }
    if report.pairs:
        floor = "unknown (profkit calibrate)" if report.floor is None else percent(report.floor)
        margin = margin_words(report.pairs[0].comparison.margin)
        rows["Margin"] = f"{margin}; A/A floor {floor}"
    return doc.Facts("", tuple(doc.Row(label, value) for label, value in rows.items() if value))


def margin_words(margin: Margin) -> str:
    """A margin and where it comes from: `1.0% (default)`."""
    is_default = margin.value == results.DEFAULT.margin
    source = "default" if is_default else "requested"
    if margin.source is results.Source.FLOOR:
        source = f"calibrated, {margin.source.value}"
    return f"{percent(margin.value)} ({source})"


def method(timed: Series) -> str:
    """How the samples were taken: timer, L2 state, sample size, blocks."""
    latency = timed.latency
    group = latency.ready.group or 1
    samples = plural(timed.summary.n, "sample")
    samples += f" (each the mean of {group} calls)" if group > 1 else ""
    if len(latency.blocks) > 1:
        interleaved = "interleaved " if latency.took_turns else ""
        samples += f" in {len(latency.blocks)} {interleaved}blocks"
    if not latency.timer:
        return f"unknown, {samples}"
    cache = f", {latency.cache} L2" if latency.timer != "wall" else ""
    return f"{_TIMERS[latency.timer]}{cache}, {samples}"


def latency_words(timed: Series) -> str:
    """A median and the half-width of its interval: `±` at 95% over blocks, `≈` without a level;
    the interval itself where that is wider than _NOISY."""
    median, interval = timed.summary.median, timed.interval
    if interval is None:
        return f"{number(median, 's')} (no interval)"
    half = max(interval.high - median, median - interval.low) / median
    if half > _NOISY:
        return f"{number(median, 's')} (too noisy: {seconds_between(interval.low, interval.high)})"
    return f"{number(median, 's')} {'≈' if interval.level is None else '±'}{_small(half)}"


def _small(share: float) -> str:
    """A share that may be well below 0.1%."""
    if share >= _NARROW:
        return percent(share)
    return f"{share:.2%}" if share >= _NARROW / 10 else "<0.01%"


def _interval_words(timed: Series) -> str:
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


def latency_tables(report: LatencyFile) -> tuple[doc.Table, ...]:
    """Times and rates, sample statistics, the GPU where it is known."""
    machine = [
        timed for timed in report.series if timed.latency.moments or timed.latency.ready.memory
    ]
    is_read = any(timed.clock and not timed.latency.clocks_counted for timed in machine)
    note, legend = f"?: {_READ_BEFORE}" if is_read else "", {"Launch overhead": _LAUNCH_NOTE}
    tables = _times(report.series), _table("Samples", _QUALITY, report.series, "", _QUALITY_NOTES)
    return (*tables, *([_table("GPU", _MACHINE, machine, note, legend)] if machine else []))


_Columns = Mapping[str, Callable[[Series], str]]


def _table(
    title: str, columns: _Columns, variants: Sequence[Series], note: str, legend: Mapping[str, str]
) -> doc.Table:
    """A row for each variant; the cells of its columns after its label."""
    rows = tuple((timed.label, *(cell(timed) for cell in columns.values())) for timed in variants)
    return doc.Table(
        title, ("Variant", *columns), rows, note, 1, dispensable=_LEAST_NEEDED,
        legend=tuple(legend.items()),
    )  # fmt: skip


def _times(variants: Sequence[Series]) -> doc.Table:
    percentiles = variants[0].summary.percentiles
    levels = {timed.interval.level for timed in variants if timed.interval}
    columns: dict[str, Callable[[Series], str]] = {
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
    shares = any(timed.bandwidth and timed.bandwidth.share is not None for timed in variants)
    legend = {"Min. traffic": "compulsory traffic over the median, % of DRAM peak"}
    return _table("Times", columns, variants, "; ".join(notes), legend if shares else {})


def _percentile(index: int, timed: Series) -> str:
    return _seconds(timed.summary.percentiles[index].value)


def marked_interval(timed: Series) -> str:
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


def _clock(timed: Series) -> str:
    """A `?` marks NVML readings taken before the blocks."""
    doubt = "" if timed.latency.clocks_counted or not timed.clock else "?"
    return _extremes([clock / 1e6 for clock in timed.clock or ()], "MHz") + doubt


def _memory(timed: Series) -> MemoryUse:
    return timed.latency.ready.memory or MemoryUse()


_MACHINE: _Columns = {
    "SM clock": _clock,
    "Power": lambda timed: _extremes([moment.power for moment in timed.latency.moments], "W"),
    "Temperature": lambda timed: _extremes(
        [moment.temperature for moment in timed.latency.moments], "°C"
    ),
    "Peak memory": lambda timed: _mebibytes(_memory(timed).peak_allocated),
    "Reserved": lambda timed: _mebibytes(_memory(timed).peak_reserved),
    "Launch overhead": lambda timed: _seconds(timed.latency.ready.host or None),
}


def _doubts(timed: Series) -> Iterable[str]:
    summary, latency = timed.summary, timed.latency
    if timed.without_level and timed.interval is not None:
        yield f"no confidence level stated: {timed.without_level}"
    if summary.independence.state is State.NOT_INDEPENDENT:
        causes = ", ".join(_dependence(reason, timed) for reason in summary.independence.reasons)
        effect = "within-run interval widened to correct for it"
        if summary.interval is None:
            effect = "no within-run interval"
        yield f"samples are not independent ({causes}): {effect}"
    elif timed.interval is None and summary.refused:
        yield f"no interval: {_DEPENDENCE[summary.refused]}"
    if summary.startup:
        yield f"{plural(summary.startup, 'slow sample')} at the start: raise --warmup-ms"
    if summary.mean > _UNEVEN * summary.median:
        yield (
            f"the mean, {number(summary.mean, 's')}, is {summary.mean / summary.median:.3g}x the "
            "median: a few slow samples take most of the time, and the median of another run may "
            "be theirs (other programs on this machine; threads of a call that wait for each other)"
        )
    late_submitted = sum(block.late_submitted or 0 for block in latency.blocks)
    if late_submitted and not latency.ready.waits:
        yield (
            f"{late_submitted} of {summary.n} samples submitted late (the GPU already ran them): "
            "they may include host launch gaps; --timer graph avoids these"
        )
    yield from _doubts_of_the_machine(timed)


def _doubts_of_the_machine(timed: Series) -> Iterable[str]:
    latency, median = timed.latency, timed.summary.median
    for reason, blocks in timed.throttled_blocks.items():
        yield f"NVML reports throttling in {blocks} of {len(latency.blocks)} blocks: {reason}"
    if latency.ready.steady is False:
        yield "the SM clock was not stable at the end of the warm-up: raise --warmup-ms"
    if latency.ready.waits:
        yield "a call synchronizes with the GPU: its time includes host time"
    host = latency.ready.host or 0.0
    if timed.launch_bound:
        yield (
            f"launch-bound: per call {number(host, 's')} of host launch overhead, "
            f"{number(median, 's')} of GPU time; the host limits wall time"
        )
    if latency.timer == "synchronized" and host > _HOST_BOUND * median:
        yield (
            f"host-bound: the host needs {number(host, 's')} to submit a call of "
            f"{number(median, 's')}, and the GPU may need less"
        )


def _dependence(reason: results.Reason, timed: Series) -> str:
    summary = timed.summary
    if reason is results.Reason.AUTOCORRELATED:
        return f"lag-1 autocorrelation {_decimal(summary.autocorrelation)}"
    if reason is results.Reason.DRIFTING and summary.drift:
        return f"medians of the two halves differ by {_small(abs(summary.drift.relative))}"
    return _DEPENDENCE[reason]


def _claims(timed: Series, claimed: Claimed) -> Iterable[str]:
    """Where the file itself states a median or an interval."""
    summary = timed.summary
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


def _evidence(pair: Pair, report: LatencyFile, command: Sequence[str]) -> Iterable[str]:
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
    if settle := _settling_command(pair, command):
        yield f"for a verdict: {settle}"
    elif comparison.reason == Reason.AT_MARGIN:
        yield "more blocks won't give a verdict: choose another --margin"


def classic_line(classic: results.Classic, *, contradicted: bool = False) -> str:
    """What the samples of both sides say without their blocks, as evidence beside a verdict, by
    which they may be `contradicted`."""
    standing = "enough to claim a speedup"
    if unmet := unmet_criteria(classic):
        standing = f"not enough to claim a speedup, which needs {', '.join(unmet)}"
    elif contradicted:
        standing = "enough to claim a speedup by themselves, but the verdict decides"
    overlap = {True: "disjoint", False: "overlap", None: "not available"}[classic.apart]
    return (
        f"all samples pooled: confidence intervals {overlap}, Cliff's delta {classic.delta:+.2f} "
        f"({classic.separation.value}), ratio of medians {classic.speedup:#.4g}x, "
        f"Mann-Whitney p {_probability(classic.p_value)}: {standing}"
    )


def _settling_command(pair: Pair, command: Sequence[str]) -> str:
    """The command for a verdict instead of INCONCLUSIVE; empty where none is known or needed."""
    if not command or not pair.comparison.settle:
        return ""
    words, options = list(command), pair.comparison.settle.split()
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


def _explanation(thresholds: Thresholds) -> doc.Facts:
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
    return doc.Facts("", tuple(doc.Row(label, value) for label, value in rows.items()))


def _short(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 0.95 else f"{seconds * 1e3:.0f} ms"
