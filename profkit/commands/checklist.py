"""`profkit checklist`: what to do about a report's kernels, most time saved first."""

from __future__ import annotations

from typing import Annotated

import typer

from profkit.commands.formats import TextFormat
from profkit.commands.options import (
    FORMAT,
    DisableOption,
    KernelOption,
    OutputOption,
    ReportArgument,
    RulesOption,
    put,
    put_view,
    width_of,
)


def checklist(
    path: ReportArgument,
    top: Annotated[
        int, typer.Option(min=0, metavar="N", help="Only the first N items; 0 for all.")
    ] = 0,
    kernel: KernelOption = None,
    format: Annotated[TextFormat, FORMAT] = "terminal",
    output: OutputOption = None,
    rules: RulesOption = None,
    disable: DisableOption = None,
) -> None:
    """List what to do about a report's kernels as boxes to tick, most time saved first.

    Examples:

      profkit checklist run.ncu-rep

      profkit checklist reports/sdpa_s512 --top 5 --format markdown -o checklist.md
    """
    from profkit.commands.advice import chosen
    from profkit.commands.reading import read_report
    from profkit.rules.checklist_format import checklist_json
    from profkit.rules.checklist_view import checklist_view
    from profkit.rules.finding_text import checklist_markdown

    advice = chosen(rules, disable or (), top or None)
    report = read_report(path, kernel)
    found = report.checklist(advice.rules, advice.disabled, advice.blamed)
    if format == "json":
        put(checklist_json(report.summary, found, top), output)
    elif format == "markdown":
        put(checklist_markdown(report.summary, found, top), output)
    else:
        put_view(checklist_view(report.summary, found, top, width_of(output)), output)
