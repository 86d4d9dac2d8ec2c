"""What is known without counters: `profkit.without-counters/1` and its document."""

import math
from collections.abc import Iterator

from msgspec import field

from profkit.analysis.without_counters import Analysis
from profkit.core.grouping import grouped
from profkit.core.typed_file import Count, Model, Number, Output, Real, part, row_of
from profkit.rules.code_signs import CodeFinding, source_of
from profkit.rules.finding_text import kernel_name, measured
from profkit.rules.outlook import KernelOutlook, Whole
from profkit.ui import document as doc
from profkit.ui.names import told_apart
from profkit.ui.text import extent, factor, number, percent, plural

_NO_WORK = "not known: no declared work (Work in a target) of all of these launches"
_SIGNS = "Signs of bottlenecks; which one limits, and what a fix gives, counters would tell"
_ABSENT = "n/a"
_COUNTERS_SHOWN = 4  # chosen: they fit a line at 100 columns
_KERNELS = "Kernels by time; occupancy that the launch allows, machine instructions"
_KERNELS_SHOWN = 10  # chosen: as many as fit a screen with their findings
_COLUMNS = ("Kernel", "Time", "Share", "Grid", "Block", "Registers", "Waves", "Occupancy", "SASS")
_NAME = 30  # characters of a kernel's name, chosen: it fits a line with the title of a finding


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
    median: Number = field(name="seconds")
    share: Real
    launch: dict[str, Number]
    code: dict[str, Number] | None


class WithoutCountersFile(Output, frozen=True, kw_only=True, tag="profkit.without-counters/1"):
    """What launches, durations, machine code and declared work tell; findings have no estimate."""

    path: str
    gpu: str | None
    durations: str
    roofs: str
    timeline: str | None
    notes: tuple[str, ...] = ()
    wholes: tuple[Whole, ...]
    kernels: tuple[KernelEntry, ...]
    findings: tuple[FindingEntry, ...]


def without_counters_result(analysis: Analysis) -> WithoutCountersFile:
    """The analysis as its file."""
    made = analysis.outlook
    gpus = made.summary.gpus
    return WithoutCountersFile(
        **part(analysis, "path", "durations", "roofs", "notes"),
        gpu=gpus[0].name if gpus else None,
        timeline=analysis.timeline or None,
        wholes=made.wholes,
        kernels=tuple(map(_kernel_entry, made.kernels)),
        findings=tuple(map(_finding_entry, made.findings)),
    )


def _kernel_entry(kernel: KernelOutlook) -> KernelEntry:
    launch = {name: value for name, value in kernel.launch.items() if not math.isnan(value)}
    code = dict(kernel.code) or None
    return row_of(KernelEntry, kernel.group, launch=launch, code=code)


def _finding_entry(finding: CodeFinding) -> FindingEntry:
    rule, evidence = finding.sign.rule, finding.evidence
    return row_of(
        FindingEntry,
        finding,
        rule=rule.name,
        title=rule.title,
        kernel=finding.group.name,
        evidence=tuple(
            EvidenceEntry(quantity=each.quantity, value=each.value, source=source_of(each.quantity))
            for each in evidence
        ),
        counters=finding.sign.counters,
    )


def without_counters_document(analysis: Analysis, top: int) -> doc.Document:
    """Headroom, kernels by time, and the `top` signs of bottlenecks (0: all)."""
    made = analysis.outlook
    gpus = ", ".join(gpu.name for gpu in made.summary.gpus)
    kernels, total = plural(len(made.summary.groups), "kernel"), number(made.summary.total, "s")
    about = ", ".join(filter(None, (gpus, kernels, total)))
    title = f"{analysis.path} without counters: {about}"
    names = told_apart((kernel_name(kernel.group) for kernel in made.kernels), _NAME)
    shown = made.findings[: top or None]
    findings = (
        doc.Item(
            doc.styled(finding.sign.rule.title, "  ", doc.quiet(names[kernel_name(finding.group)])),
            tuple(_facts_of(finding)),
        )
        for finding in shown
    )
    more = len(made.findings) - len(shown)
    lines = [f"{plural(more, 'weaker sign')}: --top 0"] if more > 0 else []
    if any(not kernel.code for kernel in made.kernels):
        lines.append("code: not available for some kernels, so that only their launches are judged")
    blocks: tuple[doc.Block, ...] = (
        doc.Heading(title, 1),
        doc.Facts("", tuple(_facts(analysis))),
        *map(doc.Note, analysis.notes),
        _kernels(made.kernels),
        doc.Heading(_SIGNS if made.findings else "No signs of bottlenecks"),
        doc.Items(tuple(findings), numbered=True),
        doc.Lines(tuple(map(doc.quiet, lines))),
    )
    return doc.Document(title, blocks)


def _facts(analysis: Analysis) -> Iterator[doc.Row]:
    wholes = analysis.outlook.wholes
    for whole in wholes:
        name, point = f" {whole.name}" if whole.name else "", whole.headroom
        if point is None:
            yield doc.Row(f"Headroom{name}", _NO_WORK)
            continue
        timed = "as timed" if whole.is_timed else "of its kernels"
        cached = whole.is_timed and point.fits_l2  # ncu flushes caches before each launch
        most, but = ("about", ", but its bytes may stay in L2") if cached else ("at most", "")
        least = number(point.least, "s")
        yield doc.Row(
            f"Headroom{name}",
            f"{most} {factor(point.factor)}: the declared work takes at least {least} "
            f"({point.floor}) of {number(whole.seconds, 's')} {timed}{but}",
        )
        if not math.isnan(point.attainable):
            share = percent(point.rate / point.attainable)
            yield doc.Row(
                f"Roofline{name}",
                f"{number(point.rate, 'FLOP/s')} at {number(point.intensity, 'FLOP/B')} by "
                f"declared work, {share} of the attainable {number(point.attainable, 'FLOP/s')}",
            )
    if any(whole.headroom for whole in wholes):
        yield doc.Row("Roofs", analysis.roofs)
    yield doc.Row("Durations", analysis.durations)
    if analysis.timeline:
        yield doc.Row("Timeline", analysis.timeline)


def _kernels(kernels: tuple[KernelOutlook, ...]) -> doc.Table:
    rows = tuple(map(_row, kernels[:_KERNELS_SHOWN]))
    more = len(kernels) - len(rows)
    rest = f"{plural(more, 'more kernel')}: --format json" if more > 0 else ""
    return doc.Table(_KERNELS, _COLUMNS, rows, rest, words=1, names=("Kernel",))


def _row(kernel: KernelOutlook) -> tuple[str, ...]:
    group, launch = kernel.group, kernel.launch

    def text(quantity: str, form: str) -> str:
        value = launch.get(quantity, math.nan)
        return _ABSENT if math.isnan(value) else f"{value:{form}}"

    occupancy = launch.get("occupancy_by_launch", math.nan)
    instructions = kernel.code.get("code_instructions")
    return (
        kernel_name(group),
        number(group.median, "s"),
        percent(group.share),
        extent(group.grid),
        extent(group.block),
        text("registers_per_thread", ".0f"),
        text("waves", ".2f"),
        percent(occupancy),
        f"{instructions:,.0f}" if instructions else _ABSENT,
    )


def _facts_of(finding: CodeFinding) -> Iterator[doc.Row]:
    by_source = grouped((source_of(each.quantity), measured(each)) for each in finding.evidence)
    yield from (doc.Row(source, "; ".join(values)) for source, values in by_source.items())
    yield doc.Row("action", finding.actions[0])
    if counters := finding.sign.counters[:_COUNTERS_SHOWN]:
        yield doc.Row("counters", f"would tell {', '.join(counters)}")
