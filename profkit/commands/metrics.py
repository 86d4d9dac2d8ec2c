"""`profkit metrics`: the catalog of quantities, and those of a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from profkit.commands.groups import Output, PlainFormat
from profkit.commands.kinds import ReportFile
from profkit.core.errors import UsageError

if TYPE_CHECKING:
    from profkit.report.catalog import Quantity


def metrics(
    path: ReportFile | None = None,
    kernel: str | None = None,
    grep: str | None = None,
    everything: bool = False,
    *,
    output: Output[PlainFormat],
) -> None:
    """List quantities derived from ncu metrics, and a report's own.

    With FILE each quantity is marked as recorded, derived or missing.

    Arguments:
      path ([FILE]): A report or a run whose quantities to list.

    Options:
      grep (WORD): Only quantities with this word in their name, meaning or ncu metrics.
      everything (--all): With FILE: also every metric that ncu recorded for the launch.

    Examples:
      profkit metrics --grep conflict
      profkit metrics run.ncu-rep --kernel flash
      profkit metrics run.ncu-rep --all --grep l1tex__
    """
    if path is not None:
        _report(path, kernel, grep, everything, output)
        return
    if kernel or everything:
        raise UsageError("--kernel and --all need a report", "add FILE")
    from profkit.analysis.metrics import catalog_document, catalog_metrics

    chosen = _chosen(grep)
    if grep and not chosen:
        raise UsageError(f"no quantity contains {grep!r}", "`profkit metrics` lists all")
    result = catalog_metrics(chosen)
    output.show(result, lambda: catalog_document(result))


def _report(
    path: Path,
    kernel: str | None,
    grep: str | None,
    everything: bool,
    output: Output[PlainFormat],
) -> None:
    from profkit.analysis.metrics import report_document, report_metrics
    from profkit.commands.reading import read_report

    report = read_report(path, kernel)
    first, chosen = report.summary.launches[0], _chosen(grep)
    recorded: dict[str, tuple[str, float | str | None]] = {}
    if everything:  # of the first selected launch, by ncu's names
        metrics = report.kernel(first.index).recorded()
        word = (grep or "").lower()
        recorded = {name: value for name, value in metrics.items() if word in name.lower()}
    if grep and not chosen and not recorded:
        raise UsageError(
            f"{path}: no quantity contains {grep!r}",
            "leave out --grep" if everything else "add --all for every metric that ncu recorded",
        )
    result = report_metrics(report.summary, chosen, recorded)
    output.show(result, lambda: report_document(result, first))


def _chosen(grep: str | None) -> list[Quantity]:
    """The quantities of the catalog with a word in name, meaning or formulas; all for None."""
    from profkit.report.catalog import catalog

    return [entry for entry in catalog().quantities.values() if _matches(entry, grep)]


def _matches(entry: Quantity, grep: str | None) -> bool:
    texts = [entry.name, entry.meaning, *(item.formula.text for item in entry.alternatives)]
    return not grep or any(grep.casefold() in text.casefold() for text in texts)
