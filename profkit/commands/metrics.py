"""`profkit metrics`: the catalogue, and what a report has of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.commands.formats import NumbersFormat
from profkit.commands.options import NUMBERS_FORMAT, KernelOption, OutputOption, put, put_view
from profkit.core.errors import UsageError

if TYPE_CHECKING:
    from profkit.analysis.report import Report
    from profkit.report.catalog import Quantity


def metrics(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="A report, or a run's folder, to hold the catalogue against."
        ),
    ] = None,
    kernel: KernelOption = None,
    grep: Annotated[
        str | None,
        typer.Option(
            metavar="WORD", help="Only quantities with this word in name, meaning or ncu names."
        ),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="With FILE: every metric ncu recorded for the launch, too."),
    ] = False,
    format: Annotated[NumbersFormat, NUMBERS_FORMAT] = "terminal",
    output: OutputOption = None,
) -> None:
    """List the quantities profkit knows, and which of them a report gives: found, derived, missing.

    Examples:

      profkit metrics --grep conflict

      profkit metrics run.ncu-rep --kernel flash

      profkit metrics run.ncu-rep --all --grep l1tex__
    """
    if path is None:
        if kernel or everything:
            raise UsageError("--kernel and --all need a report", "add FILE")
        _catalogue(grep, format, output)
    else:
        _report(path, kernel, grep, everything, format, output)


def _catalogue(grep: str | None, format: NumbersFormat, output: Path | None) -> None:
    from profkit.report.catalog import catalog

    entries = catalog()
    chosen = [entry for entry in entries.quantities.values() if _matches(entry, grep)]
    if grep and not chosen:
        raise UsageError(f"no quantity mentions {grep!r}", "`profkit metrics` lists all")
    if format == "markdown":
        from profkit.report.catalog_markdown import catalog_markdown

        if grep:
            raise UsageError("--format markdown writes the whole catalogue", "leave --grep out")
        put(catalog_markdown(entries), output)
    elif format == "json":
        from profkit.analysis.metrics_view import catalog_json

        put(catalog_json(chosen), output)
    else:
        from profkit.analysis.metrics_view import catalog_view

        put_view(catalog_view(entries, chosen), output)


def _report(
    path: Path,
    kernel: str | None,
    grep: str | None,
    everything: bool,
    format: NumbersFormat,
    output: Path | None,
) -> None:
    from profkit.commands.reading import read_report
    from profkit.report.coverage import coverage

    if format == "markdown":
        raise UsageError("--format markdown writes the catalogue", "leave FILE out, or use json")
    report = read_report(path, kernel)
    found = [item for item in coverage(report.summary.launches) if _matches(item.quantity, grep)]
    raw = _raw(report, grep) if everything else {}
    if grep and not found and not raw:
        raise UsageError(f"no quantity mentions {grep!r}", "`profkit metrics` lists all")
    if format == "json":
        from profkit.analysis.metrics_view import coverage_json

        put(coverage_json(report.summary, found, raw), output)
    else:
        from profkit.analysis.metrics_view import coverage_view

        view = coverage_view(report.summary, found, raw)
        put_view(view, output)


def _matches(entry: Quantity, grep: str | None) -> bool:
    if not grep:
        return True
    texts = [entry.name, entry.meaning, *(item.formula.text for item in entry.alternatives)]
    return any(re.search(re.escape(grep), text, re.IGNORECASE) for text in texts)


def _raw(report: Report, grep: str | None) -> dict[str, tuple[str, float | str | None]]:
    """Every metric of the first selected launch, by ncu's name: unit and value."""
    named = report.kernel(report.summary.launches[0].index).recorded()
    return {
        name: value for name, value in named.items() if not grep or grep.lower() in name.lower()
    }
