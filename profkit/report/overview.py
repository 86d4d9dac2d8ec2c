"""Texts and tables of a report: recording, kernels, ncu's rules, missing quantities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import compress
from typing import TYPE_CHECKING

from profkit.report import panels
from profkit.report.catalog import Quantity, catalog
from profkit.report.checks import NOT_COLLECTED, NOT_IN_VERSION
from profkit.report.summary import span
from profkit.ui.document import Facts, Row, Table, code
from profkit.ui.text import extent, literal, number, percent, plural, quantity_text

if TYPE_CHECKING:
    from profkit.hardware.gpus import Gpu
    from profkit.report.session import Session
    from profkit.report.summary import Group, LaunchSummary, ReportSummary

_ABSENT = frozenset({NOT_COLLECTED, NOT_IN_VERSION})


def headline(report: ReportSummary) -> str:
    """The report in one line."""
    kernels = len({launch.name for launch in report.launches})
    shapes = len(report.groups)
    launches = f"{plural(len(report.launches), 'launch')} of {plural(kernels, 'kernel')}"
    if shapes > kernels:
        launches += f" in {plural(shapes, 'launch configuration')}"
    time = f"{number(report.total, 's')} of" if report.measured else "no valid"
    line = f"{launches}, {time} GPU time under ncu"
    if len(report.launches) < report.recorded:
        line += f"; selected from {report.recorded:,} launches, shares are of the selection"
    return line


def recording(report: ReportSummary, *, with_host: bool) -> Facts:
    """GPU, time, clocks, settings and command of the recording."""
    session = report.session
    versions = (("CUDA", session.cuda_version), ("driver", session.driver_version))
    recorded = (
        f"{session.created:%Y-%m-%d %H:%M:%S} UTC" if session.created else "date unknown",
        f"ncu {session.ncu_version or 'version unknown'}",
        *(f"{name} {version}" for name, version in versions if version),
    )
    command = session.command if with_host else session.shareable_command()
    machine = session.host
    host = ", ".join(filter(None, (machine.name, machine.os, machine.processor)))
    rows = [
        *(Row("GPU", _gpu(gpu)) for gpu in report.gpus),
        Row("Recorded", ", ".join(recorded)),
        Row("Clocks", _clocks(report)),
        Row("Settings", _settings(report)),
        Row("Command", literal(command) or "not in the report"),
        Row("Host", literal(host) or "not in the report"),
    ]
    return Facts("Recording", tuple(rows if with_host else rows[:-1]))


def _gpu(gpu: Gpu) -> str:
    parts = (
        literal(gpu.name),
        f"CC {gpu.cc[0]}.{gpu.cc[1]}" if gpu.cc[0] else "",
        plural(gpu.sm_count, "SM") if gpu.sm_count else "",
        f"{gpu.l2_bytes / 2**20:.0f} MiB L2" if gpu.l2_bytes else "",
        f"{gpu.memory_bytes / 2**30:.0f} GiB" if gpu.memory_bytes else "",
        f"{number(gpu.dram_peak, 'B/s')} by memory clock and bus width" if gpu.dram_peak else "",
    )
    return ", ".join(filter(None, parts))


def _clocks(report: ReportSummary) -> str:
    parts = []
    highest = max((gpu.clock for gpu in report.gpus), default=0.0)
    for label, name, limit in (("SM", "sm_clock", highest), ("DRAM", "dram_clock", 0.0)):
        # Nominal clocks: of launches that are too short to measure the clock.
        roofs = [item.get(f"roof_{name}") for item in report.launches if name in item.values]
        nominal = [clock for clock in roofs if not math.isnan(clock)]
        if clocks := span(name, report.launches):
            maximum = f" (max SM clock {number(limit, 'Hz')})" if limit else ""
            parts.append(f"{label} {_gigahertz(launch.get(name) for launch in clocks)}{maximum}")
        elif nominal:
            parts.append(f"{label} {_gigahertz(nominal)} nominal (too short to measure)")
    return ", ".join(parts) or "not collected"


def _gigahertz(clocks: Iterable[float]) -> str:
    known = list(clocks)
    ends = (f"{clock / 1e9:.2f}" for clock in (min(known), max(known)))
    return f"{' to '.join(dict.fromkeys(ends))} GHz"


def _settings(report: ReportSummary) -> str:
    session = report.session
    if not session.clock_control:
        return "unknown: the report has no command line"
    words = [
        f"{name} {literal(value)}{' (default)' if name in session.assumed else ''}"
        for name, value in (
            ("clock-control", session.clock_control),
            ("cache-control", session.cache_control),
            ("replay-mode", session.replay_mode),
        )
    ]
    counts = (launch.get("replay_passes") for launch in report.launches)
    if passes := [int(count) for count in counts if count == count]:
        low, high = min(passes), max(passes)
        words.append(plural(low, "pass") if low == high else f"{low} to {high} passes")
    return ", ".join(words)


_LEFT = 3  # columns of words: number, kernel, launch configuration
_SPREAD = "half of slowest minus fastest, relative to the median"


def kernels_table(
    groups: Iterable[Group],
    sorted_by: str = "",
    more: Mapping[str, Callable[[Group], str]] | None = None,
) -> Table:
    """The table of kernels, without empty columns; with `more` columns, and the catalog quantity
    that it is sorted by."""
    entry = catalog().quantities.get(sorted_by)
    rows = []
    for rank, group in enumerate(groups, start=1):
        measured = group.count - group.failed
        repeated = measured > 1
        spread = f"±{percent((group.high - group.low) / 2 / group.median)}" if repeated else ""
        rows.append(
            (
                str(rank),
                code(group.name),
                f"{extent(group.grid)} / {extent(group.block)}",
                str(group.count) + (f" ({group.failed} failed)" if group.failed else ""),
                number(group.total, "s") if measured else "counters failed",
                number(group.median, "s") if repeated else "",
                spread,
                percent(group.share) if measured else "n/a",
                *(cell(group) for cell in (more or {}).values()),
                *((value_of(group.typical, entry),) if entry else ()),
            )
        )
    columns = ["#", "Kernel", "Grid / block", "Count", "Total", "Median", "Spread", "Share"]
    columns += more or {}
    columns += [sorted_by] if entry else []
    shown = [any(row[place] for row in rows) for place in range(len(columns))]
    texts = (tuple(compress(row, shown)) for row in rows)
    return Table(
        "Kernels",
        tuple(compress(columns, shown)),
        tuple(texts),
        words=_LEFT,
        names=("Kernel",),
        legend=(("Spread", _SPREAD),),
    )


def why_unknown(groups: Iterable[Group], name: str) -> list[str]:
    """Why the sort quantity is missing for some kernels, each reason once."""
    reasons = dict.fromkeys(group.typical.why_missing(name) for group in groups)
    return [f"{name} n/a: {literal(reason)}" for reason in reasons if reason]


def about(group: Group) -> str:
    """The representative launch of a group: time, configuration and share, in one line."""
    text = panels.title(group.typical)
    measured = group.count - group.failed
    if measured > 1:
        is_median = group.typical.duration == group.median
        text += f" ({'' if is_median else 'nearest below the '}median of {measured} launches)"
    return f"{text}, {percent(group.share)} of GPU time"


def value_of(launch: LaunchSummary, entry: Quantity) -> str:
    """A quantity of a launch; an impossible value has a question mark."""
    text = quantity_text(entry.name, launch.get(entry.name), entry.unit)
    return text + ("?" if entry.name in launch.impossible else "")


def rule_rows(launch: LaunchSummary) -> tuple[Row, ...]:
    """Advice of ncu's rules with ncu's estimates, of which only global ones are of kernel time."""
    advice = []
    for rule in launch.rules:
        if rule.kind in {"optimization", "warning", "error"}:
            speedup = -1.0 if rule.speedup is None else rule.speedup
            whole = rule.scope == "global"
            claim = f"est. {'' if whole else 'local '}speedup {percent(speedup)}"
            if speedup <= 0:
                claim = "" if rule.speedup is None else "no speedup"
            row = Row(literal(rule.title), claim, literal(" ".join(rule.message.split())))
            advice.append((-speedup if whole else 1.0, row))
    return tuple(row for _, row in sorted(advice, key=lambda item: item[0]))


def all_gaps(launches: Iterable[LaunchSummary], session: Session) -> list[str]:
    """Quantities that the report lacks for some launches, each remark once."""
    return list(dict.fromkeys(filter(None, (gaps(launch, session) for launch in launches))))


def gaps(launch: LaunchSummary, session: Session) -> str:
    """Quantities that a launch lacks and the sections that collect them; "" without any."""
    absent = [name for name, reason in launch.missing.items() if reason in _ABSENT]
    wanted = [
        name
        for name, reason in launch.missing.items()
        if reason.startswith(NOT_COLLECTED) and reason not in _ABSENT
    ]
    notes = []
    if wanted:
        sections = dict.fromkeys(catalog().quantities[name].section for name in wanted)
        remedy = f"add sections {', '.join(section for section in sections if section != 'any')}"
        if "full" not in session.options.get("set", "").split(","):
            remedy = f"record with ncu --set full, or {remedy}"
        count = plural(len(wanted), "catalog quantity")
        notes.append(f"{count} not collected: {remedy}")
    if absent:
        count = plural(len(absent), "catalog quantity")
        notes.append(
            f"{count} not collected by ncu {session.ncu_version}; may be supported by newer ncu "
            "versions"
        )
    return "; ".join(notes)
