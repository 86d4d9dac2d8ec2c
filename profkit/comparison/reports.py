"""Reports as the sides of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from profkit.analysis.report import Report
from profkit.analysis.run_files import latencies_of
from profkit.comparison.comparison import Diff, Side
from profkit.comparison.comparison import diff as compare
from profkit.comparison.matching import Mode
from profkit.comparison.timed_change import timings


@lru_cache(maxsize=2)  # reports of a series are each the later one, then the earlier one
def side(report: Report) -> Side:
    """A report with its findings and its run's latencies."""
    timed = timings(latencies_of(report.path))
    return Side(report.summary, report.checklist(blamed=0), timed, report.line_costs)


def diff(
    before: Report,
    after: Report,
    *,
    match: str = "auto",
    names: Mapping[str, str] | None = None,
    force: bool = False,
) -> Diff:
    """What a change did: two reports compared, kernel by kernel.

    `match` is auto, name, order or nvtx; `names` tells which kernel became which. Where reports
    can't be compared the result is `refused` and says why, unless `force`.
    """
    return compare(side(before), side(after), mode=Mode(match), names=names, force=force)
