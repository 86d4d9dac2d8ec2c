"""The context of the report page's templates, and the numbers of its charts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from profkit.core.typed_file import plain
from profkit.core.version import __version__
from profkit.page import charts
from profkit.page.lead import anchor, kernel_count, lead
from profkit.report import overview, panels
from profkit.report.catalog import catalog
from profkit.report.names import file_name
from profkit.report.summary import Group, ReportSummary
from profkit.roofline.roofline_view import tables
from profkit.rules import finding_text as words
from profkit.rules.checklist import SHOWN, Checklist
from profkit.rules.checklist_view import distances
from profkit.rules.finding import FindingGroup
from profkit.runs.manifest import Manifest
from profkit.ui.names import told_apart
from profkit.ui.text import literal, number

if TYPE_CHECKING:
    from profkit.report.phases import KernelTimeline
    from profkit.roofline.roofline import Outside, Roofline
    from profkit.timing.latency_format import LatencyFile

# characters; chosen: one line of a kernel's details, and half of the summary's width at 1400 px
_SHORT_NAME, _BRIEF_NAME = 64, 36
_FIRST_KERNELS = 6  # chosen: as high as the five findings next to them
# chosen: so that an estimate of 1.05x does not fill the axis where all estimates are small
_LEAST_LARGEST = 1.5
_SHARES = {
    "SM": "sm_busy",
    "Tensor": "tensor_busy",
    "L1": "l1_busy",
    "L2": "l2_busy",
    "DRAM": "dram_busy",
    "Occ.": "occupancy_achieved",
}
# as charts.js draws them
_LEVEL_SYMBOLS = {
    "dram": '<circle cx="6" cy="6" r="5"/>',
    "l2": '<path d="M6 0.5L11.5 6L6 11.5L0.5 6Z"/>',
    "l1": '<path d="M6 1L11.5 11L0.5 11Z"/>',
}

Rows = list[tuple[str, str]]

_UNITS = {
    **dict.fromkeys(("sm_clock", "sm_clock_max", "memory_clock", "memory_clock_max"), "Hz"),
    "sm_clock_application": "Hz",
    **dict.fromkeys(("memory_bytes", "memory_used", "memory_total"), "B"),
}
_WATTS = ("power", "power_limit", "power_limit_default")


class Content(Struct, frozen=True):
    """Everything that a page shows.

    `groups` are the report's kernels in the order to show them, `detailed` those of them shown in
    detail. `timelines` and `sources` are by the index of a kernel's typical launch. `latency` and
    `manifest` are the run's, None outside one.
    """

    report: ReportSummary
    groups: tuple[Group, ...]
    detailed: tuple[Group, ...]
    checklist: Checklist
    roofline: Roofline | None = None
    timelines: Mapping[int, KernelTimeline] = field(default_factory=dict)
    sources: Mapping[int, dict[str, object]] = field(default_factory=dict)
    latency: LatencyFile | None = None
    manifest: Manifest | None = None


def page_data(content: Content, *, with_host: bool) -> dict[str, Any]:
    """The page of a report; computer name, paths and arguments only `with_host`."""
    report, checklist, latency = content.report, content.checklist, content.latency
    file = file_name(report.path, with_host=with_host)
    short, brief = (
        told_apart([literal(group.name) for group in content.groups], width)
        for width in (_SHORT_NAME, _BRIEF_NAME)
    )
    detailed = {group.typical.index for group in content.detailed}
    timelines = {
        key: charts.timeline_chart(timeline)
        for key, timeline in content.timelines.items()
        if key in detailed
    }

    def brief_name(kernel: Group | None) -> str:
        return _named(kernel, brief)

    measured = [group for group in content.groups if group.count > group.failed]
    leading = measured[:_FIRST_KERNELS]
    target = content.manifest.target if content.manifest else ""
    latency_words: ModuleType | None = None
    if latency:
        from profkit.timing import latency_view

        latency_words = latency_view
    return {
        "version": __version__,
        "content": content,
        "report": report,
        "checklist": checklist,
        "roofline": content.roofline,
        "latency": latency,
        "run": content.manifest or Manifest(),
        "title": target or Path(file).name.partition(".ncu-rep")[0],
        "file": file,
        "key": _key,
        "report_key": _report_key(report),
        "lead": lead(
            checklist, report.session, literal(file), lambda kernel: _named(kernel, brief)
        ),
        "anchor": anchor,
        "kernel_count": kernel_count,
        "shown": SHOWN,
        "distances": distances(report, checklist),
        "leading": leading,
        "others": [group for group in measured if group not in leading and group.share > 0],
        "columns": _columns(),
        "shares": _SHARES,
        "headroom_cell": words.kernel_columns(checklist)["Headroom"],
        "detailed": detailed,
        "sources": content.sources,
        "short": lambda kernel: _named(kernel, short),
        "brief": brief_name,
        "axis_percent": _axis_percent(checklist),
        "level_symbols": _LEVEL_SYMBOLS,
        "roofline_tables": tables(content.roofline, _SHORT_NAME) if content.roofline else (),
        "latency_words": latency_words,
        "confidence": latency_words.LEVEL if latency_words else math.nan,
        "overview": overview,
        "panels": panels,
        "words": words,
        "nan": math.nan,
        "environment": environment(report, content.manifest, with_host=with_host),
        "provenance": provenance(report, content.manifest, file, with_host=with_host),
        "charts": {
            "roofline": charts.roofline_chart(content.roofline, short)
            if content.roofline
            else None,
            "timelines": timelines,
            "sources": content.sources,
            "latency": charts.latency_chart(latency) if latency else None,
        },
    }


def _report_key(report: ReportSummary) -> str:
    """The key of this report's check marks in the browser's storage."""
    text = f"{Path(report.path).name} {report.session.created} {report.total!r}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _key(item: FindingGroup) -> str:
    """The key of an item of the checklist among those of its report."""
    text = f"{item.rule.name} {'estimate' if item.rank else ''}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _named(kernel: Group | Outside | None, short: Mapping[str, str]) -> str:
    """A kernel's name, short; None is the timeline."""
    if kernel is None:
        return words.TIMELINE
    name = literal(kernel.name)
    return short.get(name, name)


def _columns() -> list[tuple[str, str, str]]:
    """The columns of the kernel table: sort key, heading, meaning."""
    meaning = catalog().quantities
    return [
        ("rank", "#", ""),
        ("name", "Kernel", "with its first finding"),
        ("share", "Share", "of the report's GPU time"),
        ("total", "Total", "GPU time of all launches under ncu"),
        ("count", "Count", "launches"),
        ("median", "Median", ""),
        ("spread", "Spread", "half the range (slowest minus fastest), relative to the median"),
        ("headroom", "Headroom", words.HEADROOM.partition(": ")[2]),
        *((name, label, meaning[name].meaning) for label, name in _SHARES.items()),
        ("registers_per_thread", "Regs", "registers per thread"),
        ("shape", "Grid / block", ""),
    ]


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
