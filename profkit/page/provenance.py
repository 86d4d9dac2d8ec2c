"""Where the page's numbers come from: recording, machine, software, commands and policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from profkit.core.typed_file import plain
from profkit.core.version import __version__
from profkit.report import overview
from profkit.report.summary import ReportSummary
from profkit.runs.manifest import Manifest
from profkit.ui.text import number

Rows = list[tuple[str, str]]

_UNITS = {
    **dict.fromkeys(("sm_clock", "sm_clock_max", "memory_clock", "memory_clock_max"), "Hz"),
    "sm_clock_application": "Hz",
    **dict.fromkeys(("memory_bytes", "memory_used", "memory_total"), "B"),
}
_WATTS = ("power", "power_limit", "power_limit_default")


def environment(
    report: ReportSummary, manifest: Manifest | None, *, with_host: bool
) -> list[tuple[str, Rows]]:
    """Titled rows: how it was recorded, then what the run's fingerprint holds."""
    recording = overview.recording(report, with_host=with_host)
    run = plain(manifest or Manifest())
    print_ = run["fingerprint"]
    versions = run["versions"] | (print_.get("versions") or {}) | (print_.get("compiler") or {})
    parts = {
        "Versions": versions,
        "GPU when profiling began": run["gpu"],
        "GPU": print_.get("gpu"),
        "Settings of torch": print_.get("flags"),
        "Variables": print_.get("variables"),
    }
    made = [(recording.title, [(row.label, row.value) for row in recording.rows])]
    return [*made, *((title, rows) for title, told in parts.items() if (rows := _rows(told or {})))]


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
        "Page written by": f"profkit {__version__}",
        "Recorded with": session.command if with_host else session.shareable_command(),
        "Run created": run.created,
        "Target": run.target,
        "Fingerprint, SHA-256": run.fingerprint_sha256 or "",
        "Policy": ", ".join(policy),
    }
    return [(label, value) for label, value in rows.items() if value]


def _rows(told: Mapping[str, Any]) -> Rows:
    """What is known, the names of variables as they are."""
    return [
        (name if name.isupper() else name.replace("_", " "), _word(name, value))
        for name, value in told.items()
        if value is not None and value not in ([], ())
    ]


def _word(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if name in _WATTS:
        return f"{value:.0f} W"
    if name == "temperature":
        return f"{value} °C"
    return number(float(value), _UNITS[name]) if name in _UNITS else str(value)
