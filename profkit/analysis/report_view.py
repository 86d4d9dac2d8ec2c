"""A report as a document: its overview on a screen, its kernels in detail, a notebook's cells."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import structs

from profkit.analysis.run_files import TIMELINE
from profkit.report import overview, panels
from profkit.report.names import file_name
from profkit.report.summary import Group, LaunchSummary, ReportSummary
from profkit.rules import checklist_view
from profkit.rules import finding_text as words
from profkit.rules.checklist import WORTH_ACTING, Checklist
from profkit.ui import document as doc
from profkit.ui.html import document_cell
from profkit.ui.names import told_apart
from profkit.ui.text import percent, plural

_DISPENSABLE = ("Spread", "Median", "Count", "Headroom", "Grid / block")
# chosen: with them, the overview fits a screen of 45 lines; the others are counted
_KERNELS_SHOWN = 5
_WARNINGS_SHOWN = 1  # chosen: a line or two
_HEADING_NAME, _NAME_LINES = 90, 3  # chosen: one line, and template kernels in up to three
_CELL_WIDTH = 100  # columns of lines in a notebook's cell, chosen as for a terminal
_RULES = "Results of ncu's own rules"
_RULES_NOTE = "local: of a unit's efficiency, not of time"


def overview_document(
    report: ReportSummary,
    path: str,
    checklist: Checklist,
    width: int,
    sorted_by: str = "",
    beside: Sequence[Path] = (),
    nvtx: str | None = None,
) -> doc.Document:
    """One screen: the recording, the first kernels and findings, and the next commands.

    `path` is the argument of the next commands, which repeat the selection by an `nvtx` range;
    `beside` are the other files of the report's run.
    """
    recorded = overview.recording(report, with_host=True).rows
    groups = report.groups
    rest = groups[_KERNELS_SHOWN:]
    share = percent(sum(group.share for group in rest))
    left = f"{plural(len(rest), 'more row')}, {share} of the GPU time" if rest else ""
    blocks = (
        doc.Heading(report.path, 1),
        doc.Paragraph(overview.headline(report)),
        doc.Facts("", tuple(row for row in recorded if row.label in {"GPU", "Clocks"})),
        *map(doc.Note, report.notes),
        *_kernels(groups[:_KERNELS_SHOWN], checklist, sorted_by, left),
        *checklist_view.overview_blocks(report, checklist, width),
        *map(doc.Note, _warnings(groups)),
        _next_commands(path, beside, nvtx),
    )
    return doc.Document(report.path, blocks)


def _warnings(groups: Sequence[Group]) -> Iterator[str]:
    """The first warning, notes on the kernels with much of the time, each text once
    (`#1, #3 data fits in L2 ...`), and how many warnings are left."""
    warnings = [
        (f"#{number} {warning}", group.share >= WORTH_ACTING)
        for number, group in enumerate(groups, start=1)
        for warning in group.typical.warnings
    ]
    shown = [warning for warning, matters in warnings if matters][:_WARNINGS_SHOWN]
    yield from shown
    kernels: dict[str, list[str]] = {}
    for number, group in enumerate(groups, start=1):
        for text in group.typical.notes if group.share >= WORTH_ACTING else ():
            kernels.setdefault(text, []).append(f"#{number}")
    yield from (f"{', '.join(numbers)} {text}" for text, numbers in kernels.items())
    if more := len(warnings) - len(shown):
        label = "more warning" if shown else "warning"
        yield f"{plural(more, label)} about counters: --top 0 lists all"


def _next_commands(path: str, beside: Sequence[Path], nvtx: str | None) -> doc.Next:
    name = shlex.quote(path)
    selected = f"{name} --nvtx {shlex.quote(nvtx)}" if nvtx else name
    commands = {
        f"profkit checklist {selected}": "all actions",
        f"profkit analyze {selected} --top 3": "kernel details",
        f"profkit analyze {selected} --kernel REGEX": "",
        f"profkit source {name} --kernel REGEX": "source lines",
    }
    timelines = [shlex.quote(str(file)) for file in beside if file.name == TIMELINE]
    commands |= {f"profkit analyze {file}": "timeline" for file in timelines}
    return doc.Next(tuple(commands), tuple(commands.values()))


def report_document(
    report: ReportSummary,
    shown: Sequence[Group],
    checklist: Checklist,
    sorted_by: str = "",
    beside: Sequence[Path] = (),
    *,
    complete: bool = False,
    with_host: bool = True,
) -> doc.Document:
    """Recording, kernels, findings, then each shown kernel's typical launch in detail.

    `beside` are the other files of the report's run. A `complete` one has the whole checklist.
    """
    name = file_name(report.path, with_host=with_host)
    recorded = list(overview.recording(report, with_host=with_host).rows)
    if beside:
        names = (
            f"{file.name} (profkit analyze shows it)" if file.name == TIMELINE else file.name
            for file in beside
        )
        recorded.append(doc.Row("Also in this run", ", ".join(names)))
    blocks: list[doc.Block] = [
        doc.Heading(doc.code(name), 1),
        doc.Paragraph(overview.headline(report)),
        doc.Facts("", tuple(recorded)),
        *map(doc.Note, report.notes),
        *_kernels(report.groups, checklist, sorted_by),
    ]
    blocks.append(doc.Heading(words.HEADING))
    blocks += checklist_view.checklist_blocks(
        report, checklist, whole=complete, complete=complete, brief=not complete
    )
    for rank, group in enumerate(shown, start=1):
        blocks += _detail(rank, group)
    gaps = overview.all_gaps((group.typical for group in shown), report.session)
    if left := len(report.groups) - len(shown):
        more = f"{left:,} more of the {plural(len(report.groups), 'row')} above"
        gaps.append(f"{more}: --top 0 lists all, --kernel REGEX selects")
    blocks += [doc.Lines((doc.quiet(text),), gap=True) for text in gaps]
    return doc.Document(name, tuple(blocks))


def _kernels(
    groups: Sequence[Group], checklist: Checklist, sorted_by: str, note: str = ""
) -> tuple[doc.Block, ...]:
    """The kernels by time, and why some lack what they are sorted by."""
    table = overview.kernels_table(groups, sorted_by, words.kernel_columns(checklist))
    legend = list(table.legend)
    if "Headroom" in table.columns:
        cells = (row[table.columns.index("Headroom")] for row in table.rows)
        legend.append(("Headroom", words.headroom_legend(cells).partition(": ")[2]))
    table = structs.replace(table, note=note, legend=tuple(legend), dispensable=_DISPENSABLE)
    reasons = tuple(map(doc.quiet, overview.why_unknown(groups, sorted_by)))
    return (table, doc.Lines(reasons)) if reasons else (table,)


def _detail(rank: int, group: Group) -> Iterator[doc.Block]:
    launch = group.typical
    short = told_apart([group.name], _HEADING_NAME)[group.name]
    yield doc.Heading(doc.styled(f"{rank}. ", doc.code(short)))
    if short not in {group.name, group.name.removeprefix("void ")}:
        yield doc.Facts("", (doc.Row("name", group.name, most=_NAME_LINES),))
    yield doc.Paragraph(overview.about(group))
    yield from map(doc.Note, (*launch.warnings, *launch.notes))
    if launch.failed:
        return
    yield from panels.panels(launch)
    yield from panels.grids(launch)
    rules = tuple(
        doc.Row(row.label, ": ".join(filter(None, (row.value, row.note))))
        for row in overview.rule_rows(launch)
    )
    if rules:
        yield doc.Heading(_RULES, 3, _RULES_NOTE)
        yield doc.Facts("", rows=rules)


def report_cell(report: ReportSummary, checklist: Checklist) -> str:
    """The overview for a notebook, without the folder of the report."""
    name = file_name(report.path, with_host=False)
    document = overview_document(structs.replace(report, path=name), name, checklist, _CELL_WIDTH)
    return document_cell(document.blocks)


def kernel_cell(launch: LaunchSummary) -> str:
    """A launch's utilization, stalls, occupancy, arithmetic and memory traffic, for a notebook."""
    head = doc.Lines((doc.strong(launch.name), panels.title(launch)))
    shown = (panels.busy_panel(launch), panels.stalls_panel(launch), panels.occupancy_panel(launch))
    return document_cell([head, *shown, *panels.grids(launch)])
