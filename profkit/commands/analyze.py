"""`profkit analyze`: what a report says."""

from __future__ import annotations

from collections.abc import Sequence
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
)
from profkit.core.errors import UsageError

if TYPE_CHECKING:
    from profkit.commands.reading import Advice
    from profkit.report.summary import Group, ReportSummary
    from profkit.rules.checklist import Checklist

AnalysisFormat = Literal["terminal", "json", "markdown", "csv", "html"]

_TOP_SHOWN = 3
_TOP_ON_A_PAGE = 12
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
        _analyze_timelines(paths, advice, format, output, with_host, filtered=filtered)
        return
    from profkit.commands.order import known_key, order
    from profkit.commands.reading import Selection, read_reports
    from profkit.rules.checklist_view import SHOWN

    known_key(sort)
    shown = top if top is not None else _default_top(format)
    if format == "html":
        advice = chosen(rules, disable or (), None)
        _page(paths, kernel, nvtx, shown, advice, sort, output, with_host=with_host)
        return
    selection = Selection(kernel, nvtx, _check_half_from(format, sort))
    advice = chosen(rules, disable or (), None if format != "terminal" else SHOWN)
    examined, failures = read_reports(paths, selection, advice)
    ordered = [(one.report, order(one.report, sort), one.found) for one in examined]
    if ordered:
        write(ordered, shown, format, output, with_host, sort)
    report_failures(failures)


def _page(
    paths: Sequence[Path],
    kernel: str | None,
    nvtx: str | None,
    top: int,
    advice: Advice,
    sort: str,
    output: Path | None,
    *,
    with_host: bool,
) -> None:
    from profkit.commands.report import page_of

    if len(paths) > 1:
        raise UsageError(f"a page is of one report, not of {len(paths)}", "name one of them")
    put(page_of(paths[0], kernel, nvtx, top, advice, with_host=with_host, sort=sort), output)


def _check_half_from(format: AnalysisFormat, sort: str) -> float:
    """From which share of its roof claimed half-precision work is checked in all launches."""
    from profkit.report.catalog import catalog

    needed = format != "terminal" or sort in catalog().checked
    return 0.0 if needed else _CHECK_HALF_FROM


def _analyze_timelines(
    paths: Sequence[Path],
    advice: Advice,
    format: AnalysisFormat,
    output: Path | None,
    with_host: bool,
    *,
    filtered: bool,
) -> None:
    if format == "html":
        raise UsageError(
            "a timeline has no page of its own", "give the report or run it belongs to"
        )
    from profkit.analysis.run_files import TIMELINES
    from profkit.analysis.timeline_view import timelines_text
    from profkit.commands.reading import read_timeline
    from profkit.rules.checklist import region_items
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
        (summary, str(path), region_items(summary.quantities, rules, advice.disabled))
        for summary, path in zip(summaries, paths, strict=True)
    ]
    text = timelines_text(reports, format, with_host=with_host, to_file=output is not None)
    put(text, output)


def _default_top(format: AnalysisFormat) -> int:
    if format == "html":
        return _TOP_ON_A_PAGE
    return _TOP_SHOWN if format in {"terminal", "markdown"} else 0


def write(
    reports: Sequence[tuple[ReportSummary, tuple[Group, ...], Checklist]],
    top: int,
    format: AnalysisFormat,
    output: Path | None,
    with_host: bool,
    sort: str,
) -> None:
    """Write reports in a format, to a file or stdout."""
    if format == "terminal":
        text = _terminal(reports, top, sort, to_file=output is not None)
    elif format == "json":
        from profkit.analysis.json import report_json

        text = report_json(reports, top, with_host=with_host)
    elif format == "markdown":
        from profkit.analysis.markdown import report_markdown

        text = "\n".join(
            report_markdown(report, groups, found, top, with_host=with_host)
            for report, groups, found in reports
        )
    else:
        from profkit.report.csv import reports_csv

        text = reports_csv([(report, groups) for report, groups, _ in reports], top)
    put(text, output)


def _terminal(
    reports: Sequence[tuple[ReportSummary, tuple[Group, ...], Checklist]],
    top: int,
    sort: str,
    *,
    to_file: bool,
) -> str:
    import dataclasses

    from profkit.analysis.run_files import beside
    from profkit.analysis.terminal import report_view
    from profkit.ui.terminal import console, rendered

    width = console(to_file=to_file).width
    views = [
        report_view(
            dataclasses.replace(report, groups=groups),
            groups[: top or None],
            width,
            sort,
            beside(Path(report.path)),
            found,
        )
        for report, groups, found in reports
    ]
    return "\n".join(rendered(view, to_file=to_file) for view in views)
