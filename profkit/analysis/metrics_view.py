"""The catalogue in a terminal, alone or held against a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from profkit.ui.text import count, literal, number, plural, shorten

if TYPE_CHECKING:
    from profkit.report.catalog import Catalog, Quantity
    from profkit.report.coverage import Coverage
    from profkit.report.summary import ReportSummary

_VALUE = 28


def catalog_view(entries: Catalog, chosen: Sequence[Quantity]) -> RenderableType:
    """Name, unit and meaning of each quantity, by group."""
    parts: list[RenderableType] = []
    for group, heading in entries.titles.items():
        members = [entry for entry in chosen if entry.group == group]
        if not members:
            continue
        table = _table(2)
        for entry in members:
            table.add_row(Text(entry.name), Text(entry.unit, "dim"), Text(entry.meaning))
        parts += [Text(heading, "bold"), table, Text()]
    parts.append(
        Text(
            f"{plural(len(chosen), 'quantity')}; unit 1 is a share. "
            "Formulas and sources: docs/metrics.md, or --format json",
            "dim",
        )
    )
    return Group(*parts)


def coverage_view(
    report: ReportSummary,
    found: Sequence[Coverage],
    raw: Mapping[str, tuple[str, float | str | None]],
) -> RenderableType:
    """Each quantity with its value or why it is missing, then ncu's own metrics if asked for."""
    launches = len(report.launches)
    parts: list[RenderableType] = []
    for status, heading in (
        ("found", "Found: one ncu metric as it is"),
        ("derived", "Derived by a formula"),
    ):
        members = [item for item in found if item.status == status]
        if not members:
            continue
        table = _table(1)
        for item in members:
            table.add_row(Text(item.quantity.name), Text(_value(item)), Text(_lacking(item), "dim"))
        parts += [Text(heading, "bold"), table, Text()]
    missing = [item for item in found if item.status == "missing"]
    if missing:
        table = _table(1)
        for item in missing:
            table.add_row(Text(item.quantity.name), Text(_reasons(item), "dim"))
        parts += [Text("Missing", "bold"), table, Text()]
    if raw:
        parts += [_raw(report, raw), Text()]
    if any(item.doubtful for item in found):
        parts.append(Text("? a value that can't be, such as a share above 100%: don't rely on it"))
    present = len(found) - len(missing)
    parts.append(
        Text(
            f"{present} of {plural(len(found), 'quantity')} in {plural(launches, 'launch')}", "dim"
        )
    )
    return Group(*parts)


def _table(fixed: int) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(fixed):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _value(item: Coverage) -> str:
    unit = item.quantity.unit
    mark = "?" if item.doubtful else ""
    if item.low == item.high:
        return number(item.low, unit) + mark
    return f"{number(item.low, unit)} to {number(item.high, unit)}{mark}"


def _lacking(item: Coverage) -> str:
    said = []
    if item.doubtful and item.launches > 1:
        said.append(f"? in {item.doubtful} of {item.launches}")
    if item.present < item.launches:
        said.append(f"in {item.present} of {item.launches}; else {_reasons(item)}")
    return "; ".join(said)


def _reasons(item: Coverage) -> str:
    return ", ".join(literal(reason) for reason, _ in item.reasons)


def _raw(
    report: ReportSummary, raw: Mapping[str, tuple[str, float | str | None]]
) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(no_wrap=True)
    for name, (unit, value) in raw.items():
        table.add_row(Text(name), Text(_recorded(value, unit), "dim"))
    first = report.launches[0]
    heading = f"All that ncu recorded for launch {first.index}, in its own units"
    return Group(Text(heading, "bold"), Text(shorten(literal(first.name), 90), "dim"), table)


def _recorded(value: float | str | None, unit: str) -> str:
    if value is None:
        return "(a value each instance)"
    text = literal(shorten(value, _VALUE)) if isinstance(value, str) else count(float(value))
    return f"{text} {unit}".strip()
