"""What the views of a report show in words beside the panels: recording, kernels, rules, gaps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from profkit.report import panels
from profkit.report.catalog import Quantity, catalog
from profkit.report.clocks import span
from profkit.report.quantities import NOT_COLLECTED, NOT_IN_VERSION
from profkit.ui.text import extent, literal, number, percent, plural
from profkit.ui.view import Grid, Panel, Row

if TYPE_CHECKING:
    from profkit.report.gpus import Gpu
    from profkit.report.session import Session
    from profkit.report.summary import Group, LaunchSummary, ReportSummary

_ABSENT = frozenset({NOT_COLLECTED, NOT_IN_VERSION})


def headline(report: ReportSummary) -> str:
    """The report in one line."""
    kernels = len({launch.name for launch in report.launches})
    shapes = len(report.groups)
    launches = f"{plural(len(report.launches), 'launch')} of {plural(kernels, 'kernel')}"
    if shapes > kernels:
        launches += f" in {plural(shapes, 'shape')}"
    line = f"{launches}, {number(report.total, 's')} of GPU time under ncu"
    if len(report.launches) < report.recorded:
        line += f"; kept of {report.recorded:,}, shares are of these"
    return line


def recording(report: ReportSummary, *, with_host: bool) -> Panel:
    """Where, when and how the report was recorded."""
    session = report.session
    versions = (("CUDA", session.cuda_version), ("driver", session.driver_version))
    recorded = (
        f"{session.created:%Y-%m-%d %H:%M:%S} UTC" if session.created else "date unknown",
        f"ncu {session.ncu_version or 'version unknown'}",
        *(f"{name} {version}" for name, version in versions if version),
    )
    command = session.command if with_host else session.shareable_command()
    host = ", ".join(filter(None, (session.host_name, session.os, session.processor)))
    rows = [
        *(Row("GPU", _gpu(gpu)) for gpu in report.gpus),
        Row("Recorded", ", ".join(recorded)),
        Row("Clocks", _clocks(report)),
        Row("Policy", _policy(report)),
        Row("Command", literal(command) or "not in the report"),
        Row("Host", literal(host) or "not in the report"),
    ]
    return Panel("Recording", tuple(rows if with_host else rows[:-1]))


def _gpu(gpu: Gpu) -> str:
    parts = (
        literal(gpu.name),
        f"CC {gpu.cc[0]}.{gpu.cc[1]}" if gpu.cc[0] else "",
        plural(gpu.sm_count, "SM") if gpu.sm_count else "",
        f"{gpu.l2_bytes / 2**20:.0f} MiB L2" if gpu.l2_bytes else "",
        f"{gpu.memory_bytes / 2**30:.0f} GiB" if gpu.memory_bytes else "",
        f"{number(gpu.dram_peak, 'B/s')} by memory clock and bus" if gpu.dram_peak else "",
    )
    return ", ".join(filter(None, parts))


def _clocks(report: ReportSummary) -> str:
    parts = []
    highest = max((gpu.clock for gpu in report.gpus), default=0.0)
    for label, name, limit in (("SM", "sm_clock", highest), ("DRAM", "dram_clock", 0.0)):
        # Nominal clocks are of launches that read one but are too short for that.
        nominal = [item.get(f"roof_{name}") for item in report.launches if name in item.values]
        if clocks := span(name, report.launches):
            maximum = f" held (chip: {number(limit, 'Hz')})" if limit else ""
            parts.append(f"{label} {_gigahertz(launch.get(name) for launch in clocks)}{maximum}")
        elif nominal:
            parts.append(f"{label} {_gigahertz(nominal)} nominal (too short to read)")
    return ", ".join(parts) or "not collected"


def _gigahertz(clocks: Iterable[float]) -> str:
    known = list(clocks)
    ends = (f"{clock / 1e9:.2f}" for clock in (min(known), max(known)))
    return f"{' to '.join(dict.fromkeys(ends))} GHz"


def _policy(report: ReportSummary) -> str:
    session = report.session
    if not session.clock_control:
        return "clock, cache and replay policy unknown (no command line in the report)"
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


def groups_grid(groups: Iterable[Group], sorted_by: str = "") -> Grid:
    """The table of kernels; with a column for the catalogue quantity that it is sorted by."""
    entry = catalog().quantities.get(sorted_by)
    rows = []
    for rank, group in enumerate(groups, start=1):
        measured = group.count - group.failed
        repeated = measured > 1
        spread = f"±{percent((group.high - group.low) / 2 / group.median)}" if repeated else ""
        rows.append(
            (
                str(rank),
                literal(group.name),
                f"{extent(group.grid)} / {extent(group.block)}",
                str(group.count) + (f" ({group.failed} failed)" if group.failed else ""),
                number(group.total, "s") if measured else "counters failed",
                number(group.median, "s") if repeated else "",
                spread,
                percent(group.share) if measured else "n/a",
                *((value_of(group.typical, entry),) if entry else ()),
            )
        )
    columns = ("#", "Kernel", "Grid / block", "Count", "Total", "Median", "Spread", "Share")
    return Grid("Kernels", (*columns, sorted_by) if entry else columns, tuple(rows))


def why_unknown(groups: Iterable[Group], name: str) -> list[str]:
    """Why the quantity that kernels are sorted by is unknown of some, each reason once."""
    reasons = dict.fromkeys(group.typical.why_missing(name) for group in groups)
    return [f"{name} n/a: {literal(reason)}" for reason in reasons if reason]


def about(group: Group) -> str:
    """Which launch stands for a group, with its time, shape and share, in one line."""
    text = panels.title(group.typical)
    measured = group.count - group.failed
    if measured > 1:
        is_median = group.typical.duration == group.median
        text += f" (the {'' if is_median else 'nearest below the '}median of {measured})"
    return f"{text}, {percent(group.share)} of the time"


def value_of(launch: LaunchSummary, entry: Quantity) -> str:
    """A quantity of a launch, an impossible one marked."""
    text = number(launch.get(entry.name), entry.unit)
    return text + ("?" if entry.name in launch.impossible else "")


def rule_rows(launch: LaunchSummary) -> tuple[Row, ...]:
    """What ncu's own rules advise; their estimates are theirs, and only global ones are time."""
    advice = []
    for rule in launch.rules:
        if rule.kind in {"optimization", "warning", "error"}:
            speedup = -1.0 if rule.speedup is None else rule.speedup
            whole = rule.scope == "global"
            claim = f"claims {percent(speedup)} {'less time' if whole else 'local'}"
            if speedup <= 0:
                claim = "" if rule.speedup is None else "no gain"
            head, dot, _ = rule.message.partition(". ")
            row = Row(literal(rule.title), claim, literal(head + dot.strip()))
            advice.append((-speedup if whole else 1.0, row))
    return tuple(row for _, row in sorted(advice, key=lambda item: item[0]))


def all_gaps(launches: Iterable[LaunchSummary], session: Session) -> list[str]:
    """What the report can't tell of some launches, each thing once."""
    return list(dict.fromkeys(filter(None, (gaps(launch, session) for launch in launches))))


def gaps(launch: LaunchSummary, session: Session) -> str:
    """What the report can't tell of a launch, and which sections might; "" when it is whole."""
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
        count = plural(len(wanted), "quantity")
        notes.append(f"{count} of the catalogue not collected: {remedy}")
    if absent:
        count = plural(len(absent), "quantity")
        notes.append(f"{count} that ncu {session.ncu_version} does not collect: a newer one may")
    return "; ".join(notes)
