"""A recorded application: the timeline of a run, its steps and parts, and its picked kernels."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from msgspec import Struct

from profkit.analysis.report import Report, load
from profkit.analysis.run_files import SUFFIXES
from profkit.application.parts import KERNELS, StepParts, step_parts
from profkit.application.picks_file import (
    NODES,
    PICKS,
    PickEntry,
    PicksFile,
    UnprofiledStep,
    is_application,
)
from profkit.application.ranking import Ranking, ranking
from profkit.application.ranks import Ranks, ranks_of
from profkit.application.steps import Steps, steady_steps
from profkit.application.steps import first_rank as first_rank
from profkit.core.errors import BadInput
from profkit.core.integrity import check_unchanged
from profkit.core.typed_file import read_file
from profkit.rules.checklist import Checklist
from profkit.rules.known_trial import NO_TRIAL, KnownTrial
from profkit.runs.run import read_manifest
from profkit.timeline import RUN_FILE
from profkit.timeline.events import Events
from profkit.timeline.reader import read


class ApplicationRun(Struct, frozen=True, eq=False, dict=True):
    """A recorded application. `parts` and `ranking` are of the rank on the first GPU.

    With CUDA graphs, `named` are the events of a second recording that names their kernels, and
    `ranking` is of it; otherwise it is `events`. `report` is ncu's of the picked kernels.
    `unprofiled` is a step's time without a profiler, None where it was not measured, `tried` what
    switches did to the program.
    """

    name: str
    events: Events
    named: Events
    steps: tuple[Steps, ...]
    parts: StepParts
    ranking: Ranking
    nvtx: str | None
    picks: tuple[PickEntry, ...]
    report: Report | None
    unprofiled: UnprofiledStep | None = None
    tried: KnownTrial = NO_TRIAL

    @property
    def known_step(self) -> float | None:
        """Seconds of a step without a profiler, to which a replay scales the host's times."""
        return self.unprofiled.seconds if self.unprofiled else None

    @cached_property
    def checklist(self) -> Checklist | None:
        """What the report says of the picked kernels."""
        return self.report.checklist() if self.report else None

    @cached_property
    def ranks(self) -> Ranks:
        """The ranks of the program on the first GPU."""
        return ranks_of(self.events, self.steps)

    @property
    def kernel_share(self) -> float:
        """The share of the step's time in which kernels compute."""
        return sum(map(self.parts.share, self.parts.group(KERNELS)))

    @property
    def scale(self) -> float:
        """From shares of the recording that names kernels to the one whose times count."""
        known = sum(use.share for use in self.ranking.kernels)
        return self.kernel_share / known if self.named is not self.events and known else 1.0


def read_run(folder: Path) -> ApplicationRun:
    """The application of a run, without what was tried.

    Raises BadInput for a run of another kind, and for files that were changed or can't be read.
    """
    if not is_application(folder):
        raise BadInput(f"{folder}: not a run of `profkit profile --app`", "check the path")
    check_unchanged(folder / PICKS)
    file = read_file(folder / PICKS, PicksFile, "record the run again")
    events = read(folder / RUN_FILE)
    named = read(folder / NODES) if (folder / NODES).is_file() else events
    reports = sorted(each for each in folder.iterdir() if each.suffix in SUFFIXES)
    report = load(reports[0]) if reports else None
    return application(read_manifest(folder).target, events, named, file, report)


def application(
    name: str, events: Events, named: Events, file: PicksFile, report: Report | None
) -> ApplicationRun:
    """The application of a timeline, and of what was picked from it."""
    steps = steady_steps(events, file.nvtx)
    if not steps:
        raise BadInput(f"{events.path}: no GPU work", "check that the program uses a GPU")
    parts = step_parts(events, first_rank(steps))
    ranked = ranking(events, parts, file.explain)
    if named is not events:
        again = steady_steps(named, file.nvtx)
        ranked = ranking(named, step_parts(named, first_rank(again)), file.explain)
    recorded = (file.nvtx, file.picks, report, file.unprofiled)
    return ApplicationRun(name, events, named, steps, parts, ranked, *recorded)
