"""Reports and the catalogue as Markdown: made to be shared, so without the host unless asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from profkit.report import overview, panels
from profkit.report.catalog import NEWEST, OLDEST, Catalog, Quantity, Range, Recorded
from profkit.report.names import file_name
from profkit.report.summary import Group, ReportSummary
from profkit.rules import finding_text as words
from profkit.rules.checklist import Checklist, Item
from profkit.ui.text import literal
from profkit.ui.view import Grid, Panel


def report_markdown(
    report: ReportSummary,
    groups: Sequence[Group],
    found: Checklist,
    top: int,
    *,
    with_host: bool,
) -> str:
    """A report: recording, kernels by time, findings, then `top` kernels (0: all) in detail."""
    name = file_name(report.path, with_host=with_host)
    lines = [f"# {code(name)}", "", overview.headline(report)]
    recording = overview.recording(report, with_host=with_host)
    lines += ["", *_table(("", ""), [(row.label, _cell(row.value)) for row in recording.rows])]
    lines += [f"\n> {escape(note)}" for note in report.notes]
    grid = overview.groups_grid(groups)
    rows = [(row[0], code(row[1], in_table=True), *map(_cell, row[2:])) for row in grid.rows]
    lines += ["", f"## {grid.title}", "", *_table(grid.columns, rows)]
    lines += ["", f"## {words.HEADING}", "", *_items(report, found, 0, name)]
    for rank, group in enumerate(groups[: top or None], start=1):
        lines += ["", *_detail(rank, group)]
    shown = [group.typical for group in groups[: top or None]]
    for gap in overview.all_gaps(shown, report.session):
        lines += ["", escape(gap)]
    return "\n".join(lines) + "\n"


def checklist_markdown(report: ReportSummary, found: Checklist, top: int) -> str:
    """The `top` items (0: all) of a report's checklist as boxes to tick."""
    name = file_name(report.path, with_host=False)
    lines = [f"# Checklist for {code(name)}", "", overview.headline(report), ""]
    return "\n".join([*lines, *_items(report, found, top, name)]) + "\n"


def _items(report: ReportSummary, found: Checklist, top: int, name: str) -> list[str]:
    """Boxes to tick, then roofs, proofs and what could not be told."""
    lines = []
    if found.headline:
        proof = found.headline
        told = f"{escape(words.proof_line(proof))} ({escape(words.proof_source(proof))})"
        lines += [f"**{told}**", ""]
    lines += [f"{escape(words.summary(found))}. {words.NOT_ADDITIVE.capitalize()}."]
    if found.items:
        lines.append("")
    lines += items_markdown(found.items[: top or None])
    if found.informative:
        lines += ["", f"{words.INFORMATIVE}:", "", *items_markdown(found.informative)]
    around = [f"At a roof: {code(kernel)}: {escape(told)}" for kernel, told in words.roofs(found)]
    around += [
        f"{words.NOTHING.capitalize()}: {code(kernel)}: {escape(told)}"
        for kernel, told in words.without_finding(found, report.groups)
    ]
    if proven := words.proven(found.proofs):
        around.append(f"Reachable: {escape(proven)}")
    around += [escape(told) for told in words.untold(found, report.session, name)]
    for line in around:
        lines += ["", line]
    if found.lacking:
        lines += ["", "Rules not evaluated, and what they lack:", ""]
        lines += [f"- {code(rule)}: {escape(lacked)}" for rule, lacked in words.lacks(found)]
    return lines


def items_markdown(items: Iterable[Item]) -> list[str]:
    """Items as boxes to tick, with all that is known of each."""
    return [line for item in items for line in _item(item)]


def _item(item: Item) -> list[str]:
    rule, estimate = item.rule, item.finding.estimate
    gain = f"{words.gain(estimate)} " if estimate else ""
    title = f"[{escape(rule.title)}]({item.page})" if item.page else escape(rule.title)
    told = [
        f"kernel {code(words.kernel_name(item.group))}" if item.group else words.TIMELINE,
        f"category {rule.category}, {rule.effort} effort",
        escape(words.prospects(item)),
        f"seen: {escape('; '.join(words.evidence(item)))}",
    ]
    if where := words.places(item.places):
        told.append(f"where: {escape(where)}")
    told += [f"do: {escape(action)}" for action in item.actions]
    told += [f"check: {escape(check)}" for check in rule.verify]
    mark = f"[ ] **{item.rank}. " if item.rank else "**"
    return [f"- {mark}{escape(gain)}{title}**", *(f"  - {line}" for line in told)]


def code(text: str, *, in_table: bool = False) -> str:
    """Text as a code span, whatever it holds: kernel names are full of markup characters."""
    shown = literal(text)
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown else ""
    if in_table:
        shown = shown.replace("\\|", "\\ |").replace("|", "\\|")  # no fence holds a table's pipe
    return f"{fence}{pad}{shown}{pad}{fence}"


def escape(text: str) -> str:
    """Prose with Markdown's and HTML's special characters made harmless."""
    return re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", literal(text))


def _cell(text: str) -> str:
    return "<br>".join(escape(line) for line in text.split("\n"))


def _detail(rank: int, group: Group) -> list[str]:
    launch = group.typical
    lines = [f"## {rank}. {code(launch.name)}", "", escape(overview.about(group))]
    lines += [f"\n> {escape(warning)}" for warning in launch.warnings]
    if not launch.failed:
        for panel in panels.panels(launch):
            lines += ["", *_panel(panel)]
        for grid in panels.grids(launch):
            lines += ["", *table_of(grid)]
        rules = overview.rule_rows(launch)
        if rules:
            rows = [(_cell(row.label), _cell(row.value), _cell(row.note)) for row in rules]
            lines += ["", "### What ncu's own rules say", ""]
            lines += ["Their estimates; a local one is a unit's efficiency, not time.", ""]
            lines += _table(("Rule", "Estimate", ""), rows)
    return lines


def _panel(panel: Panel) -> list[str]:
    rows = [(_cell(row.label), _cell(row.value), _cell(row.note)) for row in panel.rows]
    lines = [f"### {panel.title}", "", *_table(("", "", ""), rows)]
    return [*lines, "", escape(panel.note)] if panel.note else lines


def table_of(grid: Grid) -> list[str]:
    """A grid as a heading, a table and its note."""
    lines = [f"### {grid.title}"]
    if grid.rows:
        lines += ["", *_table(grid.columns, [tuple(map(_cell, row)) for row in grid.rows])]
    return [*lines, "", escape(grid.note)] if grid.note else lines


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(columns)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def catalog_markdown(entries: Catalog) -> str:
    """The catalogue as a page: every quantity with unit, meaning, formulas and source."""
    lines = [
        "# Quantities",
        "",
        "What profkit calls a quantity, what it means and where Nsight Compute has it. Values are",
        "in SI units; unit 1 is a share (1 = 100%). The formulas are tried in order: the first",
        "whose inputs a launch recorded gives the value. ncu's percentages are read as shares, its",
        "nanoseconds as seconds. A formula marked *lead* uses a name that no report has confirmed",
        "yet.",
        "",
        "Functions: `only_if(x, c)` is undefined where c is 0; `net_of(a, b)` is a - b, and 0",
        "where a is 0; `idle(x)` is 0 where x is 0 and undefined elsewhere; `negligible(x, y)` is",
        "0 where x is under 1% of y and undefined elsewhere; `count(x)` is the nearest whole",
        "number; `round_up(x, u)` is the next multiple of u.",
        "",
        "This page is written by `profkit metrics --format markdown`.",
    ]
    for group, heading in entries.titles.items():
        lines += ["", f"## {heading}"]
        for quantity in entries.group(group):
            lines += ["", *_quantity(quantity)]
    for heading, note, recorded in (
        ("By opcode or configuration", "Read as `launch.breakdown(name)`.", entries.breakdowns),
        (
            "By instruction and source line",
            "Read with `kernel.source_lines(name)` and `kernel.instructions(name)`.",
            entries.lines,
        ),
        ("Over time", "Read with `kernel.time_series(name)`.", entries.series),
    ):
        lines += ["", f"## {heading}", "", note, "", *_recorded(recorded)]
    return "\n".join(lines) + "\n"


def _quantity(quantity: Quantity) -> list[str]:
    lines = [f"### `{quantity.name}`", "", f"{quantity.meaning} Unit: {quantity.unit}."]
    if quantity.computed:
        lines += ["", f"- computed, from or where there is `{quantity.computed}`"]
    elif quantity.alternatives:
        lines.append("")
    for item in quantity.alternatives:
        where = "" if item.cc == Range(OLDEST, NEWEST) else f" (CC {_range(item.cc)})"
        lines.append(f"- `{item.formula.text}`{where}{' *lead*' if item.lead else ''}")
    facts = [f"Source: {quantity.source}."]
    if quantity.section != "any":
        facts.append(f"Section: `{quantity.section}`.")
    if quantity.absent_on:
        spans = ", ".join(_range(span) for span in quantity.absent_on)
        facts.append(f"Not on CC {spans}.")
    return [*lines, "", " ".join(facts)]


def _range(span: Range) -> str:
    low = f"{span.low[0]}.{span.low[1]}"
    if span.high == span.low:
        return low
    return f"{low} and newer" if span.high == NEWEST else f"{low}-{span.high[0]}.{span.high[1]}"


def _recorded(entries: Mapping[str, Recorded]) -> list[str]:
    rows = [
        (f"`{item.name}`", item.unit, item.meaning, f"`{item.metric}`", f"`{item.section}`")
        for item in entries.values()
    ]
    return _table(("Name", "Unit", "Meaning", "ncu's name", "Section"), rows)
