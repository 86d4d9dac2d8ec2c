"""The report page: one HTML file with its styles, scripts and data, which loads nothing.

Its Content-Security-Policy forbids the network and all scripts except the page's own, which it
lists by hash. Templates escape text from reports; data is embedded as JSON that can't end its
element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from profkit.analysis.report import Report
from profkit.analysis.run_files import latencies_of, variants_of
from profkit.core.errors import BadInput, ProfkitError, UsageError
from profkit.core.integrity import MANIFEST
from profkit.core.text_files import shipped_text
from profkit.page import charts
from profkit.page.data import RunParts, page_data
from profkit.runs.manifest import Manifest
from profkit.runs.run import read_manifest
from profkit.ui.template import content_policy, embedded, templates
from profkit.ui.text import count, extent, literal, number, percent, plural

if TYPE_CHECKING:
    from jinja2 import Environment

    from profkit.page.application import ApplicationSection
    from profkit.report.summary import Group
    from profkit.rules.checklist import Checklist
    from profkit.timing.latency_format import LatencyFile

DETAILED = 12
"""Kernels with details by default, most time first. Chosen: 12 summaries fit a screen."""

_CHARTS = "echarts.common.min.js"
_FILTERS: Mapping[str, Callable[..., Any]] = {
    "count": count,
    "extent": extent,
    "file_name": lambda path: Path(path).name,
    "levels": charts.levels,
    "literal": literal,
    "number": number,
    "percent": percent,
    "plural": plural,
    "precisions": charts.precisions,
    "product": math.prod,
    "steady_rates": charts.steady_rates,
    "working": charts.working,
}


def run_parts(report: Path) -> RunParts:
    """The other files of a report's run; None for one that is unreadable."""
    return RunParts(_latency(report), variants_of(report), _manifest(report))


def page_html(
    report: Report,
    checklist: Checklist,
    *,
    groups: Sequence[Group] | None = None,
    top: int = DETAILED,
    run: RunParts | None = None,
    with_host: bool = False,
    application: ApplicationSection | None = None,
) -> str:
    """The page of a report as one HTML document.

    `groups` are its kernels in the order to show them, most time first unless given; `top` of them
    (0: all) are shown in detail. `run` are the other files of its run, looked up unless passed;
    `application` is about the program whose kernels they are.
    """
    shown = tuple(report.summary.groups if groups is None else groups)
    parts = run or run_parts(report.path)
    if parts.latency:
        parts = structs.replace(parts, latency=judged(parts.latency))
    return render_page(
        page_data(report, checklist, shown, top, parts, with_host=with_host), application
    )


def _latency(report: Path) -> LatencyFile | None:
    """The timed latencies of a report's run; None where there are none that can be read."""
    try:
        saved = latencies_of(report)
        if saved is None:  # statistics take half a second to import
            return None
        from profkit.timing.latency import latency_report

        return latency_report(saved)
    except ProfkitError:
        return None


def judged(report: LatencyFile) -> LatencyFile:
    """The report with a verdict on each variant vs. the first, where its blocks allow one."""
    from profkit.timing.latency import compare_with

    if report.pairs or len(report.series) < 2:
        return report
    first, *others = report.series
    try:
        pairs = compare_with(first, others, thresholds=report.thresholds, floor=report.floor)
    except (UsageError, BadInput):
        return report
    return structs.replace(report, comparisons=tuple(pair.comparison for pair in pairs))


def _manifest(report: Path) -> Manifest | None:
    if not (report.parent / MANIFEST).is_file():
        return None
    try:
        return read_manifest(report.parent)
    except BadInput:
        return None


def render_page(page: Mapping[str, object], application: ApplicationSection | None = None) -> str:
    """The page of the data from `data.page_data`, as one HTML document."""
    scripts = [_text(name) for name in ("theme.js", _CHARTS, "charts.js", "page.js")]
    scripts += [application.script] if application else []
    first, *others = scripts
    page = dict(page) | {
        "policy": content_policy(scripts),
        "style": _text("page.css") + (application.style if application else ""),
        "application": application,
        "theme_script": first,
        "scripts": others,
        "data": embedded(page["charts"]),
    }
    return page_templates().get_template("page.html.j2").render(page).removesuffix("\n")


@cache
def page_templates() -> Environment:
    """The page's templates."""
    return templates("profkit.page", _FILTERS)


@cache
def _text(name: str) -> str:
    return shipped_text("profkit.page", f"assets/{name}")
