"""Recordings read back: latencies, profiles, and what a profile says limits a kernel."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import profkit
from profkit.report.floors import floors
from profkit.report.summary import LaunchSummary, ReportSummary
from profkit.rules.finding import Finding
from profkit.timing.latency import analyze_latency
from profkit.timing.latency_file import read_latencies
from profkit.timing.latency_format import Pair, Series
from profkit.timing.latency_view import change
from profkit.ui.text import percent

LATENCY = "latency.json"
REPORT = ".ncu-repz"
_WIDTH = 100


@dataclass(frozen=True)
class Profile:
    """What a recorded report holds, and its checklist."""

    summary: ReportSummary
    items: tuple[Finding, ...]


Read = Callable[[Path], Profile]


def report_of(folder: Path, side: str) -> Path:
    """The report of a side in a pair's folder, compressed or not."""
    compressed = folder / f"{side}{REPORT}"
    return compressed if compressed.is_file() else compressed.with_suffix(".ncu-rep")


def timed(file: Path) -> Mapping[str, Series]:
    """The latencies of a file by their labels."""
    return {one.label: analyze_latency(one) for one in read_latencies(file).latencies}


def profile(file: Path) -> Profile:
    """What a recorded report holds and what limits its kernels."""
    return profile_of(profkit.load(file))


def profile_of(report: profkit.Report) -> Profile:
    """The same of a report that was read."""
    return Profile(report.summary, report.checklist(blamed=0).items)


def slowest(report: Profile) -> LaunchSummary:
    """The typical launch of the kernel that takes the most time."""
    return max(report.summary.groups, key=lambda group: group.total).typical


def limit(report: Profile) -> str:
    """What the profile says limits it: a finding that promises time, or what is busiest."""
    items = report.items
    promises = bool(items) and items[0].estimate is not None
    return _told(items) if promises else f"{_told(items)}; {busiest(report)}"


def finding(report: Profile) -> str:
    """The first of the report's checklist, with the speed-up that it promises if it does."""
    return _told(report.items)


def _told(items: Sequence[Finding]) -> str:
    if not items:
        return "No rule holds"
    title, gain = items[0].rule.title, items[0].estimate
    return f"{title}: {gain.likely:.2f}x [{gain.low:.2f}, {gain.high:.2f}]" if gain else title


def busiest(report: Profile) -> str:
    """The resource with the highest floor under the slowest kernel, and how busy it is."""
    highest = floors(slowest(report).values)[0]
    return f"{highest.label} {percent(highest.busy)} busy"


def verdict(pair: Pair) -> str:
    """A comparison in a cell: `1.44x faster [1.44, 1.44] IMPROVED`, and why one is INVALID."""
    why = f" ({'; '.join(pair.comparison.details)})" if pair.comparison.details else ""
    return f"{change(pair.comparison)} {pair.comparison.verdict.name}{why}"


def times_as_fast(times: Mapping[str, Series], label: str, other: str) -> float:
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
