"""Rooflines as numbers: their file, `profkit.roofline/1`, and their document."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from profkit.core.grouping import grouped
from profkit.core.typed_file import Output
from profkit.core.version import __version__
from profkit.hardware.precisions import PRECISIONS
from profkit.report.names import file_name
from profkit.roofline.roofline import Outside, Point, Roofline, or_least
from profkit.roofline.roofs import LEVEL_LABELS, Peaks, Roof, split
from profkit.ui import document as doc
from profkit.ui.names import own_names, told_apart
from profkit.ui.text import literal, number, percent, seconds_between

# Chosen: six columns of numbers beside a short name fit 100 columns; Markdown has more room.
_LONGEST_NAME, _WHOLE_NAME = 22, 60
_ROOFS = {
    Peaks.held: "roofs at {} SM clock",
    Peaks.datasheet: "datasheet roofs",
    Peaks.measured: "measured ceilings",
}
_SOURCES = {
    Peaks.held: "{} {} clock",
    Peaks.datasheet: "datasheet",
    Peaks.measured: "measured ceiling",
}
# The clocks of a report's roofs that are not the SM's.
_CLOCKS = {"dram": "DRAM", "l2": "L2"}
_UNDER = "Nearest roof: the memory or compute roof of which the kernel attains the largest share"
_ATTAINED = "attained: share of the lower of compute roof and FLOP/B x bandwidth at that level"
_OUTPUTS = {"dram": "DRAM", "l2": "L2 output", "l1": "L1 output"}
_SHARES = (
    "L1 output: to registers. Shares of bandwidth roofs, not utilization: another unit of L2 or L1 "
    "may be busier"
)
_RANGE = "range"  # the name that ncu gives to a profiled range


class RooflineFile(Output, frozen=True, kw_only=True, tag="profkit.roofline/1"):
    """Kernels under their roofs. SI units, shares of 1, null where unknown. It contains nothing
    about the host."""

    profkit: str
    reports: tuple[Roofline, ...]


def rooflines_result(rooflines: Sequence[Roofline]) -> RooflineFile:
    """All rooflines in one file."""
    reports = (
        structs.replace(row, title=file_name(row.title, with_host=False)) for row in rooflines
    )
    return RooflineFile(profkit=__version__, reports=tuple(reports))


def rooflines_document(rooflines: Sequence[Roofline], *, brief: bool) -> doc.Document:
    """The numbers of each report; `brief`: with names for a terminal, and the report's path."""
    blocks: list[doc.Block] = []
    for roofline in rooflines:
        title = roofline.title if brief else file_name(roofline.title, with_host=False)
        longest = _LONGEST_NAME if brief else _WHOLE_NAME
        flags = (
            f"× {point.name}, {level}: {flag}"
            for point in roofline.points
            for level in ["algorithmic" if point.algorithmic else LEVEL_LABELS[point.level]]
            for flag in point.flags
        )
        blocks += [doc.Lines((), gap=True)] if blocks else []
        blocks += [doc.Heading(title, 1), doc.Paragraph(about(roofline))]
        blocks += map(doc.Note, roofline.notes)
        blocks += tables(roofline, longest)
        blocks.append(doc.Lines(tuple(doc.in_style(flag, doc.Style.bad) for flag in flags)))
    return doc.Document("Roofline", tuple(blocks))


def about(roofline: Roofline) -> str:
    """The GPU and the source of its roofs: `NVIDIA H200; roofs at measured SM clock, 1.980 GHz`."""
    sources = dict.fromkeys(roof.source for roof in roofline.roofs)
    clock = f", {number(roofline.sm_clock, 'Hz')}" if Peaks.held in sources else ""
    which = "nominal" if "SM" in roofline.nominal else "measured"
    words = ", ".join(
        f"{_ROOFS[source].format(which)}{clock * (source is Peaks.held)}" for source in sources
    )
    return f"{roofline.gpu}; {words or 'roofs unknown'}"


def tables(roofline: Roofline, longest: int) -> Iterable[doc.Table]:
    """Roofs, kernels and levels, with names of at most `longest` characters."""
    if roofline.roofs:
        yield _roofs(roofline.roofs, roofline.nominal)
    if kernels := subjects(roofline.points, longest):
        yield _kernels(roofline, kernels)
        yield _levels(roofline, kernels)
    if roofline.outside:
        yield _outside(roofline.outside, longest)


def _roofs(roofs: Sequence[Roof], nominal: Sequence[str]) -> doc.Table:
    """Roofs of memory and of arithmetic, the latter with the ridge of each level."""
    memory, _ = split(roofs)
    rows = []
    for roof in roofs:
        ridges = ["" if roof.is_memory else _bare(roof.rate / line.rate) for line in memory]
        unit = "B/s" if roof.is_memory else rate_unit(roof.key)
        unverified = (
            ", by compute capability" if roof.by_units else "" if roof.verified else ", unverified"
        )
        clock = _CLOCKS.get(roof.key, "SM")
        which = "nominal" if clock in nominal else "measured"
        source = f"{_SOURCES[roof.source].format(which, clock)}{unverified}"
        rows.append((_OUTPUTS.get(roof.key, roof.label), number(roof.rate, unit), source, *ridges))
    columns = ("Roof", "Rate", "Source", *(f"Ridge {line.label}" for line in memory))
    has_ridges = len(memory) < len(roofs)
    if not has_ridges:
        columns, rows = columns[:3], [row[:3] for row in rows]
    note = "Ridge: ridge point in FLOP/B" * has_ridges
    return doc.Table("Roofs", columns, tuple(rows), note, dispensable=("Source",))


def _bare(intensity: float) -> str:
    return number(intensity, "FLOP/B").removesuffix(" FLOP/B")


def rate_unit(key: str) -> str:
    """The unit of a rate: op/s of integers, FLOP/s of all else."""
    return "op/s" if key.endswith("int8") else "FLOP/s"


class Subject(Struct, frozen=True):
    """The points of one kernel and precision, by level, and that of its algorithmic intensity."""

    text: str
    points: tuple[Point, ...]
    algorithmic: Point | None

    @property
    def main(self) -> Point:
        return self.points[0]

    @property
    def all(self) -> tuple[Point, ...]:
        """The points, that of the algorithmic intensity last."""
        return self.points if self.algorithmic is None else (*self.points, self.algorithmic)


def subjects(points: Sequence[Point], longest: int) -> list[Subject]:
    """Points by kernel, launch and precision, each with a short name unlike the others."""
    groups = grouped(((point.name, point.launch, point.precision), point) for point in points)
    short = short_names((name for name, _, _ in groups), longest)
    launches = Counter(name for name, _ in {(name, launch) for name, launch, _ in groups})
    precisions = Counter((name, launch) for name, launch, _ in groups)
    rows = []
    for (name, launch, precision), group in groups.items():
        text = short[name] + (f" #{launch}" if launches[name] > 1 else "")
        if precisions[name, launch] > 1:
            text += f", {PRECISIONS[precision]}"
        measured = tuple(point for point in group if not point.algorithmic)
        if measured:
            algorithmic = next((point for point in group if point.algorithmic), None)
            rows.append(Subject(text, measured, algorithmic))
    return rows


def _kernels(roofline: Roofline, kernels: Sequence[Subject]) -> doc.Table:
    def share_of(share: float, key: str | None) -> str:
        """`17.9% of DRAM`."""
        roof = roofline.roof(key)
        label = _OUTPUTS.get(roof.key, roof.label) if roof else "unknown"
        return f"{percent(share)} of {label}"

    rows = []
    for kernel in kernels:
        point = kernel.main
        tightest = max(kernel.points, key=lambda point: or_least(point.attained))
        nearest = "same roof"
        if tightest.bound_by != point.roof:
            nearest = share_of(tightest.attained, tightest.bound_by)
        nearest += " ×" if any(point.flags for point in kernel.points) else ""
        rate = number(point.rate, rate_unit(point.precision))
        own = share_of(point.of_roof, point.roof)
        rows.append((kernel.text, time_words(point), rate, own, nearest))
    columns = ("Kernel", "Time", "Rate", "Share of its roof", "Share of nearest roof")
    return doc.Table("Kernels", columns, tuple(rows), _UNDER)


def _levels(roofline: Roofline, kernels: Sequence[Subject]) -> doc.Table:
    """Intensity at each level and the attained share; the algorithmic intensity of declared
    work."""
    levels = list(dict.fromkeys(point.level for kernel in kernels for point in kernel.points))
    has_algorithmic = any(kernel.algorithmic for kernel in kernels)
    rows = []
    for kernel in kernels:
        cells = [kernel.text]
        by_level = {point.level: point for point in kernel.points}
        for level in levels:
            point = by_level.get(level)
            flag = " ×" if point and point.flags else ""
            attained = percent(point.attained) + flag if point and roofline.roof(level) else ""
            cells += [_bare(point.intensity), attained] if point else ["", ""]
        if has_algorithmic:
            point = kernel.algorithmic
            cells.append(_bare(point.intensity) + (" ×" if point.flags else "") if point else "")
        rows.append(tuple(cells))
    heads = [head for level in levels for head in (LEVEL_LABELS[level], "attained")]
    columns = ("FLOP/B at", *heads, *(["algorithmic"] if has_algorithmic else []))
    notes = [_ATTAINED]
    is_held = any(roof.source is Peaks.held for roof in roofline.roofs)
    if is_held and not all(kernel.main.timed for kernel in kernels):
        notes.append("for ncu durations, of the roofs at the launch's own clock")
    if missing := [LEVEL_LABELS[level] for level in levels if not roofline.roof(level)]:
        notes.append(f"no roof of {', '.join(missing)} is known")
    intensities = [{point.level: point.intensity for point in kernel.points} for kernel in kernels]
    # More from L2 than L1 gives to registers, as with TMA.
    if any(each.get("l1", 0.0) > each.get("l2", math.inf) for each in intensities):
        notes.append(
            "L1: to registers by ncu's count, without TMA copies, ldmatrix and wgmma operands"
        )
    if has_algorithmic:
        notes.append("algorithmic: from declared work")
    return doc.Table(
        "Arithmetic intensity", columns, tuple(rows), "; ".join(notes), names=columns[:1]
    )


def _outside(outside: Sequence[Outside], longest: int) -> doc.Table:
    names = short_names((kernel.name for kernel in outside), longest)
    counts = Counter(kernel.name for kernel in outside)
    levels = list(dict.fromkeys(level for kernel in outside for level in kernel.memory))
    rows = tuple(
        (
            names[kernel.name] + (f" #{kernel.launch}" if counts[kernel.name] > 1 else ""),
            *(percent(kernel.memory[level]) for level in levels),
            number(kernel.seconds, "s"),
            kernel.why,
        )
        for kernel in outside
    )
    columns = ("Kernel or variant", *(_OUTPUTS[level] for level in levels), "Time", "Reason")
    note = _SHARES if {"l1", "l2"}.intersection(levels) else ""
    return doc.Table("Kernels not on the roofline", columns, rows, note)


def short_names(names: Iterable[str], width: int) -> dict[str, str]:
    """A short text for each kernel's name, no two alike."""
    texts = {name: literal(text) for name, text in own_names(dict.fromkeys(names)).items()}
    short = told_apart(texts.values(), width)
    return {name: short[text] for name, text in texts.items()}


def time_words(point: Point) -> str:
    """The time of a point: `49.76 µs [49.65, 49.90]` where timed, else `47.04 µs (ncu)`."""
    shown = number(point.seconds, "s")
    if not point.timed:
        return f"{shown} ({'profiled range' if point.name == _RANGE else 'ncu'})"
    if math.isnan(point.low):
        return f"{shown} timed"
    interval = seconds_between(*point.interval)
    ends, _, unit = interval.rpartition(" ")
    return f"{shown} {ends}" if shown.endswith(f" {unit}") else f"{shown} {interval}"
