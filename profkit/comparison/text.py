"""A comparison of reports in words: headlines, causes, findings, changes. No layout."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from profkit.comparison.attribution import Attribution, Cause, CauseKind
from profkit.comparison.changes import Changed, OneSided
from profkit.comparison.comparability import Aspect, collected_apart
from profkit.comparison.comparison import Diff, KernelDiff
from profkit.comparison.finding_changes import (
    RESOURCE_OF,
    WORTH,
    FindingChange,
    Seen,
    Status,
)
from profkit.comparison.line_changes import LineChange
from profkit.comparison.matching import Basis
from profkit.comparison.repeats import Change
from profkit.comparison.replacement import Replacement
from profkit.comparison.timed_change import INTERLEAVED, TimedChange
from profkit.report.catalog import catalog
from profkit.report.summary import Group
from profkit.timing.latency_view import latency_words, times_as_fast
from profkit.ui import text as numbers
from profkit.ui.text import compact, extent, literal, number, percent, plural, quantity_text

SMALL_CAUSE = 0.02
"""The share of the largest cause below which one is summed with the others. Chosen: 2% of the
largest bar is shorter than one of its twelve characters."""
_WIDE = 2.0  # high over low, above which confidence is low; chosen
# Chosen: a headline names one finding, or two, on a line of 100 columns.
_RESOLVED_SHOWN = 2
# More than half of the seconds that go the way of the change: a majority.
_MOST = 0.5
_NO_ACCESSES = "no accesses"
_ARROW = " → "
# Half of the last digit of a ratio near 1 as a percentage with one decimal.
_NO_DIFFERENCE = 5e-4
# Chosen: two names of this length, or one and its times, stay below two lines of 100 columns.
_LONGEST_NAME = 64
# Nsight Compute counts one wavefront a request as no conflict; ratios below this print as "1-way".
_LEAST_WAYS = 1.05
_RATES = {"clock", "sms_with_work"}
"""Causes that are lower or higher, not fewer or more."""
# Shares that a finding names for one kind of access are here of all kinds.
_BASES = {"shared_conflict_share": " (all kinds)"}
_EXPLAINED = {
    "selected": "issuing",
    "not_selected": "ready, another warp issued",
    "wait": "fixed latency",
}


def headline(kernel: KernelDiff) -> str:
    """A kernel in a line: name, times, ratio, what was resolved, what limits it now."""
    parts = [name(kernel), times(kernel), ratio(kernel), "; ".join(outcome(kernel))]
    return "   ".join(part for part in parts if part)


def name(kernel: KernelDiff) -> str:
    """The kernel's name, both names where it changed."""
    sides = (kernel.before, kernel.after)
    before, after = (group.short_name(_LONGEST_NAME, sides) for group in sides)
    return before if before == after else f"{before}{_ARROW}{after}"


def seconds(values: Iterable[float]) -> str:
    """Times before and after."""
    return _ARROW.join(number(value, "s") for value in values)


def times(kernel: KernelDiff) -> str:
    """What the verdict rests on: timed medians, ncu's, or cycles where the clock differs."""
    groups = (kernel.before, kernel.after)
    if kernel.timed and kernel.by_timing:
        sides = kernel.timed.before, kernel.timed.after
        return f"{seconds(side.summary.median for side in sides)} (timed)"
    if kernel.in_cycles:
        cycles = (compact(group.median * group.typical.get("sm_clock")) for group in groups)
        return f"{_ARROW.join(cycles)} cycles (ncu)"
    return f"{seconds(group.median for group in groups)} (ncu)"


def ratio(kernel: KernelDiff) -> str:
    """How many times as fast or slow: `2.31x faster`, `SAME (0.4% slower)`, `INCOMPARABLE`."""
    return _ratio(kernel) + " (forced)" * kernel.is_forced


def _ratio(kernel: KernelDiff) -> str:
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
        return "no difference"
    factor = max(speedup, 1 / speedup)
    digits = 0 if factor >= 100 else 1 if factor >= 10 else 2
    return f"{factor:,.{digits}f}x {'faster' if speedup >= 1 else 'slower'}"


def outcome(kernel: KernelDiff) -> Iterable[str]:
    """Its resolved findings and what limits it now; of one not compared, why not."""
    if kernel.change is Change.incomparable:
        yield "; ".join(map(str, kernel.obstacles))
        return
    if kernel.change is Change.same:
        return
    resolved = kernel.resolved[:_RESOLVED_SHOWN]
    new = [change for change in kernel.findings if change.has_come and change.is_reported]
    if resolved:
        yield ", ".join(finding(change) for change in resolved)
    elif kernel.attribution and (cause := _main_cause(kernel.attribution)):
        yield cause_words(cause)
    if new and kernel.change is Change.regressed:
        yield ", ".join(finding(change) for change in new[:_RESOLVED_SHOWN])
    limit, lasting = kernel.limit, [each for each in kernel.findings if each.is_lasting]
    yield from (f"{c.category} on both sides" for c in lasting if c.after and c.after.rule.first)
    if limit and limit.name not in {change.category for change in resolved}:
        word = "still" if limit.name in {each.category for each in lasting} else "now"
        if limit.busy is None:
            doubt = "" if limit.certain else " (low confidence)"
            yield f"first finding {word} {limit.name}{doubt}"
        else:
            resource = RESOURCE_OF.get(limit.name, limit.name)
            yield f"busiest resource {word} {resource} ({percent(limit.busy)} busy)"


def finding(change: FindingChange) -> str:
    """A finding and its status: `shared_bank_conflicts resolved (32-way → none)`."""
    status = f"{change.category} {change.status.value}"
    details = [seen(change.seen)] if change.seen else []
    if change.status is Status.resolved and change.after and change.after.estimate:
        details.append(
            f"{number(change.saved_after, 's')} of {number(change.saved_before, 's')} remaining"
        )
    return f"{status} ({', '.join(details)})" if details else status


def fix_saves(change: FindingChange) -> str:
    """The estimated saving of a fix per launch, before and after; "" without an estimate."""
    saved = change.saved_before, change.saved_after
    return seconds(saved) if any(saved) else ""


def seen(shift: Seen) -> str:
    """The quantity that shows it: `32-way → none`, `xu_busy 92.1% → 9.8%`."""
    if shift.name.startswith("shared_ways"):
        ways = _ARROW.join(_ways(value) for value in (shift.before, shift.after))
        kind = shift.name.removeprefix("shared_ways_")
        left = f", {percent(shift.share)} of {kind} wavefronts conflict" if shift.share > 0 else ""
        return f"{kind}s {ways}{left}"
    unit = catalog().quantities[shift.name].unit
    values = (quantity(value, unit) for value in (shift.before, shift.after))
    return f"{shift.name} {_ARROW.join(values)}"


def _ways(value: float) -> str:
    if math.isnan(value):
        return _NO_ACCESSES
    return "1-way" if value < _LEAST_WAYS else f"{value:.3g}-way"


def quantity(value: float, unit: str, name: str = "") -> str:
    """A value in its unit, short; words of units are left out."""
    if math.isnan(value):
        return "n/a"
    is_symbol = unit in {"1", "s", "B", "B/s", "Hz", "FLOP"}
    return quantity_text(name, value, unit) if is_symbol else compact(value)


def why(attribution: Attribution) -> str:
    """The change in a sentence: its largest cause, and the largest that offsets it."""
    cause = _main_cause(attribution)
    if cause is None:
        return ""
    along = sum(part.seconds for part in attribution.causes if part.seconds * cause.seconds > 0)
    word = "mostly" if cause.seconds / along > _MOST else "largest:"
    sentence = f"{word} {cause_words(cause)} ({signed(cause.seconds)})"
    against = [part for part in attribution.causes if part.seconds * attribution.change < 0]
    if against and abs(against[0].seconds) >= abs(attribution.change) / 4:
        words = f"{cause_words(against[0])} ({signed(against[0].seconds)})"
        if abs(against[0].seconds) < abs(cause.seconds):
            return f"{sentence}, partly offset by {words}"
        change = signed(attribution.change)
        return f"{sentence}, with others against {words}; total {change}"
    return sentence


def _main_cause(attribution: Attribution) -> Cause | None:
    """The largest cause of a change that goes its way; None where nothing known is."""
    along = [cause for cause in attribution.causes if cause.seconds * attribution.change > 0]
    return along[0] if along and along[0].kind is not CauseKind.rest else None


def cause_words(cause: Cause) -> str:
    """A cause with its change: `3.99x fewer instructions executed`, `higher SM clock`."""
    more = cause.after > cause.before
    if cause.kind is CauseKind.rest:
        return cause.label
    if cause.kind is CauseKind.stall:
        return f"{'more' if more else 'fewer'} {label(cause)} cycles per instruction"
    words = ("lower", "higher") if cause.key in _RATES else ("fewer", "more")
    factor = cause.after / cause.before if more else cause.before / cause.after
    return f"{factor:.2f}x {words[more]} {cause.label}"


def label(cause: Cause) -> str:
    """A cause's name: warp states by ncu's stall reason."""
    if cause.kind is not CauseKind.stall:
        return cause.label
    known = _EXPLAINED.get(cause.label)
    if known:
        return f"{cause.label} ({known})"
    return cause.label if cause.label.endswith("_stall") else f"{cause.label} stall"


def cause_values(cause: Cause) -> tuple[str, str]:
    """The factor before and after, in its unit."""
    if math.isnan(cause.before):
        return "", ""
    if cause.kind is CauseKind.stall:
        return f"{cause.before:.3g} cycles", f"{cause.after:.3g}"
    if cause.unit is None:
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
    """What a verdict rests on, and its caveats."""
    lines = []
    if kernel.timed:
        lines.append(timing(kernel.timed))
    if kernel.profiled and not kernel.by_timing:
        lines.append(_profiled(kernel))
    elif kernel.by_timing:
        medians = seconds(group.median for group in (kernel.before, kernel.after))
        ratio = kernel.before.median / kernel.after.median
        known = f", {faster(ratio)}" if math.isfinite(ratio) and ratio > 0 else ""
        lines.append(f"ncu durations: {medians}{known}")
    if kernel.in_cycles and not kernel.by_timing:
        lines.append(
            "SM cycles compared, not time: the SM clocks differ; a memory-bound kernel takes more "
            "cycles at a higher SM clock"
        )
    lines += [f"differs: {obstacle}" for obstacle in kernel.obstacles if kernel.profiled]
    if kernel.match.basis is not Basis.same:
        lines.append(f"matched: {matched(kernel)}")
    if size := equal_work(kernel):
        lines.append(size)
    return lines


def equal_work(kernel: KernelDiff) -> str:
    """Why other threads, or another name, count as the same problem size; "" where neither differs,
    and where the size itself does."""
    evidence = kernel.size
    if any(each.aspect is Aspect.problem for each in kernel.obstacles):
        return ""
    if evidence is None or (evidence.has_equal_threads and kernel.match.is_named):
        return ""
    equal = ", ".join(measure.label for measure in evidence.equal)
    threads = _ARROW.join(f"{count:,.0f}" for count in dict.fromkeys(evidence.threads))
    if not equal:
        return f"same problem size assumed: {threads} threads, no work counters on both sides"
    return f"same problem size inferred: equal {equal}; {threads} threads"


def matched(kernel: KernelDiff) -> str:
    """How a kernel was matched, with launch configurations where they differ."""
    basis = kernel.match.basis.value
    shapes = [
        f"{extent(group.grid)} / {extent(group.block)}" for group in (kernel.before, kernel.after)
    ]
    return basis if shapes[0] == shapes[1] else f"{basis}, {_ARROW.join(shapes)}"


def timed_factor(timed: TimedChange) -> str:
    """The timed speedup with its interval, or that there is none."""
    if timed.low is None or timed.high is None:
        return f"{faster(timed.speedup)}, no confidence interval"
    return times_as_fast(timed.speedup, timed.low, timed.high)


def timing(timed: TimedChange) -> str:
    """The timed verdict in a line."""
    factor = timed_factor(timed)
    if timed.design == INTERLEAVED:
        factor += " over timing blocks"
    medians = f"{latency_words(timed.before)}{_ARROW}{latency_words(timed.after)}"
    return f"timed, {timed.design_words}: {medians}   {factor}   {timed.verdict}, {timed.why}"


def variant(timed: TimedChange) -> str:
    """The variant's label, both where they differ."""
    before, after = literal(timed.before.label), literal(timed.after.label)
    return before if before == after else f"{before}{_ARROW}{after}"


def estimate_held(change: FindingChange, kernel: KernelDiff) -> str:
    """The predicted speedup of the largest resolved finding against the measured one; "" without,
    for a chain of kernels, and for smaller findings, which the same fix may have resolved."""
    estimate = change.before.estimate if change.before else None
    largest = max(kernel.resolved, key=lambda each: each.saved_before, default=None)
    if estimate is None or change is not largest or math.isnan(kernel.speedup):
        return ""
    if kernel.is_forced or (change.before and change.before.rule.spans == "chain"):
        return ""
    inside = estimate.low <= kernel.speedup <= estimate.high
    is_wide = inside and estimate.high > _WIDE * estimate.low
    held = f", {'within' if inside else 'outside'} the range"
    predicted = numbers.factor_span(estimate.low, estimate.high) if is_wide else str(estimate)
    held = "; a range this wide says little" if is_wide else held
    return f"{predicted}, measured {kernel.speedup:.2f}x{held}"


def change_words(change: Changed) -> tuple[str, str, str]:
    """A change as name, values, and how much: `-78.3%`, `+5.2 percentage points`."""
    ends = change.before, change.after
    values = _ARROW.join(quantity(value, change.unit, change.name) for value in ends)
    if change.unit == "1":
        amount = f"{(change.after - change.before) * 100:+.1f} percentage points"
    elif change.before == 0 or change.after == 0:
        amount = "to 0" if change.before else "from 0"
    else:
        factor = change.after / change.before
        larger = 1 / factor if 0 < factor <= 0.5 else factor
        times = f"{larger:,.0f}x" if larger >= 100 else f"{larger:.3g}x"
        less = f"{times} less" if larger != factor else f"{factor - 1:+.1%}"
        amount = times if factor >= 2 else less
    return f"{change.name}{_BASES.get(change.name, '')}", values, amount


def only_words(entry: OneSided) -> str:
    """A quantity that only one side has."""
    return f"{entry.name}, {entry.side} only ({quantity(entry.value, entry.unit)}): {entry.why}"


def line_words(line: LineChange) -> tuple[str, str, str]:
    """A source line: file and location, seconds before and after, text."""
    location = str(line.line_after or line.line_before)
    if line.line_before and line.line_after and line.line_before != line.line_after:
        location = f"{line.line_before}{_ARROW}{line.line_after}"
    mark = "" if line.line_after else " (removed)"
    mark = mark if line.line_before else " (added)"
    spent = _ARROW.join(number(value, "s") if value else "0" for value in (line.before, line.after))
    return f"{literal(line.file)}:{location}{mark}", spent, literal(" ".join(line.text.split()))


def summary(diff: Diff) -> str:
    """All kernels in a line: the time of those compared or replaced without warm-up launches, how
    many of each verdict, and the rest."""
    matched = plural(len(diff.kernels), "kernel") + " matched"
    if diff.replaced:
        matched += f", {len(diff.replaced)} replaced"
    times = _total_times(diff)
    counts = [_counted(diff, change) for change in Change if diff.counted(change)]
    counts += filter(None, (_unmatched(diff, "removed"), _unmatched(diff, "added")))
    for count, reason in (
        (diff.total.unmeasured, "with unmeasured launches"),
        (diff.total.incomparable, "that can't be compared"),
    ):
        if count and times:
            counts.append(f"times exclude {plural(count, 'kernel')} {reason}")
    if any(diff.total.warm_up):
        counts.append(f"times exclude warm-up ({seconds(diff.total.warm_up)})")
    return "   ".join(part for part in (matched, times, ", ".join(counts)) if part)


def _total_times(diff: Diff) -> str:
    """Times of all kernels compared or replaced, and how many times as fast they are."""
    total, replaced = diff.total, diff.replaced
    spent = (
        total.before - total.warm_up[0] + sum(each.before for each in replaced),
        total.after - total.warm_up[1] + sum(each.after for each in replaced),
    )
    if not min(spent) > 0:
        return ""
    before, after = total.launches
    is_known = not math.isnan(total.whole)
    both = "" if before == after else f"{_ARROW}{after}"
    launches = f"{plural(before, 'launch')}{both}"
    is_counted = is_known and not replaced and before != len(diff.kernels)
    basis = f"ncu, {launches}" if is_counted else "ncu"
    change = faster(total.whole) if is_known else "" if replaced else launches
    return f"{seconds(spent)} ({basis})   {change}".rstrip()


def _unmatched(diff: Diff, word: Literal["removed", "added"]) -> str:
    """The kernels that one side alone has and that no replacement explains: `1 removed (22 ms)`."""
    groups = unexplained(diff, word)
    place = 0 if word == "removed" else 1
    measured = {id(group) for group in diff.unmatched[place]}
    seconds = sum(group.total for group in groups if id(group) in measured)
    spent = f" ({number(seconds, 's')})" if seconds else ""
    return f"{len(groups)} {word}{spent}" if groups else ""


def unexplained(diff: Diff, word: Literal["removed", "added"]) -> list[Group]:
    """The removed or added kernels that are no part of a replacement."""
    explained = {id(group) for each in diff.replaced for group in getattr(each, word)}
    return [group for group in getattr(diff, word) if id(group) not in explained]


def replaced(change: Replacement) -> tuple[str, str, str, str]:
    """A replacement: what is gone, what is in its place, times, and `75.3x faster`."""
    removed, added = (" + ".join(map(_short, side)) for side in (change.removed, change.added))
    ratio = faster(change.speedup) if math.isfinite(change.speedup) else _repeats(change)
    return removed, added, f"{seconds((change.before, change.after))} (ncu)", ratio


def same_work_assumed(changes: Iterable[Replacement]) -> str:
    """Why kernels are taken for replacements, and what that leaves open."""
    evidence = "; ".join(dict.fromkeys(change.evidence.value for change in changes))
    return f"{evidence}; that they do the same work is assumed"


def _repeats(change: Replacement) -> str:
    counts = (sum(group.count for group in side) for side in (change.removed, change.added))
    return f"{_ARROW.join(map(str, counts))} launches"


def _counted(diff: Diff, change: Change) -> str:
    """How many kernels have a verdict, and how many of them by force: `3 REGRESSED (forced)`."""
    count = diff.counted(change)
    forced = sum(kernel.is_forced and kernel.change is change for kernel in diff.kernels)
    note = "" if not forced else " (forced)" if forced == count else f" ({forced} forced)"
    return f"{count} {change.value}{note}"


def gone(groups: Sequence[Group]) -> list[tuple[str, str]]:
    """Kernels that only one side has, with their time, most first."""
    ordered = sorted(groups, key=lambda group: -(group.total if group.total > 0 else 0.0))
    return [(_short(group), number(group.total, "s")) for group in ordered]


def _short(group: Group) -> str:
    return group.short_name(_LONGEST_NAME)


def went(diff: Diff) -> str:
    """The findings with an estimated speedup on removed kernels: `dram_bandwidth (leaky_relu)`;
    "" where nothing was compared, for nothing shows that their work is still done."""
    if diff.refused:
        return ""
    findings = dict.fromkeys(
        f"{item.rule.category} ({_short(item.group)})"
        for item in diff.removed_findings
        if item.group and item.estimate and item.estimate.likely >= WORTH
    )
    return ", ".join(findings)


def _profiled(kernel: KernelDiff) -> str:
    assert kernel.profiled is not None
    profiled = kernel.profiled
    before, after = profiled.repeats
    launches = f"{before} vs. {plural(after, 'launch')}"
    if before == after:
        launches = f"{plural(before, 'launch')} per side"
    assumed = f"assuming {profiled.noise:.0%} run-to-run variation"
    return f"by ncu durations ({launches}): {_between(*profiled.range)} ({assumed})"


def _between(low: float, high: float) -> str:
    """A range of speedups: `between 9.94x and 11.1x slower`."""
    ends = [numbers.measured_factor(max(end, 1 / end)) for end in (low, high)]
    if low < 1 < high:
        return f"between {ends[0]} slower and {ends[1]} faster"
    word = "faster" if low >= 1 else "slower"
    return f"between {' and '.join(ends if low >= 1 else reversed(ends))} {word}"


def collected(diff: Diff) -> str:
    """That the two reports hold different metrics; "" where they do not, or are not compared."""
    before, after = diff.sides
    apart = None if diff.refused else collected_apart(before.report, after.report)
    return f"{apart}: only what both have is compared" if apart else ""
