"""The catalog as a Markdown page: `python -m kernels.quantities_page` writes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import mode

from profkit.core.compute_capability import NEWEST, OLDEST, Range
from profkit.report.catalog import Catalog, Quantity, Recorded, catalog
from profkit.ui.markdown import table

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "metrics.md"


def quantities_page(entries: Catalog) -> str:
    """The catalog as a page: every quantity with unit, meaning, formulas and source."""
    lines = Path(__file__).with_name("quantities.md").read_text(encoding="utf-8").splitlines()
    for group, heading in entries.titles.items():
        quantities = tuple(entries.group(group))
        usual = mode(quantity.source for quantity in quantities)
        lines += ["", f"## {heading}", "", f"Source, unless another is named: {usual}."]
        for quantity in quantities:
            lines += ["", *_quantity(quantity, usual)]
    for heading, note, recorded in (
        ("By opcode or access type", "Read as `launch.breakdown(name)`.", entries.breakdowns),
        (
            "By instruction and source line",
            "Read with `kernel.source_lines(name)` and `kernel.instructions(name)`.",
            entries.lines,
        ),
        ("Over time", "Read with `kernel.time_series(name)`.", entries.series),
    ):
        lines += ["", f"## {heading}", "", note, "", *_recorded(recorded)]
    return "\n".join(lines) + "\n"


def _quantity(quantity: Quantity, usual_source: str) -> list[str]:
    lines = [f"### `{quantity.name}`", "", f"{quantity.meaning} Unit: {quantity.unit}."]
    if quantity.computed:
        lines += ["", f"- computed from `{quantity.computed}`, or where that is recorded"]
    elif quantity.alternatives:
        lines.append("")
    for item in quantity.alternatives:
        where = "" if item.cc == Range(OLDEST, NEWEST) else f" (CC {_range(item.cc)})"
        lines.append(f"- `{item.formula.text}`{where}{' *lead*' if item.lead else ''}")
    facts = [] if quantity.source == usual_source else [f"Source: {quantity.source}."]
    if quantity.section != "any":
        facts.append(f"Section: `{quantity.section}`.")
    if quantity.absent_on:
        spans = ", ".join(_range(span) for span in quantity.absent_on)
        facts.append(f"Not on CC {spans}.")
    return [*lines, "", " ".join(facts)] if facts else lines


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
    return table(("Name", "Unit", "Meaning", "ncu's name", "Section"), rows)


if __name__ == "__main__":
    PAGE.write_text(quantities_page(catalog()), encoding="utf-8")
