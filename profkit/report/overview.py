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
    from profkit.report.reader import RuleResult
    from profkit.report.session import Session
    from profkit.report.summary import Group, LaunchSummary, ReportSummary

_ABSENT = frozenset({NOT_COLLECTED, NOT_IN_VERSION})


def headline(report: ReportSummary) -> str:
    """The report in one line."""
    kernels = len({launch.name for launch in report.launches})
    shapes = len(report.groups)
    what = f"{plural(len(report.launches), 'launch')} of {plural(kernels, 'kernel')}"
    if shapes > kernels:
        what += f" in {plural(shapes, 'shape')}"
    line = f"{what}, {number(report.total, 's')} of GPU time under ncu"
    if len(report.launches) < report.recorded:
        line += f"; kept of {report.recorded:,}, shares are of these"
    return line


def recording(report: ReportSummary, *, with_host: bool) -> Panel:
    """Where, when and how the report was recorded."""
    session = report.session
    rows = [*(Row("GPU", _gpu(report, at)) for at in range(len(report.gpus)))]
    rows.append(Row("Recorded", _recorded(session)))
    rows.append(Row("Clocks", _clocks(report)))
    rows.append(Row("Policy", _policy(report)))
    command = session.command if with_host else session.shareable_command()
    rows.append(Row("Command", literal(command) or "not in the report"))
    if with_host:
        host = ", ".join(filter(None, (session.host_name, session.os, session.processor)))
        rows.append(Row("Host", literal(host) or "not in the report"))
    return Panel("Recording", tuple(rows))


def _gpu(report: ReportSummary, at: int) -> str:
    gpu = report.gpus[at]
    parts = [
        literal(gpu.name),
        f"CC {gpu.cc[0]}.{gpu.cc[1]}" if gpu.cc[0] else "",
        plural(gpu.sm_count, "SM") if gpu.sm_count else "",
        f"{gpu.l2_bytes / 2**20:.0f} MiB L2" if gpu.l2_bytes else "",
        f"{gpu.memory_bytes / 2**30:.0f} GiB" if gpu.memory_bytes else "",
        f"{number(gpu.dram_peak, 'B/s')} by memory clock and bus" if gpu.dram_peak else "",
    ]
    return ", ".join(filter(None, parts))


def _recorded(session: Session) -> str:
    when = f"{session.created:%Y-%m-%d %H:%M:%S} UTC" if session.created else "date unknown"
    parts = [
        when,
        f"ncu {session.ncu_version}" if session.ncu_version else "ncu version unknown",
        f"CUDA {session.cuda_version}" if session.cuda_version else "",
        f"driver {session.driver_version}" if session.driver_version else "",
    ]
    return ", ".join(filter(None, parts))


def _clocks(report: ReportSummary) -> str:
    parts = []
    most = max((gpu.clock for gpu in report.gpus), default=0.0)
    for label, name in (("SM", "sm_clock"), ("DRAM", "dram_clock")):
        if clocks := span(name, report.launches):
            low, high = (launch.get(name) for launch in clocks)
            parts.append(f"{label} {_span(low, high)}")
            if label == "SM" and most:
                parts[0] += f" held (chip: {number(most, 'Hz')})"
        elif nominal := _nominal(report, name):
            parts.append(f"{label} {_span(min(nominal), max(nominal))} nominal (too short to read)")
    return ", ".join(parts) or "not collected"


def _nominal(report: ReportSummary, name: str) -> list[float]:
    """Nominal clocks of launches that read one but are too short for that."""
    return [launch.get(f"roof_{name}") for launch in report.launches if name in launch.values]


def _span(low: float, high: float) -> str:
    first, last = f"{low / 1e9:.2f}", f"{high / 1e9:.2f}"
    return f"{first} GHz" if first == last else f"{first} to {last} GHz"


def _policy(report: ReportSummary) -> str:
    session = report.session
    if not session.clock_control:
        return "clock, cache and replay policy unknown (no command line in the report)"
    words = []
    for name, value in (
        ("clock-control", session.clock_control),
        ("cache-control", session.cache_control),
        ("replay-mode", session.replay_mode),
    ):
        words.append(f"{name} {literal(value)}{' (default)' if name in session.assumed else ''}")
    passes = [
        launch.values["replay_passes"]
        for launch in report.launches
        if "replay_passes" in launch.values
    ]
    if passes:
        low, high = int(min(passes)), int(max(passes))
        words.append(plural(low, "pass") if low == high else f"{low} to {high} passes")
    return ", ".join(words)


def groups_grid(shown: Iterable[Group], sorted_by: str = "") -> Grid:
    """The table of kernels; with a column for the catalogue quantity that it is sorted by."""
    entry = catalog().quantities.get(sorted_by)
    rows = []
    for rank, group in enumerate(shown, start=1):
        measured = group.count - group.failed
        rows.append(
            (
                str(rank),
                literal(group.name),
                f"{extent(group.grid)} / {extent(group.block)}",
                str(group.count) + (f" ({group.failed} failed)" if group.failed else ""),
                number(group.total, "s") if measured else "counters failed",
                number(group.median, "s") if measured > 1 else "",
                _spread(group) if measured > 1 else "",
                percent(group.share) if measured else "n/a",
                *((value_of(group.typical, entry),) if entry else ()),
            )
        )
    columns = ("#", "Kernel", "Grid / block", "Count", "Total", "Median", "Spread", "Share")
    return Grid("Kernels", (*columns, sorted_by) if entry else columns, tuple(rows))


def why_unknown(shown: Iterable[Group], name: str) -> list[str]:
    """Why the quantity that kernels are sorted by is unknown of some, each reason once."""
    reasons = dict.fromkeys(
        reason for group in shown if (reason := group.typical.why_missing(name))
    )
    return [f"{name} n/a: {literal(reason)}" for reason in reasons]


def about(group: Group) -> str:
    """Which launch stands for a group, with its time, shape and share, in one line."""
    text = panels.title(group.typical)
    measured = group.count - group.failed
    if measured > 1:
        is_median = group.typical.duration == group.median
        text += f" (the {'' if is_median else 'nearest below the '}median of {measured})"
    return f"{text}, {percent(group.share)} of the time"


def value_of(launch: LaunchSummary, entry: Quantity) -> str:
    """A quantity of a launch, marked when it can't be."""
    text = number(launch.get(entry.name), entry.unit)
    return text + ("?" if entry.name in launch.impossible else "")


def _spread(group: Group) -> str:
    return f"±{percent((group.high - group.low) / 2 / group.median)}"


def rule_rows(launch: LaunchSummary) -> tuple[Row, ...]:
    """What ncu's own rules advise; their estimates are theirs, and only global ones are time."""
    advice = [rule for rule in launch.rules if rule.kind in {"optimization", "warning", "error"}]
    ordered = sorted(advice, key=lambda rule: -_claimed(rule))
    return tuple(
        Row(literal(rule.title), _claim(rule), literal(_first_sentence(rule.message)))
        for rule in ordered
    )


def _claimed(rule: RuleResult) -> float:
    return rule.speedup if rule.speedup is not None and rule.scope == "global" else -1.0


def _claim(rule: RuleResult) -> str:
    if rule.speedup is None:
        return ""
    if rule.speedup <= 0:
        return "no gain"
    if rule.scope == "global":
        return f"claims {percent(rule.speedup)} less time"
    return f"claims {percent(rule.speedup)} local"


def _first_sentence(text: str) -> str:
    head, dot, _ = text.partition(". ")
    return head + "." if dot else text


def all_gaps(launches: Iterable[LaunchSummary], session: Session) -> list[str]:
    """What the report can't tell of some launches, each thing once."""
    return list(dict.fromkeys(filter(None, (gaps(launch, session) for launch in launches))))


def gaps(launch: LaunchSummary, session: Session) -> str:
    """What the report can't tell of a launch, and which sections might; "" when it is whole."""
    absent = [name for name, reason in launch.missing.items() if reason in _ABSENT]
    asked = [name for name, reason in launch.missing.items() if reason.startswith(NOT_COLLECTED)]
    wanted = [name for name in asked if name not in absent]
    said = []
    if wanted:
        sections = dict.fromkeys(catalog().quantities[name].section for name in wanted)
        add = f"add sections {', '.join(section for section in sections if section != 'any')}"
        full = "full" in session.options.get("set", "").split(",")
        how = add if full else f"record with ncu --set full, or {add}"
        said.append(f"{plural(len(wanted), 'quantity')} of the catalogue not collected: {how}")
    if absent:
        what = plural(len(absent), "quantity")
        said.append(f"{what} that ncu {session.ncu_version} does not collect: a newer one may")
    return "; ".join(said)
