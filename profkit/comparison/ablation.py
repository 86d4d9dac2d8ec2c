"""One change as a row of an ablation study: hypothesis, prediction, measurement, evidence."""

import math
from collections.abc import Iterable, Iterator, Sequence

from profkit.comparison import text as words
from profkit.comparison.comparison import Diff, KernelDiff
from profkit.comparison.finding_changes import FindingChange, Status
from profkit.comparison.timed_change import TimedChange
from profkit.roofline.roofline import Point, Roofline
from profkit.timing.latency_format import Series
from profkit.timing.latency_view import classic_line, latency_words
from profkit.ui.document import Heading, Items, Table, bullets
from profkit.ui.text import measured_factor, number, percent

_ARROW = " → "
# Chosen: a cell of evidence stays readable on a printed page.
_CHANGES, _CAUSES = 5, 3
_NOTHING, _NO_ESTIMATE = "none: no finding", "none"

Rooflines = tuple[Roofline, Roofline]
_Rows = Iterable[tuple[str, Sequence[str]]]


def ablation_blocks(
    name: str, diff: Diff, rooflines: Rooflines, top: int
) -> Iterator[Heading | Items | Table]:
    """The table of a change under its name: the `top` kernels (0: all) in the order of time."""
    yield Heading(name)
    if diff.refused:
        yield bullets(map(str, diff.obstacles))
        return
    for variant in diff.variants:
        yield from _section(words.variant(variant), _rows_of_variant(variant))
    for kernel in diff.kernels[: top or None]:
        yield from _section(words.name(kernel), _rows(kernel, rooflines))


def _section(title: str, rows: _Rows) -> Iterator[Heading | Table]:
    cells = tuple((name, "\n".join(lines)) for name, lines in rows if lines)
    yield from (Heading(title, 3), Table("", ("", ""), cells))


def _rows_of_variant(variant: TimedChange) -> _Rows:
    """Of a variant of several launches: its own times; its kernels have sections of their own."""
    yield "Before", [_timed(variant.before)]
    yield "After", [_timed(variant.after)]
    yield "Measured change", [_timed_change(variant)]
    yield "Effect size", [classic_line(variant.classic)]
    yield "Verdict", [f"{variant.verdict}: {variant.why}"]


def _rows(kernel: KernelDiff, rooflines: Rooflines) -> _Rows:
    aim = _aim(kernel)
    item = aim.before if aim else None
    shown = f" ({words.seen(aim.seen)})" if aim and aim.seen else ""
    yield "Hypothesis", [f"{item.rule.category}: {item.title}{shown}" if item else _NOTHING]
    estimate = item.estimate if item else None
    yield "Predicted speedup", [str(estimate)] if estimate else [_NO_ESTIMATE]
    yield "Before", [_time(kernel, 0)]
    yield "After", [_time(kernel, 1)]
    yield "Measured change", _change(kernel)
    yield "Effect size", [classic_line(kernel.timed.classic)] if kernel.timed else []
    yield "Verdict", [_verdict(kernel)]
    yield "Profiling evidence", [*_causes(kernel), *_changes(kernel)]
    yield "Findings", [words.finding(change) for change in kernel.findings if change.is_reported]
    yield "Roofline", _roofs(kernel, rooflines)


def _aim(kernel: KernelDiff) -> FindingChange | None:
    """The finding that the change addressed: the weightiest resolved or improved, else the
    first."""
    addressed = [
        change for change in kernel.findings if change.status in {Status.resolved, Status.improved}
    ]
    earlier = [change for change in kernel.findings if change.before]
    return next(iter((*addressed, *earlier)), None)


def _time(kernel: KernelDiff, side: int) -> str:
    group = (kernel.before, kernel.after)[side]
    profiled = f"ncu duration {number(group.median, 's')}"
    if kernel.timed is None:
        return profiled
    return f"{_timed((kernel.timed.before, kernel.timed.after)[side])}; {profiled}"


def _timed(latency: Series) -> str:
    return f"{latency_words(latency)}, n = {latency.summary.n}"


def _change(kernel: KernelDiff) -> list[str]:
    timed, profiled = kernel.timed, kernel.profiled
    if timed and timed.low is not None:
        return [_timed_change(timed)]
    if profiled is None:
        return []
    between = f"between {' and '.join(map(measured_factor, profiled.range))}"
    return [f"{words.faster(profiled.speedup)} by ncu durations, {between}"]


def _timed_change(timed: TimedChange) -> str:
    return f"{words.timed_factor(timed)}, timed, {timed.design_words}"


def _verdict(kernel: KernelDiff) -> str:
    why = f": {kernel.timed.why}" if kernel.timed else ", by ncu durations"
    return f"{kernel.change.value}{why}"


def _causes(kernel: KernelDiff) -> list[str]:
    if kernel.attribution is None:
        return []
    causes, _ = words.causes(kernel.attribution)
    lines = []
    for cause in causes[:_CAUSES]:
        before, after = words.cause_values(cause)
        values = f" ({before}{_ARROW}{after})" if before else ""
        lines.append(f"{words.label(cause)}{values}: {words.signed(cause.seconds)}")
    return lines


def _changes(kernel: KernelDiff) -> list[str]:
    shown = [words.change_words(change) for change in kernel.changed if change.shown][:_CHANGES]
    return [f"{name} {values} ({how_much})" for name, values, how_much in shown]


def _roofs(kernel: KernelDiff, rooflines: Rooflines) -> list[str]:
    sides = [
        (group.typical.index, roofline)
        for group, roofline in zip((kernel.before, kernel.after), rooflines, strict=True)
    ]
    points = [_point(launch, roofline) for launch, roofline in sides]
    if any(points):
        return [_ARROW.join(map(_point_words, points))]
    shares = [
        outside.memory["dram"]
        for launch, roofline in sides
        for outside in roofline.outside
        if outside.launch == launch and outside.memory.get("dram")
    ]
    shown = _ARROW.join(map(percent, shares))
    return [] if len(shares) < len(sides) else [f"no FLOP; {shown} of the DRAM roof"]


def _point(launch: int, roofline: Roofline) -> Point | None:
    """The measured DRAM point of a launch."""
    own = (point for point in roofline.points if point.launch == launch and point.level == "dram")
    return next((point for point in own if not point.algorithmic), None)


def _point_words(point: Point | None) -> str:
    if point is None or math.isnan(point.rate):
        return "no point"
    return (
        f"{number(point.intensity, 'FLOP/B')} at {number(point.rate, 'FLOP/s')}, "
        f"{percent(point.attained)} of the attainable rate"
    )
