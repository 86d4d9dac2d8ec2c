"""The catalog of quantities and its coverage by a report: `profkit.metrics/1` and its document."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import UNSET, field

from profkit.core.compute_capability import NEWEST
from profkit.core.typed_file import Count, Maybe, Model, Output, Real, known, part
from profkit.report.action import READER_MISSING, has_reader
from profkit.report.catalog import Quantity, catalog
from profkit.report.formula import parse
from profkit.report.names import file_name
from profkit.report.summary import LaunchSummary, ReportSummary
from profkit.ui import document as doc
from profkit.ui.text import count, plural, quantity_text, shorten

RawMetrics = Mapping[str, tuple[str, float | str | None]]
"""ncu's own metrics by name: unit and value."""

_VALUE = 28  # characters of a text, chosen: leaves 70 of 100 columns for the longest metric names
_NAME = 50  # characters of a kernel's name, chosen: the heading then fits 100 columns


class FormulaRow(Model, frozen=True):
    """A formula over ncu metrics, and the compute capabilities that it applies to. `lead`: no
    report has confirmed its metric names yet."""

    formula: str
    from_cc: str
    to_cc: str | None
    lead: bool


class QuantityRow(Model, frozen=True, kw_only=True):
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
    low: Maybe[Real] = field(name="min", default=UNSET)
    high: Maybe[Real] = field(name="max", default=UNSET)
    reasons: Maybe[dict[str, Count]] = UNSET


class RecordedRow(Model, frozen=True):
    """An ncu metric in ncu's unit."""

    unit: str
    value: float | int | str | None


class MetricsFile(Output, frozen=True, kw_only=True, tag="profkit.metrics/1"):
    """The catalog, with its coverage by a report where one is given; `recorded` are ncu metrics."""

    file: Maybe[str] = UNSET
    launches: Maybe[Count] = UNSET
    quantities: tuple[QuantityRow, ...]
    recorded: Maybe[dict[str, RecordedRow]] = UNSET


def catalog_metrics(chosen: Sequence[Quantity]) -> MetricsFile:
    """Quantities of the catalog."""
    return MetricsFile(quantities=tuple(map(_row, chosen)))


def report_metrics(
    report: ReportSummary, chosen: Sequence[Quantity], raw: RawMetrics
) -> MetricsFile:
    """Quantities of the catalog as a report has them, and metrics that ncu recorded."""
    return MetricsFile(
        file=file_name(report.path, with_host=False),
        launches=len(report.launches),
        quantities=tuple(_row(entry, report.launches) for entry in chosen),
        recorded={name: RecordedRow(*metric) for name, metric in raw.items()},
    )


def _row(entry: Quantity, launches: Sequence[LaunchSummary] = ()) -> QuantityRow:
    own = part(entry, "name", "group", "unit", "meaning", "section", "source")
    formulas = tuple(
        FormulaRow(
            row.formula.text,
            f"{row.cc.low[0]}.{row.cc.low[1]}",
            None if row.cc.high == NEWEST else f"{row.cc.high[0]}.{row.cc.high[1]}",
            row.lead,
        )
        for row in entry.alternatives
    )
    if not launches:
        return QuantityRow(**own, formulas=formulas)
    present = [launch for launch in launches if entry.name in launch.values]
    values = [launch.values[entry.name] for launch in present]
    texts = {launch.formulas[entry.name] for launch in present}
    plain = all(text and parse(text).is_plain for text in texts)
    reasons = Counter(
        launch.missing[entry.name] for launch in launches if entry.name in launch.missing
    )
    return QuantityRow(
        **own,
        formulas=formulas,
        status=("found" if plain else "derived") if present else "missing",
        present=len(present),
        doubtful=sum(entry.name in launch.impossible for launch in present),
        low=min(values, default=math.nan),
        high=max(values, default=math.nan),
        reasons=dict(reasons.most_common()),
    )


def catalog_document(file: MetricsFile) -> doc.Document:
    """Name, unit and meaning of each quantity, by group."""
    title = "Quantities of the catalog"
    groups = {
        heading: [
            doc.Row(row.name, row.unit, row.meaning)
            for row in file.quantities
            if row.group == group
        ]
        for group, heading in catalog().titles.items()
    }
    total = (
        f"{plural(len(file.quantities), 'quantity')}; unit 1: share (1 = 100%). "
        "Formulas and sources: docs/reference/metrics.md, or --format json"
    )
    return doc.Document(title, (doc.Heading(title, 1), *_listed(groups), _closing(total)))


def report_document(file: MetricsFile, first: LaunchSummary) -> doc.Document:
    """Each quantity with its value or why it is missing, then ncu's metrics if requested.

    `first` is the launch of these.
    """
    launches = known(file.launches) or 0
    headings = {"found": "Found (the value of one ncu metric)", "derived": "Derived (by formula)"}
    groups = {
        heading: [
            doc.Row(row.name, _value(row), _lacking(row, launches))
            for row in file.quantities
            if row.status == status
        ]
        for status, heading in headings.items()
    }
    missing = [row for row in file.quantities if row.status == "missing"]
    groups["Missing"] = [doc.Row(row.name, "", _reasons(row)) for row in missing]
    units = "in ncu's units" if has_reader() else f"units unknown ({READER_MISSING})"
    groups[f"ncu metrics of launch {first.index} ({shorten(first.name, _NAME)}), {units}"] = [
        doc.Row(name, _recorded(row)) for name, row in (known(file.recorded) or {}).items()
    ]
    total = f"{plural(len(file.quantities), 'quantity')} in {plural(launches, 'launch')}"
    lines = [f"{len(file.quantities) - len(missing)} of {total}"]
    if any(row.doubtful for row in file.quantities):
        lines.insert(0, "? invalid measurement, such as a share above 100%: ignore it")
    title = known(file.file) or ""
    return doc.Document(title, (doc.Heading(title, 1), *_listed(groups), _closing(*lines)))


def _listed(groups: Mapping[str, Sequence[doc.Row]]) -> list[doc.Facts]:
    return [doc.Facts(title, tuple(rows), wide=True) for title, rows in groups.items() if rows]


def _closing(*lines: str) -> doc.Lines:
    return doc.Lines(tuple(map(doc.quiet, lines)), gap=True)


def _value(row: QuantityRow) -> str:
    """The range of its values, the unit once where both ends have the same."""
    ends = known(row.low) or 0.0, known(row.high) or 0.0
    low, high = (quantity_text(row.name, end, row.unit) for end in ends)
    value, _, unit = low.partition(" ")
    if unit and high.endswith(f" {unit}"):
        low = value
    return (high if row.low == row.high else f"{low} to {high}") + ("?" if row.doubtful else "")


def _lacking(row: QuantityRow, launches: int) -> str:
    present, doubtful = known(row.present) or 0, known(row.doubtful) or 0
    parts = []
    if doubtful and launches > 1:
        parts.append(f"? in {doubtful} of {launches} launches")
    if present < launches:
        parts.append(f"in {present} of {launches} launches; otherwise {_reasons(row)}")
    return "; ".join(parts)


def _reasons(row: QuantityRow) -> str:
    return ", ".join(known(row.reasons) or {})


def _recorded(row: RecordedRow) -> str:
    if row.value is None:
        return "(one value per instance)"
    value = row.value
    text = shorten(value, _VALUE) if isinstance(value, str) else count(float(value))
    return f"{text} {row.unit}".strip()
