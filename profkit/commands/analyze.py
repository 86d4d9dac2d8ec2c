"""`profkit analyze`: what a report says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from profkit.commands.options import (
    FORMAT,
    DisableOption,
    KernelOption,
    OutputOption,
    RulesOption,
    put,
    report_failures,
    width_of,
)
from profkit.core.errors import UsageError

if TYPE_CHECKING:
    from profkit.commands.reading import Advice
    from profkit.report.summary import Group, ReportSummary
    from profkit.rules.checklist import Checklist

AnalysisFormat = Literal["terminal", "json", "markdown", "csv", "html"]

_TOP_SHOWN = {"terminal": 3, "markdown": 3, "html": 12}
_BY_TIME = "time"
_CHECK_HALF_FROM = 0.05


def analyze(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Reports (.ncu-rep, .ncu-repz), runs, folders, or timelines (.sqlite, .nsys-rep).",
        ),
    ],
    kernel: KernelOption = None,
    nvtx: Annotated[
        str | None,
        typer.Option(
            metavar="RANGE", help="Only launches inside this NVTX range; * and ? are wildcards."
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Kernels to show in detail, 0 for all. [default: 3; html: 12; json and csv: all]",
        ),
    ] = None,
    sort: Annotated[
        str,
        typer.Option(
            metavar="KEY",
            help="time, name, count, order, or a catalogue quantity (dram_busy), largest first.",
        ),
    ] = _BY_TIME,
    format: Annotated[AnalysisFormat, FORMAT] = "terminal",
    output: OutputOption = None,
    rules: RulesOption = None,
    disable: DisableOption = None,
    with_host: Annotated[
        bool,
        typer.Option(
            "--with-host",
            help="Keep computer name, paths and the whole command line in json, markdown, html.",
        ),
    ] = False,
) -> None:
    """Say what a report holds: who takes the time, what limits it, what a fix would give.

    Examples:

      profkit analyze run.ncu-rep

      profkit analyze run.ncu-rep --kernel flash --top 1

      profkit analyze reports/ --format json -o all.json

      profkit analyze run.ncu-rep --format html -o run.html

      profkit analyze timeline.sqlite
    """
    from profkit.analysis.run_files import TIMELINES
    from profkit.commands.advice import chosen

    if any(path.suffix in TIMELINES for path in paths):
        filtered = bool(kernel or nvtx) or top is not None or sort != _BY_TIME
        advice = chosen(rules, disable or (), None)
        put(_timelines(paths, advice, format, output, with_host, filtered=filtered), output)
        return
    from profkit.commands.order import known_key, order
    from profkit.commands.reading import Selection, read_reports
    from profkit.rules.checklist_view import SHOWN

    known_key(sort)
    shown = _TOP_SHOWN.get(format, 0) if top is None else top
    advice = chosen(rules, disable or (), SHOWN if format == "terminal" else None)
    if format == "html":
        from profkit.commands.report import page_of

        if len(paths) > 1:
            raise UsageError(f"a page is of one report, not of {len(paths)}", "name one of them")
        page = page_of(paths[0], kernel, nvtx, shown, advice, with_host=with_host, sort=sort)
        put(page, output)
        return
    selection = Selection(kernel, nvtx, _check_half_from(format, sort))
    examined, failures = read_reports(paths, selection, advice)
    ordered = [(one.report, order(one.report, sort), one.found) for one in examined]
    if ordered:
        put(_text(ordered, shown, format, output, with_host, sort), output)
    report_failures(failures)


def _check_half_from(format: AnalysisFormat, sort: str) -> float:
    """From which share of its roof claimed half-precision work is checked in all launches."""
    from profkit.report.catalog import catalog

    needed = format != "terminal" or sort in catalog().checked
    return 0.0 if needed else _CHECK_HALF_FROM


def _timelines(
    paths: Sequence[Path],
    advice: Advice,
    format: AnalysisFormat,
    output: Path | None,
    with_host: bool,
    *,
    filtered: bool,
) -> str:
    if format == "html":
        raise UsageError(
            "a timeline has no page of its own", "give the report or run it belongs to"
        )
    from profkit.analysis.run_files import TIMELINES
    from profkit.analysis.timeline_view import timelines_text
    from profkit.commands.reading import read_timeline
    from profkit.rules.checklist import timeline_items
    from profkit.rules.rule_file import shipped_rules
    from profkit.timeline.summary import summarize_timeline

    if not all(path.suffix in TIMELINES for path in paths):
        raise UsageError("reports and timelines can't be shown together", "one kind at a time")
    if filtered:
        raise UsageError(
            "--kernel, --nvtx, --top and --sort don't apply to a timeline", "leave them out"
        )
    rules = advice.rules or shipped_rules()
    summaries = [summarize_timeline(read_timeline(path)) for path in paths]
    reports = [
        (summary, str(path), timeline_items(summary.quantities, rules, advice.disabled))
        for summary, path in zip(summaries, paths, strict=True)
    ]
    return timelines_text(reports, format, with_host=with_host, to_file=output is not None)


def _text(
    reports: Sequence[tuple[ReportSummary, tuple[Group, ...], Checklist]],
    top: int,
    format: AnalysisFormat,
    output: Path | None,
    with_host: bool,
    sort: str,
) -> str:
    if format == "json":
        from profkit.analysis.json import report_json

        return report_json(reports, top, with_host=with_host)
    if format == "markdown":
        from profkit.analysis.markdown import report_markdown

        return "\n".join(
            report_markdown(report, groups, found, top, with_host=with_host)
            for report, groups, found in reports
        )
    if format == "csv":
        from profkit.report.csv import reports_csv

        return reports_csv([(report, groups) for report, groups, _ in reports], top)
    from profkit.analysis.run_files import beside
    from profkit.analysis.terminal import report_view
    from profkit.ui.terminal import rendered

    to_file, width = output is not None, width_of(output)
    views = (
        report_view(
            replace(report, groups=groups),
            groups[: top or None],
            width,
            sort,
            beside(Path(report.path)),
            found,
        )
        for report, groups, found in reports
    )
    return "\n".join(rendered(view, to_file=to_file) for view in views)
