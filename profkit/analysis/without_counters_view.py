"""What is known without counters: terminal, Markdown and `profkit.without-counters/1` JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import Group as Parts
from rich.console import RenderableType
from rich.text import Text

from profkit.analysis.without_counters import Analysis
from profkit.core.typed_file import Count, File, Model, Number, Real, encode
from profkit.report.summary import Group
from profkit.rules.code_signs import CodeFinding, source_of
from profkit.rules.declared_headroom import DeclaredHeadroom
from profkit.rules.finding_text import kernel_name, measured
from profkit.rules.outlook import KernelOutlook, Whole
from profkit.ui.markdown import code, escape
from profkit.ui.markdown import table_of as markdown_table
from profkit.ui.names import told_apart
from profkit.ui.terminal import facts, note, rows_of, table_of
from profkit.ui.text import extent, factor, literal, number, percent, plural
from profkit.ui.view import Grid, Panel, Row

_NO_WORK = "not known: no declared work (Work in a target) of all of these launches"
_SIGNS = "Signs of bottlenecks; which one limits, and what a fix gives, counters would tell"
_ABSENT = "n/a"
_COUNTERS_SHOWN = 4  # chosen: they fit a line at 100 columns
_KERNELS = "Kernels by time; occupancy that the launch allows, machine instructions"
_KERNELS_SHOWN = 10  # chosen: as many as fit a screen with their findings
_COLUMNS = ("Kernel", "Time", "Share", "Grid", "Block", "Registers", "Waves", "Occupancy", "SASS")
_NAME = 30  # characters of a kernel's name, chosen: the table then fits 100 columns


class EvidenceEntry(Model, frozen=True, kw_only=True):
    """A quantity that a finding rests on, and where it is from."""

    quantity: str
    value: Number
    source: str


class FindingEntry(Model, frozen=True, kw_only=True):
    """A bottleneck that shows, by `rule`; `counters` are quantities that would decide and size
    it."""

    rule: str
    category: str
    title: str
    kernel: str
    sources: tuple[str, ...]
    evidence: tuple[EvidenceEntry, ...]
    counters: tuple[str, ...]
    actions: tuple[str, ...]


class KernelEntry(Model, frozen=True, kw_only=True):
    """Launches of a kernel; `launch` and `code` are quantities, the latter null where the code is
    not available. Seconds are medians of its launches."""

    name: str
    grid: tuple[Count, ...]
    block: tuple[Count, ...]
    count: Count
    seconds: Number
    share: Real
    launch: dict[str, Number]
    code: dict[str, Number] | None


class HeadroomEntry(Model, frozen=True, kw_only=True):
    """At most `factor` times as fast: `least` seconds at `floor` by declared work; the point of the
    roofline that it is, null without FLOP or bytes."""

    factor: Number
    least: Number
    floor: str
    dram_share: Real
    intensity: Real
    rate: Real
    attainable: Real


class WholeEntry(Model, frozen=True, kw_only=True):
    """A variant, or "" for all launches: seconds of a call if `timed`, else of its kernels."""

    name: str
    seconds: Number
    timed: bool
    launches: Count
    headroom: HeadroomEntry | None


class WithoutCountersFile(File, frozen=True, kw_only=True, tag="profkit.without-counters/1"):
    """What launches, durations, machine code and declared work tell; findings have no estimate."""

    path: str
    gpu: str | None
    durations: str
    roofs: str
    timeline: str | None
    notes: tuple[str, ...] = ()
    wholes: tuple[WholeEntry, ...]
    kernels: tuple[KernelEntry, ...]
    findings: tuple[FindingEntry, ...]


def without_counters_json(analysis: Analysis) -> str:
    """The analysis as a file."""
    made = analysis.outlook
    gpus = made.summary.gpus
    return encode(
        WithoutCountersFile(
            path=analysis.path,
            gpu=gpus[0].name if gpus else None,
            durations=analysis.durations,
            roofs=analysis.roofs,
            timeline=analysis.timeline or None,
            notes=analysis.notes,
            wholes=tuple(map(_whole_entry, made.wholes)),
            kernels=tuple(map(_kernel_entry, made.kernels)),
            findings=tuple(map(_finding_entry, made.findings)),
        )
    )


def _whole_entry(whole: Whole) -> WholeEntry:
    point = whole.headroom
    return WholeEntry(
        name=whole.name,
        seconds=whole.seconds,
        timed=whole.is_timed,
        launches=whole.launches,
        headroom=HeadroomEntry(**vars(point)) if point else None,
    )


def _kernel_entry(kernel: KernelOutlook) -> KernelEntry:
    group = kernel.group
    return KernelEntry(
        name=group.name,
        grid=group.grid,
        block=group.block,
        count=group.count,
        seconds=group.median,
        share=group.share,
        launch={name: value for name, value in kernel.launch.items() if not math.isnan(value)},
        code=dict(kernel.code) or None,
    )


def _finding_entry(finding: CodeFinding) -> FindingEntry:
    return FindingEntry(
        rule=finding.sign.rule.name,
        category=finding.category,
        title=finding.sign.rule.title,
        kernel=finding.group.name,
        sources=finding.sources,
        evidence=tuple(
            EvidenceEntry(quantity=each.quantity, value=each.value, source=source_of(each.quantity))
            for each in finding.evidence
        ),
        counters=finding.sign.counters,
        actions=finding.actions,
    )


def without_counters_view(analysis: Analysis, top: int) -> RenderableType:
    """The analysis for a terminal; `top` findings, 0: all."""
    parts: list[RenderableType] = [
        Text(_title(analysis), "bold"),
        facts(Panel("", tuple(_facts(analysis)))),
        *map(note, analysis.notes),
        table_of(_kernels(analysis), numbers=True),
    ]
    names = _names(analysis)
    shown = analysis.outlook.findings[: top or None]
    parts += [Text(), Text(_heading(analysis), "bold")]
    for rank, finding in enumerate(shown, 1):
        kernel = names[kernel_name(finding.group)]
        parts.append(Text.assemble(f" {rank}  {finding.sign.rule.title}", (f"  {kernel}", "dim")))
        parts.append(rows_of(list(_finding(finding)), 4))
    parts += [Text(line, "dim") for line in _closing(analysis, len(shown))]
    return Parts(*parts)


def without_counters_markdown(analysis: Analysis, top: int) -> str:
    """The analysis as Markdown."""
    lines = [f"# {escape(_title(analysis))}", ""]
    lines += [f"- {escape(row.label)}: {escape(row.value)}" for row in _facts(analysis)]
    lines += [f"\n> {escape(each)}" for each in analysis.notes]
    lines += ["", *markdown_table(_kernels(analysis)), "", f"## {escape(_heading(analysis))}", ""]
    shown = analysis.outlook.findings[: top or None]
    for rank, finding in enumerate(shown, 1):
        rule = finding.sign.rule
        lines.append(f"{rank}. **{escape(rule.title)}**: {code(kernel_name(finding.group))}")
        lines += [f"   - {label}: {escape(text)}" for label, text in _finding(finding)]
    lines += ["", *(escape(line) for line in _closing(analysis, len(shown)))]
    return "\n".join(lines).rstrip() + "\n"


def _title(analysis: Analysis) -> str:
    summary = analysis.outlook.summary
    gpu = ", ".join(gpu.name for gpu in summary.gpus)
    kernels = plural(len(summary.groups), "kernel")
    total = number(summary.total, "s")
    about = ", ".join(filter(None, (gpu, kernels, total)))
    return literal(f"{analysis.path} without counters: {about}")


def _facts(analysis: Analysis) -> Iterator[Row]:
    for whole in analysis.outlook.wholes:
        name = f" {literal(whole.name)}" if whole.name else ""
        if whole.headroom is None:
            yield Row(f"Headroom{name}", _NO_WORK)
            continue
        yield Row(f"Headroom{name}", _headroom(whole, whole.headroom))
        if not math.isnan(whole.headroom.attainable):
            yield Row(f"Roofline{name}", _point(whole.headroom))
    if any(whole.headroom for whole in analysis.outlook.wholes):
        yield Row("Roofs", analysis.roofs)
    yield Row("Durations", analysis.durations)
    if analysis.timeline:
        yield Row("Timeline", analysis.timeline)


def _headroom(whole: Whole, point: DeclaredHeadroom) -> str:
    timed = "as timed" if whole.is_timed else "of its kernels"
    return (
        f"at most {factor(point.factor)}: the declared work takes at least "
        f"{number(point.least, 's')} ({point.floor}) of {number(whole.seconds, 's')} {timed}"
    )


def _point(point: DeclaredHeadroom) -> str:
    share = percent(point.rate / point.attainable)
    return (
        f"{number(point.rate, 'FLOP/s')} at {number(point.intensity, 'FLOP/B')} by declared work, "
        f"{share} of the attainable {number(point.attainable, 'FLOP/s')}"
    )


def _kernels(analysis: Analysis) -> Grid:
    kernels = analysis.outlook.kernels
    names = _names(analysis)
    rows = tuple(
        _row(kernel, names[kernel_name(kernel.group)]) for kernel in kernels[:_KERNELS_SHOWN]
    )
    more = len(kernels) - len(rows)
    rest = f"{plural(more, 'more kernel')}: --format json" if more > 0 else ""
    return Grid(_KERNELS, _COLUMNS, rows, rest)


def _row(kernel: KernelOutlook, name: str) -> tuple[str, ...]:
    group, launch = kernel.group, kernel.launch

    def text(quantity: str, form: str) -> str:
        value = launch.get(quantity, math.nan)
        if math.isnan(value):
            return _ABSENT
        return percent(value) if form == "share" else f"{value:{form}}"

    instructions = kernel.code.get("code_instructions")
    return (
        name,
        number(group.median, "s"),
        percent(group.share),
        extent(group.grid),
        extent(group.block),
        text("registers_per_thread", ".0f"),
        text("waves", ".2f"),
        text("occupancy_by_launch", "share"),
        f"{instructions:,.0f}" if instructions else _ABSENT,
    )


def _heading(analysis: Analysis) -> str:
    return _SIGNS if analysis.outlook.findings else "No signs of bottlenecks"


def _finding(finding: CodeFinding) -> Iterator[tuple[str, str]]:
    by_source: dict[str, list[str]] = {}
    for each in finding.evidence:
        by_source.setdefault(source_of(each.quantity), []).append(measured(each))
    for source, values in by_source.items():
        yield source, "; ".join(values)
    yield "action", finding.actions[0]
    if counters := finding.sign.counters[:_COUNTERS_SHOWN]:
        yield "counters", f"would tell {', '.join(counters)}"


def _closing(analysis: Analysis, shown: int) -> Sequence[str]:
    more = len(analysis.outlook.findings) - shown
    lines = [f"{plural(more, 'weaker sign')}: --top 0"] if more > 0 else []
    if any(not kernel.code for kernel in analysis.outlook.kernels):
        lines.append("code: not available for some kernels, so that only their launches are judged")
    return lines


def _names(analysis: Analysis) -> dict[str, str]:
    groups: Iterator[Group] = (kernel.group for kernel in analysis.outlook.kernels)
    return dict(told_apart(map(kernel_name, groups), _NAME))
