"""The context of the report page's templates, and the numbers of its charts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from profkit.analysis.report import Report
from profkit.core.typed_file import plain
from profkit.core.version import __version__
from profkit.page import charts
from profkit.page.lead import anchor, kernel_count, lead
from profkit.page.sources import source_data
from profkit.report import overview, panels
from profkit.report.catalog import catalog
from profkit.report.names import file_name
from profkit.report.summary import Group, ReportSummary
from profkit.roofline.roofline import roofline
from profkit.roofline.roofline_view import tables
from profkit.rules import finding_text as words
from profkit.rules.checklist import SHOWN, Checklist
from profkit.rules.checklist_view import distances
from profkit.rules.finding import FindingGroup
from profkit.runs.manifest import Manifest
from profkit.ui.names import told_apart
from profkit.ui.text import literal, number

if TYPE_CHECKING:
    from profkit.timing.latency_format import LatencyFile
    from profkit.timing.variants import Variants

# characters; chosen: one line of a kernel's details, and half of the summary's width at 1400 px
_SHORT_NAME, _BRIEF_NAME = 64, 36
_FIRST_KERNELS = 6  # chosen: as high as the five findings next to them
# chosen: so that an estimate of 1.05x does not fill the axis where all estimates are small
_LEAST_LARGEST = 1.5
# share of the time; chosen: no fix of a shorter kernel gains more than the spread between runs
_WORTH_SOURCE = 0.005
# chosen: bounds the time of disassembly, omits the source of the last kernels of large reports
_MOST_INSTRUCTIONS = 12_000

Rows = list[tuple[str, str]]

_UNITS = {
    **dict.fromkeys(("sm_clock", "sm_clock_max", "memory_clock", "memory_clock_max"), "Hz"),
    "sm_clock_application": "Hz",
    **dict.fromkeys(("memory_bytes", "memory_used", "memory_total"), "B"),
}
_WATTS = ("power", "power_limit", "power_limit_default")


class RunParts(Struct, frozen=True):
    """Other files of a report's run; None for a missing file."""

    latency: LatencyFile | None = None
    variants: Variants | None = None
    manifest: Manifest | None = None


def page_data(
    whole: Report,
    checklist: Checklist,
    groups: Sequence[Group],
    top: int,
    run: RunParts,
    *,
    with_host: bool,
) -> dict[str, Any]:
    """The page of a report's kernels, the first `top` of which (0: all) are shown in detail;
    computer name, paths and arguments only `with_host`."""
    report, latency = whole.summary, run.latency
    detailed = groups[: top or None]
    file = file_name(report.path, with_host=with_host)
    short, brief = (
        told_apart([literal(group.name) for group in groups], width)
        for width in (_SHORT_NAME, _BRIEF_NAME)
    )
    measured = [group for group in groups if group.count > group.failed]
    leading = measured[:_FIRST_KERNELS]
    target = run.manifest.target if run.manifest else ""
    latency_words: ModuleType | None = None
    if latency:
        from profkit.timing import latency_view

        latency_words = latency_view
    indexes = [group.typical.index for group in detailed]
    timelines = {index: whole.kernel(index).timeline() for index in indexes}
    known = {index: timeline for index, timeline in timelines.items() if timeline}
    sources = _sources(whole, checklist, detailed)
    timed = latency.series if latency else ()
    roofs = roofline(report, latencies=timed, variants=run.variants)
    return {
        "version": __version__,
        "report": report,
        "groups": groups,
        "details": detailed,
        "timelines": known,
        "checklist": checklist,
        "roofline": roofs,
        "latency": latency,
        "run": run.manifest or Manifest(),
        "title": target or Path(file).name.partition(".ncu-rep")[0],
        "file": file,
        "key": _key,
        "report_key": _report_key(report),
        "lead": lead(checklist, report.session, literal(file), partial(_named, brief)),
        "anchor": anchor,
        "kernel_count": kernel_count,
        "shown": SHOWN,
        "distances": distances(report, checklist),
        "leading": leading,
        "others": [group for group in measured if group not in leading and group.share > 0],
        "meanings": catalog().quantities,
        "headroom_cell": words.kernel_columns(checklist)["Headroom"],
        "detailed": set(indexes),
        "sources": sources,
        "short": partial(_named, short),
        "brief": partial(_named, brief),
        "axis_percent": _axis_percent(checklist),
        "roofline_tables": tables(roofs, _SHORT_NAME),
        "latency_words": latency_words,
        "confidence": latency_words.LEVEL if latency_words else math.nan,
        "overview": overview,
        "panels": panels,
        "words": words,
        "nan": math.nan,
        "environment": environment(report, run.manifest, with_host=with_host),
        "provenance": provenance(report, run.manifest, file, with_host=with_host),
        "charts": {
            "roofline": charts.roofline_chart(roofs, short),
            "timelines": {index: charts.timeline_chart(each) for index, each in known.items()},
            "sources": sources,
            "latency": charts.latency_chart(latency) if latency else None,
        },
    }


def _sources(
    report: Report, checklist: Checklist, groups: Sequence[Group]
) -> Mapping[int, dict[str, object]]:
    """Lines and instructions of the longest kernels, up to _MOST_INSTRUCTIONS in all."""
    sources: dict[int, dict[str, object]] = {}
    left = _MOST_INSTRUCTIONS
    for group in groups:
        if left <= 0 or not group.share >= _WORTH_SOURCE:
            continue
        kernel = report.kernel(group.typical.index)
        size = kernel.instruction_count()
        if 0 < size <= left:
            view = kernel.source_view(checklist)
            sources[group.typical.index] = source_data(view, kernel.code(view))
            left -= size
    return sources


def _report_key(report: ReportSummary) -> str:
    """The key of this report's check marks in the browser's storage."""
    text = f"{Path(report.path).name} {report.session.created} {report.total!r}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _key(item: FindingGroup) -> str:
    """The key of an item of the checklist among those of its report."""
    text = f"{item.rule.name} {'estimate' if item.rank else ''}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _named(short: Mapping[str, str], kernel: Group | None) -> str:
    """A kernel's name, short; None is the timeline."""
    return words.TIMELINE if kernel is None else short[literal(kernel.name)]


def _axis_percent(checklist: Checklist) -> Any:
    """The position of a factor on a logarithmic axis from 1 to the largest, in percent."""
    estimates = (item.estimate for item in checklist.items)
    most = max((row.high for row in estimates if row), default=1.0)
    return lambda factor: round(100 * math.log(factor) / math.log(max(most, _LEAST_LARGEST)), 1)


def environment(
    report: ReportSummary, manifest: Manifest | None, *, with_host: bool
) -> list[tuple[str, Rows]]:
    """Titled rows: how the report was recorded, then the run's fingerprint."""
    recording = overview.recording(report, with_host=with_host)
    run = plain(manifest or Manifest())
    fingerprint = run["fingerprint"]
    versions = (
        run["versions"] | (fingerprint.get("versions") or {}) | (fingerprint.get("compiler") or {})
    )
    parts = {
        "Versions": versions,
        "GPU at the start of profiling": run["gpu"],
        "GPU": fingerprint.get("gpu"),
        "PyTorch settings": fingerprint.get("flags"),
        "Environment variables": fingerprint.get("variables"),
    }
    rows = [(recording.title, [(row.label, row.value) for row in recording.rows])]
    return [
        *rows,
        *((title, known) for title, facts in parts.items() if (known := _rows(facts or {}))),
    ]


def provenance(
    report: ReportSummary, manifest: Manifest | None, name: str, *, with_host: bool
) -> Rows:
    """The commands that made the report, the run and the page, and the run's policy."""
    session, run = report.session, manifest or Manifest()
    policy = (
        f"{key.replace('_', ' ')} {value}" for key, value in plain(run.policy).items() if value
    )
    rows = {
        "Report": name,
        "Page generated by": f"profkit {__version__}",
        "Recorded with": session.command if with_host else session.shareable_command(),
        "Run created": run.created,
        "Target": run.target,
        "Fingerprint, SHA-256": run.fingerprint_sha256 or "",
        "Policy": ", ".join(policy),
    }
    return [(label, value) for label, value in rows.items() if value]


def _rows(facts: Mapping[str, object]) -> Rows:
    """Labels and values of known facts; environment variables keep their names."""
    return [
        (name if name.isupper() else name.replace("_", " "), _value_text(name, value))
        for name, value in facts.items()
        if value is not None and value not in ([], ())
    ]


def _value_text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if name in _WATTS:
        return f"{value:.0f} W"
    if name == "temperature":
        return f"{value} °C"
    return number(float(value), _UNITS[name]) if name in _UNITS else str(value)
