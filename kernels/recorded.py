"""Recordings read back: latencies, profiles, and what a profile says limits a kernel."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import profkit
from profkit.analysis.engine import Finding, diagnose
from profkit.analysis.latency import Pair, Timed, analyze_latency
from profkit.analysis.limits import floors
from profkit.analysis.rules import shipped_rules
from profkit.analysis.summary import LaunchSummary, ReportSummary
from profkit.ingest.latency import read_latencies
from profkit.render.latency import change
from profkit.render.text import percent

LATENCY = "latency.json"
REPORT = ".ncu-repz"
_WIDTH = 100

Read = Callable[[Path], ReportSummary]


def timed(file: Path) -> Mapping[str, Timed]:
    """The latencies of a file by their labels."""
    return {one.label: analyze_latency(one) for one in read_latencies(file).latencies}


def profile(file: Path) -> ReportSummary:
    """What a recorded report holds."""
    return profkit.load(file).summary


def slowest(report: ReportSummary) -> LaunchSummary:
    """The typical launch of the kernel that takes the most time."""
    return max(report.groups, key=lambda group: group.total).typical


def limit(report: ReportSummary) -> str:
    """What the profile says limits it: a finding that promises time, or what is busiest."""
    findings = diagnose(report, shipped_rules()).findings
    promises = bool(findings) and findings[0].estimate is not None
    return _told(findings) if promises else f"{_told(findings)}; {busiest(report)}"


def finding(report: ReportSummary) -> str:
    """The first finding, with the speed-up that it promises if it does."""
    return _told(diagnose(report, shipped_rules()).findings)


def _told(findings: Sequence[Finding]) -> str:
    if not findings:
        return "No rule holds"
    title, gain = findings[0].rule.title, findings[0].estimate
    return f"{title}: {gain.likely:.2f}x [{gain.low:.2f}, {gain.high:.2f}]" if gain else title


def busiest(report: ReportSummary) -> str:
    """The resource with the highest floor under the slowest kernel, and how busy it is."""
    highest = floors(slowest(report).values)[0]
    return f"{highest.label} {percent(highest.busy)} busy"


def verdict(pair: Pair) -> str:
    """A comparison in a cell: `1.44x faster [1.44, 1.44] IMPROVED`, and why one is INVALID."""
    why = f" ({'; '.join(pair.comparison.details)})" if pair.comparison.details else ""
    return f"{change(pair.comparison)} {pair.comparison.verdict.name}{why}"


def times_as_fast(times: Mapping[str, Timed], label: str, other: str) -> float:
    """How many times as fast one variant is as another, by their medians."""
    return times[other].summary.median / times[label].summary.median


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def paragraph(*sentences: str) -> list[str]:
    """Sentences in lines of a page's width."""
    text = " ".join(" ".join(sentences).split())
    return textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
