"""A recorded application: the timeline of a run, its steps and parts, and its picked kernels."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from profkit.analysis.report import Report, load
from profkit.analysis.run_files import SUFFIXES
from profkit.application.application import Application, Process, read_application
from profkit.application.picks_file import (
    NODES,
    PICKS,
    PickEntry,
    PicksFile,
    UnprofiledStep,
    is_application,
)
from profkit.application.ranks import Ranks, ranks_of
from profkit.core.errors import BadInput
from profkit.core.integrity import check_unchanged
from profkit.core.typed_file import read_file
from profkit.rules.checklist import Checklist
from profkit.rules.known_trial import KnownTrial
from profkit.runs.run import read_manifest
from profkit.timeline import RUN_FILE
from profkit.timeline.events import Events
from profkit.timeline.reader import read


class ApplicationRun(Struct, frozen=True, eq=False, dict=True):
    """A recorded application. `report` is ncu's of the picked kernels. `unprofiled` is a step's
    time without a profiler, None where it was not measured."""

    name: str
    application: Application
    picks: tuple[PickEntry, ...]
    report: Report | None
    unprofiled: UnprofiledStep | None = None

    @property
    def events(self) -> Events:
        return self.application.events

    @property
    def process(self) -> Process:
        """The rank on the first GPU."""
        return self.application.processes[0]

    def with_trial(self, tried: KnownTrial) -> ApplicationRun:
        """The run with what switches did to the program."""
        return replace(self, application=replace(self.application, tried=tried))

    @cached_property
    def checklist(self) -> Checklist | None:
        """What the report says of the picked kernels."""
        return self.report.checklist() if self.report else None

    @cached_property
    def ranks(self) -> Ranks:
        """The ranks of the program on the first GPU."""
        return ranks_of(self.events, [each.steps for each in self.application.processes])


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
    known = file.unprofiled.seconds if file.unprofiled else None
    apart = named if named is not events else None
    read_ = read_application(events, file.nvtx, file.explain, apart, known)
    return ApplicationRun(name, read_, file.picks, report, file.unprofiled)
