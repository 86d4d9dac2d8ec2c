"""The picked kernels of an application, `profkit.picks/1`: what ncu was to profile, and what its
report holds of that."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from profkit.analysis.run_files import PICKED
from profkit.application.ranking import Pick
from profkit.core.typed_file import Amount, Count, File, Model, part, read_file, row_of
from profkit.report.summary import ReportSummary
from profkit.timeline.events import Events

PICKS, ANSWER = PICKED, "answer.json"
"""Its name in a run, and that of the answer."""
NODES = "timeline_nodes.sqlite"
"""The second timeline of a run with CUDA graphs: their kernels, whose times are not used."""


class PickEntry(Model, frozen=True, kw_only=True):
    """A picked kernel: its share of the step, and its launch in the report, or the reason why there
    is none."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    device: int
    share: Amount
    launch: Count | None = None
    reason: str = ""


class UnprofiledStep(Model, frozen=True, kw_only=True):
    """Seconds of a step without a profiler: what was timed, and how many of these."""

    seconds: Amount
    source: str
    count: Count = 1


class PicksFile(File, frozen=True, kw_only=True, tag="profkit.picks/1"):
    """How an application was recorded; `budget` in seconds. Without `unprofiled` it isn't known how
    much nsys slowed down the host."""

    nvtx: str | None = None
    explain: Amount
    budget: Amount | None = None
    unprofiled: UnprofiledStep | None = None
    picks: tuple[PickEntry, ...] = ()


def is_application(path: Path) -> bool:
    """Whether a path is the run of an application."""
    return path.is_dir() and (path / PICKS).is_file()


def picks_of(folder: Path) -> PicksFile | None:
    """How an application's run was recorded; None for other folders."""
    if not is_application(folder):
        return None
    return read_file(folder / PICKS, PicksFile, "record the run again")


def entry(events: Events, pick: Pick, reason: str = "") -> PickEntry:
    """The entry of a pick that is not profiled (yet)."""
    shape = events.configurations[pick.configuration]
    name, place = events.kernel_names[pick.name].name, part(pick, "device", "share")
    return row_of(PickEntry, shape, kernel=name, **place, launch=None, reason=reason)


def identified(picks: Sequence[PickEntry], report: ReportSummary) -> tuple[PickEntry, ...]:
    """The picks with their launches in a report: those of the same name, grid and block."""
    return tuple(_identified(pick, report) for pick in picks)


def _identified(pick: PickEntry, report: ReportSummary) -> PickEntry:
    named = [launch for launch in report.launches if launch.name == pick.kernel]
    for launch in reversed(named):  # the first ones may be of the program's start
        if (launch.grid, launch.block) == (pick.grid, pick.block) and not launch.failed:
            return structs.replace(pick, launch=launch.index, reason="")
    lacking = "grid and block" if named else "name"
    return structs.replace(pick, reason=f"not identified: ncu met no launch of this {lacking}")
