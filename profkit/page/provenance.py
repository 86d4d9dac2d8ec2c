"""Where the page's numbers come from: recording, machine, software, commands, files and hashes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from profkit.core.version import __version__
from profkit.report import overview
from profkit.report.summary import ReportSummary
from profkit.ui.text import literal, number

Json = dict[str, Any]
Rows = list[tuple[str, str]]

_HERTZ = ("sm_clock", "sm_clock_max", "memory_clock", "memory_clock_max", "sm_clock_application")
_BYTES = ("memory_bytes", "memory_used", "memory_total")
_WATTS = ("power", "power_limit", "power_limit_default")


def environment(
    report: ReportSummary, manifest: Mapping[str, Any] | None, *, with_host: bool
) -> list[Json]:
    """Titled rows: how it was recorded, then what the run's fingerprint holds."""
    recording = overview.recording(report, with_host=with_host)
    parts = [{"title": recording.title, "rows": [(row.label, row.value) for row in recording.rows]}]
    fingerprint = _mapping(_mapping(manifest).get("fingerprint"))
    for title, rows in (
        ("Versions", _versions(manifest, fingerprint)),
        ("GPU when profiling began", _device(_mapping(_mapping(manifest).get("gpu")))),
        ("GPU", _device(_mapping(fingerprint.get("gpu")))),
        ("Settings of torch", _plain(_mapping(fingerprint.get("flags")))),
        ("Variables", _plain(_mapping(fingerprint.get("variables")))),
    ):
        if rows:
            parts.append({"title": title, "rows": rows})
    return parts


def provenance(
    report: ReportSummary, manifest: Mapping[str, Any] | None, name: str, *, with_host: bool
) -> Json:
    """The commands and, of a run, its files with their SHA-256."""
    session = report.session
    told = _mapping(manifest)
    command = session.command if with_host else session.shareable_command()
    policy = _mapping(told.get("policy"))
    rows: Rows = [("Report", literal(name)), ("Page written by", f"profkit {__version__}")]
    if command:
        rows.append(("Recorded with", literal(command)))
    rows += [
        (label, literal(str(told[key])))
        for label, key in (
            ("Run created", "created"),
            ("Target", "target"),
            ("Fingerprint, SHA-256", "fingerprint_sha256"),
        )
        if told.get(key)
    ]
    if policy:
        shown = (f"{key.replace('_', ' ')} {value}" for key, value in policy.items() if value)
        rows.append(("Policy", literal(", ".join(shown))))
    files = _mapping(told.get("files"))
    return {
        "rows": rows,
        "stages": [
            (literal(str(stage["name"])), number(float(stage["seconds"]), "s"))
            for stage in told.get("stages") or ()
        ],
        "warnings": [literal(str(warning)) for warning in told.get("warnings") or ()],
        "files": [
            {"name": literal(file), "bytes": number(entry["bytes"], "B"), "sha256": entry["sha256"]}
            for file, entry in files.items()
        ],
    }


def _versions(manifest: Mapping[str, Any] | None, fingerprint: Mapping[str, Any]) -> Rows:
    own = _mapping(_mapping(manifest).get("versions"))
    return _plain({**own, **_mapping(fingerprint.get("versions")), **_compilers(fingerprint)})


def _compilers(fingerprint: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(fingerprint.get("compiler"))


def _device(told: Mapping[str, Any]) -> Rows:
    rows = []
    for name, value in told.items():
        if value is None or value in ([], ()):
            continue
        rows.append((_label(name), _with_unit(name, value)))
    return rows


def _with_unit(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _word(value)
    if name in _HERTZ:
        return number(float(value), "Hz")
    if name in _BYTES:
        return number(float(value), "B")
    if name in _WATTS:
        return f"{float(value):.0f} W"
    if name == "temperature":
        return f"{value} °C"
    return _word(value)


def _plain(told: Mapping[str, Any]) -> Rows:
    return [(_label(name), _word(value)) for name, value in told.items() if value is not None]


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return literal(", ".join(map(str, value)))
    return literal(str(value))


def _label(name: str) -> str:
    shown = name if name.isupper() else name.replace("_", " ")
    return literal(shown)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
