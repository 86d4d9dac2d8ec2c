"""What the report page shows: what its templates look at, and numbers for its charts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profkit.core.version import __version__
from profkit.page import charts
from profkit.page.provenance import environment, provenance
from profkit.page.sources import source_data
from profkit.report import overview, panels
from profkit.report.catalog import catalog
from profkit.report.names import file_name, told_apart
from profkit.report.summary import Group, ReportSummary
from profkit.rules import finding_text as words
from profkit.rules.checklist import Checklist, Item
from profkit.runs.manifest import Manifest
from profkit.ui.text import literal

if TYPE_CHECKING:
    from profkit.analysis.source_view import SourceView
    from profkit.report.phases import KernelTimeline
    from profkit.roofline.roofline import Outside, Roofline
    from profkit.timing.latency import LatencyReport

_SHORT_NAME, _BRIEF_NAME = 64, 36
_FIRST_KERNELS = 6
_LEAST_MOST = 1.5
_SHARES = {
    "SM": "sm_busy",
    "Tensor": "tensor_busy",
    "L1": "l1_busy",
    "L2": "l2_busy",
    "DRAM": "dram_busy",
    "Occ.": "occupancy_achieved",
}


@dataclass(frozen=True)
class Content:
    """All that a page is made of.

    `groups` are the report's kernels in the order to show them, `detailed` those of them shown in
    detail. `timelines` and `sources` are by the index of a kernel's typical launch. `latency` and
    `manifest` are the run's, None outside one.
    """

    report: ReportSummary
    groups: tuple[Group, ...]
    detailed: tuple[Group, ...]
    found: Checklist
    roofline: Roofline | None = None
    timelines: Mapping[int, KernelTimeline] = field(default_factory=dict)
    sources: Mapping[int, SourceView] = field(default_factory=dict)
    latency: LatencyReport | None = None
    manifest: Manifest | None = None


def page_data(content: Content, *, with_host: bool) -> dict[str, Any]:
    """The page of a report; computer name, paths and arguments only `with_host`."""
    report, found, latency = content.report, content.found, content.latency
    name = file_name(report.path, with_host=with_host)
    short, brief = (
        told_apart([literal(group.name) for group in content.groups], width)
        for width in (_SHORT_NAME, _BRIEF_NAME)
    )
    detailed = {group.typical.index for group in content.detailed}
    sources = {at: source_data(view) for at, view in content.sources.items() if at in detailed}
    timelines = {at: one for at, one in content.timelines.items() if at in detailed}
    measured = [group for group in content.groups if group.count > group.failed]
    leading = measured[:_FIRST_KERNELS]
    return {
        "version": __version__,
        "content": content,
        "report": report,
        "found": found,
        "roofline": content.roofline,
        "latency": latency,
        "run": content.manifest or Manifest(),
        "title": _title(content, name),
        "file": name,
        "key": _key,
        "report_key": _report_key(report),
        "lead": _lead(found, short),
        "leading": leading,
        "others": [group for group in measured if group not in leading and group.share > 0],
        "columns": _columns(),
        "shares": _SHARES,
        "detailed": detailed,
        "sources": sources,
        "short": lambda one: _named(one, short),
        "brief": lambda one: _named(one, brief),
        "along": _axis(found),
        "points_grid": lambda roofline: charts.points_grid(roofline, short),
        "settle": charts.settling_command(latency) if latency else "",
        "latency_words": _latency_words() if latency else None,
        "overview": overview,
        "panels": panels,
        "words": words,
        "nan": math.nan,
        "environment": environment(report, content.manifest, with_host=with_host),
        "provenance": provenance(report, content.manifest, name, with_host=with_host),
        "charts": {
            "roofline": charts.roofline_chart(content.roofline, short)
            if content.roofline
            else None,
            "timelines": {at: charts.timeline_chart(one) for at, one in timelines.items()},
            "sources": sources,
            "latency": charts.latency_chart(latency) if latency else None,
        },
    }


def _latency_words() -> Any:
    from profkit.timing import latency_view

    return latency_view


def _title(content: Content, name: str) -> str:
    target = content.manifest.target if content.manifest else ""
    return target or Path(name).name.partition(".ncu-rep")[0]


def _report_key(report: ReportSummary) -> str:
    """What tells this report from others where a browser keeps the ticks of many."""
    told = f"{Path(report.path).name} {report.session.created} {report.total!r}"
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _key(item: Item) -> str:
    """What tells a finding from others of its report."""
    at = item.group.typical.index if item.group else -1
    told = f"{item.rule.name} {item.group and item.group.name} {at}"
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def _named(one: Group | Outside | None, short: Mapping[str, str]) -> str:
    """A kernel's name, short; None is the timeline."""
    if one is None:
        return words.TIMELINE
    name = literal(one.name)
    return short.get(name, name)


def _lead(found: Checklist, short: Mapping[str, str]) -> Mapping[str, str]:
    """The answer in a sentence: what limits, where, and what a fix would give.

    Where another variant proves more than any fix promises, that.
    """
    first = next(iter(found.findings), None)
    if found.headline:
        finding = f"; first finding: {first.rule.title}" if first else ""
        gives = f"{words.proof_source(found.headline)}{finding}"
        return {"what": words.proof_line(found.headline), "where": "", "gives": gives}
    if first is None:
        what = "Can't tell" if found.inconclusive else "Nothing found"
        return {"what": what, "where": "", "gives": words.summary(found)}
    estimate = first.finding.estimate
    gain = f"a fix gives {words.gain(estimate)} here, " if estimate else ""
    gives = f"{gain}{words.whole_gain(first)}" if estimate else words.prospects(first)
    return {"what": first.rule.title, "where": _named(first.group, short), "gives": gives}


def _columns() -> list[tuple[str, str, str]]:
    """The columns of the table of kernels: by what they are sorted, heading, meaning."""
    meaning = catalog().quantities
    return [
        ("rank", "#", ""),
        ("name", "Kernel", "with the first finding on it"),
        ("share", "Share", "of the report's GPU time"),
        ("total", "Total", "GPU time of all launches, by ncu"),
        ("count", "Count", "launches"),
        ("median", "Median", ""),
        ("spread", "Spread", "half of slowest less fastest, of the median"),
        *((name, label, meaning[name].meaning) for label, name in _SHARES.items()),
        ("registers_per_thread", "Regs", "registers a thread"),
        ("shape", "Grid / block", ""),
    ]


def _axis(found: Checklist) -> Any:
    """Where a factor lies on a logarithmic axis from 1 to the largest, in per cent of it."""
    estimates = (item.finding.estimate for item in found.items)
    most = max((one.high for one in estimates if one), default=1.0)
    return lambda factor: round(100 * math.log(factor) / math.log(max(most, _LEAST_MOST)), 1)
