"""Reports as the sides of a comparison."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from profkit.analysis.report import Report
from profkit.analysis.run_files import latencies_of
from profkit.comparison.comparison import Diff, Side
from profkit.comparison.comparison import diff as compare
from profkit.comparison.matching import Mode
from profkit.comparison.timed_change import timings
from profkit.core.errors import UsageError


@lru_cache(maxsize=2)  # reports of a series are each the later one, then the earlier one
def side(report: Report) -> Side:
    """A report with its findings and its run's latencies."""
    timed = timings(latencies_of(report.path))
    return Side(report.summary, report.checklist(blamed=0), timed, report.line_costs)


def diff(
    before: Report | str | Path,
    after: Report | str | Path,
    *,
    match: str = "auto",
    names: Mapping[str, str] | None = None,
    force: bool = False,
) -> Diff:
    """What a change did: two reports, or the paths of two, compared kernel by kernel.

        >>> change = profkit.diff("before.ncu-rep", "after.ncu-rep")
        >>> change.kernels[0].speedup

    `match` is auto, name, order or nvtx; `names` maps old names of kernels to new ones. Where
    reports can't be compared the result is `refused` and says why, unless `force`. Raises as `load`
    does, and UsageError for another `match`.
    """
    if match not in tuple(Mode):
        raise UsageError(f"match {match!r} is not {', '.join(Mode)}")
    sides = [
        side(report if isinstance(report, Report) else Report.load(report))
        for report in (before, after)
    ]
    return compare(*sides, mode=Mode(match), names=names, force=force)
