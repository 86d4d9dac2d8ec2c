"""`profkit analyze`: a report's kernels, limits and findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import structs
from msgspec.structs import replace

from profkit.commands import groups
from profkit.commands.kinds import Ceilings, ProgramTrial, Recording
from profkit.commands.options import report_failures
from profkit.core.errors import UsageError

if TYPE_CHECKING:
    from profkit.report.summary import Group, ReportSummary
    from profkit.rules.checklist import Checklist
    from profkit.ui.document import Document

Reports = Sequence[tuple["ReportSummary", tuple["Group", ...], "Checklist"]]
AnalysisFormat = Literal["terminal", "brief", "json", "markdown", "csv", "html"]

_TOP_SHOWN = {"terminal": 3, "markdown": 3, "html": 12}
_BY_TIME = "time"
_CHECK_HALF_FROM = 0.05  # share of the time; chosen: what a terminal shows in detail takes more


@dataclass(frozen=True)
class Selection:
    """The kernels that are shown, and their order.

    Options:
      nvtx (RANGE): Only launches inside this NVTX range; * and ? are wildcards.
      top (N): Kernels shown in detail, 0: all (default: 3; html: 12; json, csv: all).
      sort (KEY): Sort by time, name, count, order, or a quantity such as dram_busy (largest first).
    """

    kernel: str | None = None
    nvtx: str | None = None
    top: groups.Number | None = None
    sort: str = _BY_TIME

    def shown(self, format: str) -> int:
        """How many kernels are shown in detail, 0: all."""
        return _TOP_SHOWN.get(format, 0) if self.top is None else self.top


def analyze(
    paths: list[Recording],
    *,
    chosen: Selection,
    output: groups.Output[AnalysisFormat],
    rules: groups.RuleOptions,
    with_host: bool = False,
    without_counters: bool = False,
    ceilings: Ceilings | None = None,
    tried: ProgramTrial | None = None,
) -> None:
    """Show kernels by time, what limits them and estimated speedups.

    A terminal shows an overview, --kernel or --top the details; --format json has everything.

    Arguments:
      paths (FILE...): Reports (.ncu-rep, .ncu-repz), runs, folders, or timelines (.sqlite,
        .nsys-rep, and of torch.profiler .json, .json.gz).

    Options:
      with_host: Include computer name, paths and full command line in json, markdown, html.
      without_counters: Use only launches, durations, machine code and declared work: what is known
        where counters are locked.
      ceilings (FILE): Without counters: measured roofs (`profkit ceilings -o`) for the headroom,
        not the datasheet's.
      tried (FILE): Of a timeline: what `profkit try -o FILE -- PROGRAM` gave (default: try.json
        beside it).

    Examples:
      profkit analyze run.ncu-rep
      profkit analyze run.ncu-rep --kernel flash --top 1
      profkit analyze reports/ --format json -o all.json
      profkit analyze run.ncu-rep --format html -o run.html
      profkit analyze timeline.sqlite
      profkit analyze run --without-counters
      profkit analyze run --without-counters --ceilings h200.json
    """
    from profkit.analysis.run_files import TIMELINES
    from profkit.commands import reading

    if without_counters:
        if rules or chosen.sort != _BY_TIME:
            message = "--sort, --rules and --disable don't apply to --without-counters"
            raise UsageError(message, "leave them out")
        _without_counters(paths, chosen, output, ceilings)
        return
    if ceilings:
        raise UsageError("--ceilings: only without counters", "add --without-counters")
    if output.format != "html":
        paths = [reading.whole(path) for path in paths]
    if tried or any(path.name.endswith(TIMELINES) for path in paths):
        advice = rules.advice(None)
        _timelines(paths, chosen, advice, output, tried, with_host=with_host)
        return
    from profkit.report.catalog import catalog
    from profkit.rules.checklist import SHOWN

    sort, shown = chosen.sort, chosen.shown(output.format)
    reading.check_sort_key(sort)
    is_overview = output.format == "terminal" and chosen.top is None and chosen.kernel is None
    located = (0 if is_overview else SHOWN) if output.format == "terminal" else None
    advice = rules.advice(located)
    if output.format == "html":
        from profkit.commands.report import page_of

        if len(paths) > 1:
            message = f"--format html: one report per page, not {len(paths)}"
            raise UsageError(message, "name one of them")
        page = page_of(
            paths[0], chosen.kernel, chosen.nvtx, shown, advice, with_host=with_host, sort=sort
        )
        output.put(page)
        return
    all_checked = output.format != "terminal" or sort in catalog().checked
    half_from = 0.0 if all_checked else _CHECK_HALF_FROM
    reports, failures = reading.read_reports(
        paths, advice, kernel=chosen.kernel, nvtx=chosen.nvtx, check_half_from=half_from
    )
    rows = [
        (report, reading.sorted_groups(report, sort), checklist) for report, checklist in reports
    ]
    if rows and output.format in {"json", "csv"}:
        output.put(_data(rows, shown, output.format, with_host=with_host))
    elif rows:
        is_shared = output.format == "markdown"
        documents = (
            _overviews(rows, paths, output.width, sort, chosen.nvtx)
            if is_overview
            else _details(rows, shown, sort, is_shared=is_shared, with_host=with_host)
        )
        output.lay_out(*documents)
    report_failures(failures)


def _without_counters(
    paths: Sequence[Path],
    chosen: Selection,
    output: groups.Output[AnalysisFormat],
    ceilings: Path | None,
) -> None:
    from profkit.analysis import without_counters
    from profkit.analysis import without_counters_view as view
    from profkit.analysis.run_files import SUFFIXES
    from profkit.calibration.ceilings import read_ceilings, unfit
    from profkit.commands.reading import read_timeline
    from profkit.core.fingerprint import Device

    if len(paths) > 1 or output.format in {"csv", "html"}:
        message = "--without-counters: one report or run, as terminal, brief, markdown or json"
        raise UsageError(message, "name one of them")
    source = without_counters.source_of(paths[0])
    roofs = read_ceilings(ceilings) if ceilings else None
    measured = roofs.plain if roofs else {}
    if source.suffix in SUFFIXES:
        made = without_counters.analyze_report(source, chosen.kernel, chosen.nvtx, measured)
    elif chosen.kernel or chosen.nvtx:
        raise UsageError("--kernel and --nvtx don't apply to a timeline", "leave them out")
    else:
        made = without_counters.analyze_timeline(read_timeline(source), source, measured)
    names = {gpu.name for gpu in made.outlook.summary.gpus}
    if roofs and (other := next((name for name in names if unfit(roofs, Device(name=name))), None)):
        raise UsageError(f"{ceilings}: not the ceilings of {other}", "measure them on it")
    made = replace(made, path=str(paths[0]))
    shown = chosen.shown("terminal")
    result = view.without_counters_result(made)
    output.show(result, partial(view.without_counters_document, made, shown), dense=True)


def _timelines(
    paths: Sequence[Path],
    chosen: Selection,
    advice: groups.Advice,
    output: groups.Output[AnalysisFormat],
    tried: Path | None,
    *,
    with_host: bool,
) -> None:
    from profkit.analysis.run_files import TIMELINES

    if output.format == "html":
        message = "--format html: a timeline has no page of its own"
        raise UsageError(message, "give its run, or use profkit timeline --format html")
    are_timelines = all(path.name.endswith(TIMELINES) for path in paths)
    if tried and not (are_timelines and len(paths) == 1):
        raise UsageError("--tried is of one timeline", "with a report: profkit checklist --tried")
    if not are_timelines:
        raise UsageError("reports and timelines can't be shown together", "name one kind only")
    if chosen != Selection():
        message = "--kernel, --nvtx, --top and --sort don't apply to a timeline"
        raise UsageError(message, "leave them out")
    if output.format == "csv":
        message = "a timeline can't be written as csv"
        raise UsageError(message, "use terminal, markdown or json")
    from profkit.application.timeline_view import timeline_document, timelines_json
    from profkit.commands.reading import timeline_report

    reports = [timeline_report(path, advice, tried=tried) for path in paths]
    if output.format == "json":
        output.put(timelines_json(reports, with_host=with_host))
        return
    is_shared = output.format == "markdown"
    documents = (
        timeline_document(each, is_shared=is_shared, with_host=with_host) for each in reports
    )
    output.lay_out(*documents)


def _data(reports: Reports, top: int, format: AnalysisFormat, *, with_host: bool) -> str:
    if format == "csv":
        from profkit.report.csv import reports_csv

        return reports_csv([(report, listed) for report, listed, _ in reports], top)
    from profkit.analysis.json import report_result
    from profkit.core.typed_file import encode

    return encode(report_result(reports, top, with_host=with_host), dense=False)


def _overviews(
    reports: Reports, paths: Sequence[Path], width: int, sort: str, nvtx: str | None
) -> Iterator[Document]:
    from profkit.analysis.report_view import overview_document
    from profkit.analysis.run_files import beside

    for report, listed, checklist in reports:
        path = str(paths[0]) if len(paths) == len(reports) == 1 else report.path
        whole, files = structs.replace(report, groups=listed), beside(Path(report.path))
        yield overview_document(whole, path, checklist, width, sort, files, nvtx)


def _details(
    reports: Reports, top: int, sort: str, *, is_shared: bool, with_host: bool
) -> Iterator[Document]:
    """Reports with all findings, and without the host unless it is asked for, where `is_shared`."""
    from profkit.analysis.report_view import report_document
    from profkit.analysis.run_files import beside

    for report, listed, checklist in reports:
        yield report_document(
            structs.replace(report, groups=listed),
            listed[: top or None],
            checklist,
            sort,
            beside(Path(report.path)),
            complete=is_shared,
            with_host=with_host or not is_shared,
        )
