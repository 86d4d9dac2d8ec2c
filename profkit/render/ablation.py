"""One change as the row of an ablation study: hypothesis, estimate, measurement, evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from profkit.analysis.diff import Diff, KernelDiff
from profkit.analysis.finding_changes import FindingChange, Status
from profkit.analysis.roofline import Point, Roofline
from profkit.render import diff_words as words
from profkit.render.findings import gain
from profkit.render.latency import classic_line, latency_words, times_as_fast
from profkit.render.markdown import escape
from profkit.render.text import number, percent

_CHANGES = 5
_CAUSES = 3
_ARROW = " → "

Rooflines = tuple[Roofline, Roofline]


def ablation_markdown(name: str, found: Diff, rooflines: Rooflines, top: int) -> str:
    """The table of a change under its name: the `top` kernels (0: all) in the order of time."""
    lines = [f"## {escape(name)}", ""]
    if found.refused:
        return "\n".join([*lines, *(f"- {escape(str(one))}" for one in found.obstacles), ""])
    for kernel in found.kernels[: top or None]:
        lines += [f"### {escape(words.name(kernel))}", "", "| | |", "|---|---|"]
        lines += [
            f"| {title} | {'<br>'.join(escape(line) for line in told)} |"
            for title, told in _rows(kernel, rooflines)
            if told
        ]
        lines.append("")
    return "\n".join(lines)


def _rows(kernel: KernelDiff, rooflines: Rooflines) -> Iterable[tuple[str, Sequence[str]]]:
    aim = _aim(kernel)
    yield "Hypothesis", [_hypothesis(aim)] if aim and aim.before else ["none: nothing was found"]
    estimate = aim.before.finding.estimate if aim and aim.before else None
    yield "Estimate", [gain(estimate)] if estimate else ["none was promised"]
    yield "Before", [_time(kernel, 0)]
    yield "After", [_time(kernel, 1)]
    yield "Change", _change(kernel)
    yield "Effect size", [classic_line(kernel.timed.classic)] if kernel.timed else []
    yield "Verdict", [_verdict(kernel)]
    yield "Profiling evidence", [*_causes(kernel), *_changes(kernel)]
    yield "Findings", [words.finding(one) for one in kernel.findings if one.tells]
    yield "Roofline", _roofs(kernel, rooflines)


def _aim(kernel: KernelDiff) -> FindingChange | None:
    """The finding that the change addressed: the weightiest resolved or eased, else the first."""
    addressed = [one for one in kernel.findings if one.status in {Status.resolved, Status.eased}]
    there = [one for one in kernel.findings if one.before]
    return next(iter((*addressed, *there)), None)


def _hypothesis(aim: FindingChange) -> str:
    assert aim.before is not None
    rule = aim.before.rule
    shown = f" ({words.seen(aim.seen)})" if aim.seen else ""
    return f"{rule.category}: {rule.title}{shown}"


def _time(kernel: KernelDiff, side: int) -> str:
    group = (kernel.before, kernel.after)[side]
    under_ncu = f"{number(group.median, 's')} under ncu"
    if kernel.timed is None:
        return under_ncu
    timed = (kernel.timed.before, kernel.timed.after)[side]
    return f"{latency_words(timed)}, n = {timed.summary.n}; {under_ncu}"


def _change(kernel: KernelDiff) -> list[str]:
    timed, profiled = kernel.timed, kernel.profiled
    if timed and timed.low is not None and timed.high is not None:
        return [f"{times_as_fast(timed.speedup, timed.low, timed.high)}, timed {timed.how}"]
    if profiled is None:
        return []
    between = f"between {profiled.low:.3g}x and {profiled.high:.3g}x"
    return [f"{words.faster(profiled.speedup)} by ncu's durations, {between}"]


def _verdict(kernel: KernelDiff) -> str:
    why = f": {kernel.timed.why}" if kernel.timed else ", by ncu's durations"
    return f"{kernel.change.value}{why}"


def _causes(kernel: KernelDiff) -> list[str]:
    if kernel.attribution is None:
        return []
    told, _ = words.causes(kernel.attribution)
    lines = []
    for cause in told[:_CAUSES]:
        before, after = words.cause_values(cause)
        values = f" ({before}{_ARROW}{after})" if before else ""
        lines.append(f"{words.label(cause)}{values}: {words.signed(cause.seconds)}")
    return lines


def _changes(kernel: KernelDiff) -> list[str]:
    shown = [words.change_words(one) for one in kernel.changed if one.shown][:_CHANGES]
    return [f"{name} {values} ({how_much})" for name, values, how_much in shown]


def _roofs(kernel: KernelDiff, rooflines: Rooflines) -> list[str]:
    sides = zip((kernel.before, kernel.after), rooflines, strict=True)
    points = [_point(group.typical.index, found) for group, found in sides]
    told = [_point_words(point) for point in points]
    return [] if all(point is None for point in points) else [_ARROW.join(told)]


def _point(launch: int, found: Roofline) -> Point | None:
    """The measured DRAM point of a launch."""
    return next(
        (
            point
            for point in found.points
            if point.launch == launch and point.level == "dram" and not point.algorithmic
        ),
        None,
    )


def _point_words(point: Point | None) -> str:
    if point is None or math.isnan(point.rate):
        return "no point"
    return (
        f"{number(point.intensity, 'FLOP/B')} at {number(point.rate, 'FLOP/s')}, "
        f"{percent(point.attained)} of what is attainable there"
    )
