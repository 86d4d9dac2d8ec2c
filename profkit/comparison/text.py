"""A comparison of reports in words: headlines, causes, findings, changes. No layout."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from profkit.comparison.attribution import Attribution, Cause, CauseKind
from profkit.comparison.changes import Changed, OneSided
from profkit.comparison.comparison import Diff, KernelDiff
from profkit.comparison.finding_changes import WORTH, FindingChange, Seen, Status
from profkit.comparison.line_changes import LineChange
from profkit.comparison.matching import Basis
from profkit.comparison.repeats import Change
from profkit.comparison.timed_change import TimedChange
from profkit.report.catalog import catalog
from profkit.report.names import function_name
from profkit.report.summary import Group
from profkit.rules.checklist import Item
from profkit.rules.finding_text import gain
from profkit.timing.latency_view import latency_words, times_as_fast
from profkit.ui.text import compact, extent, literal, number, percent, plural

SMALL_CAUSE = 0.02
"""The share of the largest cause below which one is told with the others."""
_RESOLVED_TOLD = 2
_MOST = 0.5
_GONE = "none"
_ARROW = " → "
_NO_DIFFERENCE = 5e-4
_LONGEST_NAME = 64
_EXPLAINED = {
    "selected": "issuing",
    "not_selected": "ready, another warp issued",
    "wait": "fixed latency",
}


def headline(kernel: KernelDiff) -> str:
    """A kernel read aloud: name, times, ratio, what was resolved, what limits it now."""
    parts = [name(kernel), times(kernel), ratio(kernel), "; ".join(outcome(kernel))]
    return "   ".join(part for part in parts if part)


def name(kernel: KernelDiff) -> str:
    """The kernel's name, both where it changed, and how often it ran."""
    sides = (kernel.before, kernel.after)
    before, after = (function_name(group, _LONGEST_NAME, sides) for group in sides)
    return before if before == after else f"{before}{_ARROW}{after}"


def _seconds(values: Iterable[float]) -> str:
    """Times before and after."""
    return _ARROW.join(number(value, "s") for value in values)


def times(kernel: KernelDiff) -> str:
    """What the verdict rests on: timed medians, ncu's, or cycles where the clock differs."""
    groups = (kernel.before, kernel.after)
    if kernel.timed and kernel.by_timing:
        return _seconds(side.summary.median for side in (kernel.timed.before, kernel.timed.after))
    if kernel.in_cycles:
        cycles = (compact(group.median * group.typical.get("sm_clock")) for group in groups)
        return f"{_ARROW.join(cycles)} cycles"
    return _seconds(group.median for group in groups)


def ratio(kernel: KernelDiff) -> str:
    """How many times as fast or slow: `2.31x faster`, `SAME (0.4% slower)`, `INCOMPARABLE`."""
    change, speedup = kernel.change.value, kernel.speedup
    match kernel.change:
        case Change.incomparable:
            return change
        case Change.same if abs(math.log(speedup)) < _NO_DIFFERENCE:
            return f"{change} (no difference)"
        case Change.same:
            word = "faster" if speedup > 1 else "slower"
            return f"{change} ({percent(max(speedup, 1 / speedup) - 1)} {word})"
        case Change.inconclusive:
            return f"{change} ({faster(speedup)})"
    return faster(speedup)


def faster(speedup: float) -> str:
    """`2.31x faster`, or the reciprocal and `slower`."""
    if abs(math.log(speedup)) < _NO_DIFFERENCE:
        return "no faster, no slower"
    factor = max(speedup, 1 / speedup)
    digits = 0 if factor >= 100 else 1 if factor >= 10 else 2
    return f"{factor:,.{digits}f}x {'faster' if speedup >= 1 else 'slower'}"


def outcome(kernel: KernelDiff) -> Iterable[str]:
    """What became of its findings and what limits it now; of one not compared, why not."""
    if kernel.change is Change.incomparable:
        yield "; ".join(map(str, kernel.obstacles))
        return
    if kernel.change is Change.same:
        return
    resolved = kernel.resolved[:_RESOLVED_TOLD]
    new = [change for change in kernel.findings if change.status is Status.new and change.tells]
    if resolved:
        yield ", ".join(finding(change) for change in resolved)
    elif kernel.attribution and (cause := _main_cause(kernel.attribution)):
        yield cause_words(cause)
    if new and kernel.change is Change.regressed:
        yield ", ".join(finding(change) for change in new[:_RESOLVED_TOLD])
    limit = kernel.limit
    if limit and limit.name not in {change.category for change in resolved}:
        lasting = {Status.unchanged, Status.improved, Status.worsened}
        still = {change.category for change in kernel.findings if change.status in lasting}
        perhaps, word = (
            "" if limit.certain else "perhaps ",
            "still" if limit.name in still else "now",
        )
        busy = "" if limit.busy is None else f" ({percent(limit.busy)} busy)"
        yield f"{perhaps}{word} limited by {limit.name}{busy}"


def finding(change: FindingChange) -> str:
    """A finding and what became of it: `shared_bank_conflicts resolved (32-way → none)`."""
    became = f"{change.category} {change.status.value}"
    details = [seen(change.seen)] if change.seen else []
    if change.status is Status.resolved and change.after and change.after.finding.estimate:
        details.append(
            f"{number(change.saved_after, 's')} of {number(change.saved_before, 's')} left"
        )
    if change.is_at_threshold:
        details.append("at the threshold of its rule")
    return f"{became} ({', '.join(details)})" if details else became


def fix_saves(change: FindingChange) -> str:
    """The time of a launch that a fix was, and is, taken to save; "" where none was promised."""
    saved = change.saved_before, change.saved_after
    return _seconds(saved) if any(saved) else ""


def seen(shift: Seen) -> str:
    """The quantity that shows it: `32-way → none`, `xu_busy 92.1% → 9.8%`."""
    if shift.name.startswith("shared_ways"):
        return _ARROW.join(_ways(value) for value in (shift.before, shift.after))
    unit = catalog().quantities[shift.name].unit
    values = (quantity(value, unit) for value in (shift.before, shift.after))
    return f"{shift.name} {_ARROW.join(values)}"


def _ways(value: float) -> str:
    return _GONE if math.isnan(value) or value < 1.05 else f"{value:.3g}-way"


def quantity(value: float, unit: str) -> str:
    """A value in its unit, short; words of units are left out."""
    if math.isnan(value):
        return "n/a"
    return number(value, unit) if unit in {"1", "s", "B", "B/s", "Hz", "FLOP"} else compact(value)


def why(attribution: Attribution) -> str:
    """The change in a sentence: its largest cause, and what works against it."""
    cause = _main_cause(attribution)
    if cause is None:
        return ""
    along = sum(part.seconds for part in attribution.causes if part.seconds * cause.seconds > 0)
    word = "mostly" if cause.seconds / along > _MOST else "first"
    sentence = f"{word} {cause_words(cause)} ({signed(cause.seconds)})"
    against = [part for part in attribution.causes if part.seconds * attribution.change < 0]
    if against and abs(against[0].seconds) >= abs(attribution.change) / 4:
        words = f"{cause_words(against[0])} ({signed(against[0].seconds)})"
        if abs(against[0].seconds) < abs(cause.seconds):
            return f"{sentence}, partly offset by {words}"
        change = signed(attribution.change)
        return f"{sentence}, outweighed by {words}; with all other causes {change}"
    return sentence


def _main_cause(attribution: Attribution) -> Cause | None:
    """The largest cause of a change that goes its way; None where nothing known is."""
    along = [cause for cause in attribution.causes if cause.seconds * attribution.change > 0]
    return along[0] if along and along[0].kind is not CauseKind.rest else None


def cause_words(cause: Cause) -> str:
    """A cause with its change: `3.99x fewer instructions executed`, `less barrier`."""
    more = cause.after > cause.before
    if cause.kind is CauseKind.rest:
        return cause.label
    if cause.kind is CauseKind.stall:
        return f"{'more' if more else 'less'} {label(cause)} an instruction"
    words = ("lower", "higher") if cause.kind is CauseKind.clock else ("fewer", "more")
    factor = cause.after / cause.before if more else cause.before / cause.after
    return f"{factor:.2f}x {words[more]} {cause.label}"


def label(cause: Cause) -> str:
    """A cause's name: warp states by ncu's reason."""
    if cause.kind is not CauseKind.stall:
        return cause.label
    known = _EXPLAINED.get(cause.label)
    return f"{cause.label} ({known})" if known else f"{cause.label} wait"


def cause_values(cause: Cause) -> tuple[str, str]:
    """The factor before and after, in its unit."""
    if math.isnan(cause.before):
        return "", ""
    if cause.kind is CauseKind.stall:
        return f"{cause.before:.3g} cycles", f"{cause.after:.3g}"
    if cause.unit == "":
        return f"{cause.before:.4g}", f"{cause.after:.4g}"
    return quantity(cause.before, cause.unit), quantity(cause.after, cause.unit)


def signed(seconds: float) -> str:
    """A change of time with its sign: `−187.5 µs`, `+12.1 µs`."""
    sign = "−" if seconds < 0 else "+" if seconds > 0 else "±"
    return f"{sign}{number(abs(seconds), 's')}"


def causes(attribution: Attribution) -> tuple[tuple[Cause, ...], float]:
    """The causes worth a line, and the sum of the others (s)."""
    largest = max((abs(cause.seconds) for cause in attribution.causes), default=0.0)
    large = tuple(
        cause for cause in attribution.causes if abs(cause.seconds) >= SMALL_CAUSE * largest > 0
    )
    return large, attribution.change - sum(cause.seconds for cause in large)


def evidence(kernel: KernelDiff) -> list[str]:
    """What a verdict rests on, and what has to be known of it."""
    lines = []
    if kernel.timed:
        lines.append(timing(kernel.timed))
    if kernel.profiled and not kernel.by_timing:
        lines.append(_profiled(kernel))
    elif kernel.by_timing:
        medians = _seconds(group.median for group in (kernel.before, kernel.after))
        ratio = kernel.before.median / kernel.after.median
        known = f", {faster(ratio)}" if math.isfinite(ratio) and ratio > 0 else ""
        lines.append(f"under ncu {medians}{known}")
    if kernel.in_cycles and not kernel.by_timing:
        lines.append("cycles compared, not time: what memory limits needs more of them at more MHz")
    lines += [f"differs: {obstacle}" for obstacle in kernel.obstacles if kernel.profiled]
    if kernel.match.basis is not Basis.same:
        lines.append(f"matched: {matched(kernel)}")
    if size := equal_work(kernel):
        lines.append(size)
    return lines


def equal_work(kernel: KernelDiff) -> str:
    """Why other threads, or another name, are taken for the same problem; "" where nothing asks."""
    evidence = kernel.size
    if evidence is None or (evidence.has_equal_threads and kernel.match.is_named):
        return ""
    equal = ", ".join(measure.label for measure in evidence.equal)
    threads = _ARROW.join(f"{count:,.0f}" for count in dict.fromkeys(evidence.threads))
    if not equal:
        return f"no counters of work on both sides: {threads} threads taken for the same problem"
    return f"taken for the same problem by equal {equal}, at {threads} threads"


def matched(kernel: KernelDiff) -> str:
    """How a kernel was matched, with launch shapes where they differ."""
    basis = kernel.match.basis.value
    shapes = [
        f"{extent(group.grid)} × {extent(group.block)}" for group in (kernel.before, kernel.after)
    ]
    return basis if shapes[0] == shapes[1] else f"{basis}, {_ARROW.join(shapes)}"


def timing(timed: TimedChange) -> str:
    """The timed verdict in a line."""
    factor = (
        times_as_fast(timed.speedup, timed.low, timed.high)
        if timed.low is not None and timed.high is not None
        else f"{faster(timed.speedup)}, no interval"
    )
    verdict = timed.verdict
    medians = f"{latency_words(timed.before)}{_ARROW}{latency_words(timed.after)}"
    return f"timed, {timed.design}: {medians}   {factor}   {verdict}, {timed.why}"


def variant(timed: TimedChange) -> str:
    """The variant's label, both where they differ."""
    before, after = literal(timed.before.label), literal(timed.after.label)
    return before if before == after else f"{before}{_ARROW}{after}"


def estimate_held(change: FindingChange, kernel: KernelDiff) -> str:
    """What the earlier report promised for a finding against what was achieved; "" without."""
    estimate = change.before.finding.estimate if change.before else None
    if estimate is None or change.status is not Status.resolved or math.isnan(kernel.speedup):
        return ""
    inside = estimate.low <= kernel.speedup <= estimate.high
    return (
        f"{change.category}: {gain(estimate)} was promised, {kernel.speedup:.2f}x achieved, "
        f"{'inside' if inside else 'outside'} the range"
    )


def change_words(change: Changed) -> tuple[str, str, str]:
    """A change as name, values, and how much: `-78.3%`, `+5.2 points`."""
    values = _ARROW.join(quantity(value, change.unit) for value in (change.before, change.after))
    if change.unit == "1":
        amount = f"{(change.after - change.before) * 100:+.1f} points"
    elif change.before == 0 or change.after == 0:
        amount = "gone" if change.before else "new"
    else:
        factor = change.after / change.before
        larger = 1 / factor if 0 < factor <= 0.5 else factor
        times = f"{larger:,.0f}x" if larger >= 100 else f"{larger:.3g}x"
        less = f"{times} less" if larger != factor else f"{factor - 1:+.1%}"
        amount = times if factor >= 2 else less
    return change.name, values, amount


def only_words(entry: OneSided) -> str:
    """A quantity that one side alone has."""
    return f"{entry.name} only {entry.side} ({quantity(entry.value, entry.unit)}): {entry.why}"


def line_words(line: LineChange) -> tuple[str, str, str]:
    """A source line: where, seconds before and after, text."""
    where = str(line.line_after or line.line_before)
    if line.line_before and line.line_after and line.line_before != line.line_after:
        where = f"{line.line_before}{_ARROW}{line.line_after}"
    mark = (
        "" if line.line_before and line.line_after else " (gone)" if line.line_before else " (new)"
    )
    spent = _ARROW.join(number(value, "s") if value else "0" for value in (line.before, line.after))
    return f"{where}{mark}", spent, literal(" ".join(line.text.split()))


def summary(diff: Diff) -> str:
    """All kernels in a line: the time of those compared, how many of each verdict, and the rest."""
    total = diff.total
    before, after = total.launches
    times = _seconds((total.before, total.after)) if total.tells else ""
    if times:
        known = not math.isnan(total.speedup)
        launches = f"{plural(before, 'launch')}{_ARROW}{after}"
        times += f"   {faster(total.speedup) if known else launches}"
    counts = [f"{diff.counted(change)} {change.value}" for change in Change if diff.counted(change)]
    for groups, word, seconds in (
        (diff.removed, "removed", total.removed),
        (diff.added, "added", total.added),
    ):
        if groups:
            spent = f" ({number(seconds, 's')})" if seconds else ""
            counts.append(f"{len(groups)} {word}{spent}")
    for count, reason in (
        (total.unmeasured, "not measured whole"),
        (total.incomparable, "that can't be compared"),
    ):
        if count and times:
            counts.append(f"the times without {plural(count, 'kernel')} {reason}")
    parts = f"{plural(len(diff.kernels), 'kernel')} matched", times, ", ".join(counts)
    return "   ".join(part for part in parts if part)


def gone(groups: Sequence[Group]) -> list[tuple[str, str]]:
    """Kernels that one side alone has, with their time, most first."""
    ordered = sorted(groups, key=lambda group: -(group.total if group.total > 0 else 0.0))
    return [(_short(group), number(group.total, "s")) for group in ordered]


def _short(group: Group) -> str:
    return function_name(group, _LONGEST_NAME)


def went(diff: Diff) -> str:
    """The findings that promised time on kernels that are gone: `dram_bandwidth (leaky_relu)`;
    "" where nothing was compared, for nothing shows that their work is done."""
    if diff.refused:
        return ""
    findings = dict.fromkeys(
        f"{item.rule.category} ({_short(item.group)})"
        for item in diff.removed_findings
        if item.group and item.finding.estimate and item.finding.estimate.likely >= WORTH
    )
    return ", ".join(findings)


def finding_on(item: Item) -> str:
    """A finding with the kernel that it is on."""
    on = f" (on {_short(item.group)})" if item.group else ""
    return f"{item.rule.category}: {item.rule.title}{on}"


def promise_on(item: Item) -> str:
    """What a fix of a finding was to give its kernel."""
    estimate = item.finding.estimate
    if estimate is None or item.group is None:
        return ""
    return f"{gain(estimate)} for {_short(item.group)}, {number(item.group.total, 's')} of the time"


def _profiled(kernel: KernelDiff) -> str:
    assert kernel.profiled is not None
    profiled = kernel.profiled
    repeats = " and ".join(plural(count, "launch") for count in profiled.repeats)
    sides = (
        repeats
        if profiled.repeats[0] != profiled.repeats[1]
        else f"{repeats.split(' and ')[0]} each"
    )
    return (
        f"by ncu's durations, {sides}: they repeat within {profiled.noise:.0%}, "
        f"so the ratio is between {profiled.range[0]:.3g}x and {profiled.range[1]:.3g}x"
    )
