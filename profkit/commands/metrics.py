"""`profkit metrics`: the catalog of quantities, and those of a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from profkit.commands.choices import NumbersFormat
from profkit.commands.options import put
from profkit.core.errors import UsageError

if TYPE_CHECKING:
    from profkit.report.catalog import Quantity


def metrics(
    path: Path | None = None,
    kernel: str | None = None,
    grep: str | None = None,
    everything: bool = False,
    format: NumbersFormat = "terminal",
    output: Path | None = None,
) -> None:
    """List quantities derived from ncu metrics, and a report's own.

    With FILE each quantity is marked as recorded, derived or missing.

    Examples:
      profkit metrics --grep conflict
      profkit metrics run.ncu-rep --kernel flash
      profkit metrics run.ncu-rep --all --grep l1tex__
    """
    if path is not None:
        _report(path, kernel, grep, everything, format, output)
        return
    if kernel or everything:
        raise UsageError("--kernel and --all need a report", "add FILE")
    from profkit.analysis.metrics_view import catalog_json, catalog_view
    from profkit.report.catalog import catalog
    from profkit.report.catalog_markdown import catalog_markdown

    entries = catalog()
    chosen = [entry for entry in entries.quantities.values() if _matches(entry, grep)]
    if grep and not chosen:
        raise UsageError(f"no quantity contains {grep!r}", "`profkit metrics` lists all")
    if format == "markdown":
        if grep:
            raise UsageError("--format markdown writes the whole catalog", "leave out --grep")
        put(catalog_markdown(entries), output)
    else:
        put(catalog_json(chosen) if format == "json" else catalog_view(entries, chosen), output)


def _report(
    path: Path,
    kernel: str | None,
    grep: str | None,
    everything: bool,
    format: NumbersFormat,
    output: Path | None,
) -> None:
    from profkit.analysis.metrics_view import coverage_json, coverage_view
    from profkit.commands.reading import read_report
    from profkit.report.coverage import coverage

    if format == "markdown":
        raise UsageError("--format markdown writes the catalog", "leave out FILE, or use json")
    report = read_report(path, kernel)
    items = [item for item in coverage(report.summary.launches) if _matches(item.quantity, grep)]
    recorded: dict[str, tuple[str, float | str | None]] = {}
    if everything:  # of the first selected launch, by ncu's names
        metrics = report.kernel(report.summary.launches[0].index).recorded()
        word = (grep or "").lower()
        recorded = {name: value for name, value in metrics.items() if word in name.lower()}
    if grep and not items and not recorded:
        raise UsageError(
            f"{path}: no quantity contains {grep!r}",
            "leave out --grep" if everything else "add --all for every metric that ncu recorded",
        )
    write = coverage_json if format == "json" else coverage_view
    put(write(report.summary, items, recorded), output)


def _matches(entry: Quantity, grep: str | None) -> bool:
    texts = [entry.name, entry.meaning, *(item.formula.text for item in entry.alternatives)]
    return not grep or any(grep.casefold() in text.casefold() for text in texts)
