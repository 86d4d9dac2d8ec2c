"""The catalog, or its coverage by a report: terminal and `profkit.metrics/1` JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import UNSET, field
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from profkit.core.projection import Measured, Projection, project
from profkit.core.typed_file import Count, File, Maybe, encode, part
from profkit.report.catalog import NEWEST, Catalog, Quantity
from profkit.report.coverage import Coverage
from profkit.report.names import file_name
from profkit.report.summary import LaunchSummary, ReportSummary
from profkit.report.vendor import READER_MISSING, has_reader
from profkit.ui.text import count, literal, number, plural, shorten

RawMetrics = Mapping[str, tuple[str, float | str | None]]
"""ncu's own metrics by name: unit and value."""

_VALUE = 28  # characters of a text, chosen: leaves 70 of 100 columns for the longest metric names


class FormulaRow(Projection, frozen=True, kw_only=True):
    """A formula over ncu metrics, and the compute capabilities that it applies to. `lead`: no
    report has confirmed its metric names yet."""

    formula: str
    from_cc: str
    to_cc: str | None
    lead: bool


class QuantityRow(Projection, frozen=True, kw_only=True):
    """A catalog quantity; with a report, the number of launches in which it is `present`, and
    `doubtful` (impossible value), its range, and why launches lack it."""

    name: str
    group: str
    unit: str
    meaning: str
    section: str
    source: str
    formulas: tuple[FormulaRow, ...]
    status: Maybe[Literal["found", "derived", "missing"]] = UNSET
    present: Maybe[Count] = UNSET
    doubtful: Maybe[Count] = UNSET
    low: Maybe[Measured] = field(name="min", default=UNSET)
    high: Maybe[Measured] = field(name="max", default=UNSET)
    reasons: Maybe[dict[str, Count]] = UNSET


class RecordedRow(Projection, frozen=True, kw_only=True):
    """An ncu metric in ncu's unit."""

    unit: str
    value: float | int | str | None


class MetricsFile(File, frozen=True, kw_only=True, tag="profkit.metrics/1"):
    """The catalog, with its coverage by a report where one is given; `recorded` are ncu metrics."""

    file: Maybe[str] = UNSET
    launches: Maybe[Count] = UNSET
    quantities: tuple[QuantityRow, ...]
    recorded: Maybe[dict[str, RecordedRow]] = UNSET


def catalog_json(chosen: Sequence[Quantity]) -> str:
    """Quantities of the catalog."""
    return encode(MetricsFile(quantities=tuple(map(_row, chosen))), dense=False)


def coverage_json(report: ReportSummary, coverage: Sequence[Coverage], raw: RawMetrics) -> str:
    """The coverage of the catalog by a report."""
    file = MetricsFile(
        file=file_name(report.path, with_host=False),
        launches=len(report.launches),
        quantities=tuple(_row(item.quantity, item) for item in coverage),
        recorded={name: RecordedRow(unit=unit, value=value) for name, (unit, value) in raw.items()},
    )
    return encode(file, dense=False)


def _row(entry: Quantity, item: Coverage | None = None) -> QuantityRow:
    formulas = [
        FormulaRow(
            formula=row.formula.text,
            from_cc=f"{row.cc.low[0]}.{row.cc.low[1]}",
            to_cc=None if row.cc.high == NEWEST else f"{row.cc.high[0]}.{row.cc.high[1]}",
            lead=row.lead,
        )
        for row in entry.alternatives
    ]
    if item is None:
        return project(entry, QuantityRow, formulas=formulas)
    own = part(entry, "name", "group", "unit", "meaning", "section", "source")
    return project(item, QuantityRow, **own, formulas=formulas, reasons=dict(item.reasons))


def catalog_view(entries: Catalog, chosen: Sequence[Quantity]) -> RenderableType:
    """Name, unit and meaning of each quantity, by group."""
    parts: list[RenderableType] = []
    for group, heading in entries.titles.items():
        rows = [
            (Text(entry.name), Text(entry.unit, "dim"), Text(entry.meaning))
            for entry in chosen
            if entry.group == group
        ]
        parts += _titled(heading, rows, 2)
    last = (
        f"{plural(len(chosen), 'quantity')}; unit 1: share (1 = 100%). "
        "Formulas and sources: docs/reference/metrics.md, or --format json"
    )
    return Group(*parts, Text(last, "dim"))


def coverage_view(
    report: ReportSummary, coverage: Sequence[Coverage], raw: RawMetrics
) -> RenderableType:
    """Each quantity with its value or why it is missing, then ncu's metrics if requested."""
    parts: list[RenderableType] = []
    headings = {"found": "Found (the value of one ncu metric)", "derived": "Derived (by formula)"}
    for status, heading in headings.items():
        rows = [
            (Text(item.quantity.name), Text(_value(item)), Text(_lacking(item), "dim"))
            for item in coverage
            if item.status == status
        ]
        parts += _titled(heading, rows)
    missing = [item for item in coverage if item.status == "missing"]
    parts += _titled(
        "Missing", [(Text(item.quantity.name), Text(_reasons(item), "dim")) for item in missing]
    )
    if raw:
        parts += [_raw(report.launches[0], raw), Text()]
    if any(item.doubtful for item in coverage):
        parts.append(Text("? invalid measurement, such as a share above 100%: ignore it"))
    total = f"{plural(len(coverage), 'quantity')} in {plural(len(report.launches), 'launch')}"
    return Group(*parts, Text(f"{len(coverage) - len(missing)} of {total}", "dim"))


def _titled(heading: str, rows: Sequence[Sequence[Text]], wide: int = 1) -> list[RenderableType]:
    """A table under its heading; nothing without rows."""
    return [Text(heading, "bold"), _table(rows, wide), Text()] if rows else []


def _table(rows: Sequence[Sequence[Text]], wide: int) -> Table:
    """Rows, the `wide` column folded where it is too long and those left of it never."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*row)
    for column in table.columns[:wide]:
        column.no_wrap = True
    table.columns[wide].overflow = "fold"
    return table


def _value(item: Coverage) -> str:
    ends = [number(end, item.quantity.unit) for end in dict.fromkeys((item.low, item.high))]
    return " to ".join(ends) + ("?" if item.doubtful else "")


def _lacking(item: Coverage) -> str:
    parts = []
    if item.doubtful and item.launches > 1:
        parts.append(f"? in {item.doubtful} of {item.launches} launches")
    if item.present < item.launches:
        parts.append(f"in {item.present} of {item.launches} launches; otherwise {_reasons(item)}")
    return "; ".join(parts)


def _reasons(item: Coverage) -> str:
    return ", ".join(literal(reason) for reason, _ in item.reasons)


def _raw(first: LaunchSummary, raw: RawMetrics) -> RenderableType:
    units = "in ncu's units" if has_reader() else f"units unknown ({READER_MISSING})"
    heading = f"ncu metrics of launch {first.index}, {units}"
    rows = [
        (Text(name), Text(_recorded(value, unit), "dim")) for name, (unit, value) in raw.items()
    ]
    name = Text(shorten(literal(first.name), 90), "dim")  # fits 100 columns
    return Group(Text(heading, "bold"), name, _table(rows, 0))


def _recorded(value: float | str | None, unit: str) -> str:
    if value is None:
        return "(one value per instance)"
    text = literal(shorten(value, _VALUE)) if isinstance(value, str) else count(float(value))
    return f"{text} {unit}".strip()
