"""A whole application: a timeline first, then ncu on the kernels that explain its steps.

The result is a run directory, also where ncu failed: the timeline alone answers most questions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from msgspec import structs

from profkit.analysis.report import Report, load
from profkit.application.answer import Answer, answer
from profkit.application.kernel_kinds import COMMUNICATION, kernel_kind
from profkit.application.parts import step_parts
from profkit.application.picks_file import (
    ANSWER,
    NODES,
    PICKS,
    PickEntry,
    PicksFile,
    entry,
    identified,
)
from profkit.application.ranking import EXPLAINED, Pick, ranking
from profkit.application.run import ApplicationRun, application, first_rank
from profkit.application.steps import Steps, steady_steps
from profkit.capture import ncu, nsys
from profkit.capture.process import run
from profkit.capture.tools import find
from profkit.capture.watchdog import Stalled, Watchdog
from profkit.core.errors import BadInput, EnvironmentProblem, ProfkitError, TargetFailed, UsageError
from profkit.core.typed_file import encode
from profkit.page.application import application_section, page_without_report
from profkit.page.page import RunParts, page_html
from profkit.recording.launch_filter import LaunchFilter, launch_filter, own_device
from profkit.recording.recording import Plan, Profiling, Recorded, Tell, refuse_nonsense
from profkit.recording.selection import cost, passes
from profkit.report.join import join
from profkit.runs.manifest import Manifest
from profkit.timeline import RUN_FILE
from profkit.timeline.events import Events
from profkit.timeline.lost_work import lost_work
from profkit.timeline.reader import read
from profkit.ui.text import plural

TRACE = "cuda,nvtx,cublas,cudnn"
_PLAIN_TRACE = "cuda,nvtx"
# Of the budget, chosen: two timelines and ncu have to fit
_TIMELINE_SHARE = 0.35
_ANALYSIS = 15.0  # s of the budget, chosen: reading, judging and writing take about 10
_REPEATS = 3  # runs for kernels that ncu passed over before, chosen: each takes as long as a run
_SLOWER = 3.0  # chosen: times that a program under ncu may take until its first picked launch
_LEFT_OUT = "left out: no time within --budget"
_LOCKSTEP = ("--communicator-shmem-num-peers", "--lockstep-kernel-launch")


@dataclass(frozen=True)
class ApplicationPlan(Plan):
    """`step` is the NVTX range of a step, None: steps are found; `budget` the seconds that all may
    take, `explain` the share of the kernels' time that the picked ones are to explain. With
    `collectives` those of NCCL are profiled too. `patience` is the seconds without output and CPU
    time after which ncu is ended."""

    step: str | None = None
    budget: float | None = None
    explain: float = EXPLAINED
    patience: float = 60.0
    collectives: bool = False


@dataclass(frozen=True, kw_only=True)
class ApplicationOutcome(Recorded):
    """A saved run of an application, and why ncu recorded no report."""

    run: ApplicationRun
    answer: Answer
    failure: ProfkitError | None


def profile_application(plan: ApplicationPlan, tell: Tell) -> ApplicationOutcome:
    """Profile as planned.

    `tell` gets (stage, detail). Raises as `profile`, but where ncu alone fails: that is in the
    outcome.
    """
    refuse_nonsense(plan)
    if plan.options.kernel or plan.options.launch_skip or plan.options.launch_count:
        remedy = "leave out --kernel, --launch-skip and --launch-count"
        raise UsageError("--app picks the launches itself", remedy)
    return _Application(plan, tell).application()


@dataclass(frozen=True, eq=False)
class _Program:
    """A program whose kernels are picked; `seconds` is the time that it takes."""

    events: Events
    steps: Sequence[Steps]
    seconds: float

    @property
    def processes(self) -> int:
        return len({stream.process for stream in self.events.streams})

    @property
    def device(self) -> int | None:
        """The device of the first rank where others use other ones."""
        return own_device(self.events, first_rank(self.steps).process)


class _OutOfTime(TargetFailed):
    """ncu was ended with the budget, as was asked for."""


class _Application(Profiling):
    """An application's profile on its way."""

    plan: ApplicationPlan

    def application(self) -> ApplicationOutcome:
        plan = self.plan
        self._began = time.monotonic()
        with self.draft() as run_draft:
            events, nodes, seconds = self._timelines()
            with self.stage("steps"):
                kernels = nodes or events
                steps = steady_steps(kernels, plan.step)
                picks = _picks(kernels, steps, plan.explain)
                if plan.collectives:
                    picks += _collectives(kernels, first_rank(steps))
            entries, report, failure = self._profiled(_Program(kernels, steps, seconds), picks)
            file = PicksFile(
                nvtx=plan.step, explain=plan.explain, budget=plan.budget, picks=entries
            )
            self.write(PICKS, encode(file, dense=False))
            with self.stage("answer"):
                program_run = application(plan.name, events, nodes or events, file, report)
                result = answer(program_run)
            with self.stage("write"):
                self.write(ANSWER, encode(result, dense=False))
                folder = self.save(run_draft, self._write_report(program_run, result, report))
        return ApplicationOutcome(
            folder=folder,
            stages=tuple(self.stages),
            warnings=tuple(self.warnings),
            run=program_run,
            answer=result,
            failure=failure,
        )

    def _prepare(self) -> None:
        super()._prepare()
        self.nsys_tool = find("nsys")
        if self.nsys_tool is None:
            message = "nsys was not found"
            raise EnvironmentProblem(message, "install Nsight Systems, see `profkit doctor`")
        if self.plan.collectives:
            self._check_collectives()

    def _write_report(
        self, program: ApplicationRun, result: Answer, report: Report | None
    ) -> Manifest:
        """Write the page, and what ncu's report says of the kernels; the run's manifest."""
        checklist = report.checklist() if report else None
        if report is None or not checklist:
            self.write("report.html", page_without_report(program))
            return self.manifest(report, report.path.name if report else "")
        self.write_tables(report, checklist)
        self.draw(report)
        manifest = self.manifest(report, report.path.name)
        parts, section = RunParts(None, None, manifest), application_section(program, result)
        self.write("report.html", page_html(report, checklist, run=parts, application=section))
        return manifest

    def _check_collectives(self) -> None:
        """Raise EnvironmentProblem where ncu can't replay kernels that wait for other ranks."""
        text = run([self.tool.path, "--help"], environment=self.environment).output
        if not all(word in text for word in _LOCKSTEP):
            raise EnvironmentProblem(
                f"ncu {self.tool.version_text} can't profile collectives: their replay hangs",
                "leave out --collectives, or install an ncu whose --help lists "
                f"{' and '.join(_LOCKSTEP)}",
            )

    def _left(self) -> float:
        """Seconds of the budget that are left for ncu."""
        if self.plan.budget is None:
            return math.inf
        return self.plan.budget - (time.monotonic() - self._began) - _ANALYSIS

    # The timelines

    def _timelines(self) -> tuple[Events, Events | None, float]:
        """The events with graphs as a whole, those by node where there are graphs, and how long
        the program took. Where nsys loses graphs as a whole, the events are those by node."""
        began = time.monotonic()
        events = self._recorded(RUN_FILE, "graph")
        seconds = time.monotonic() - began
        if lost_work(events):
            self.warn(
                "nsys lost GPU work of CUDA graphs as a whole: recorded again by kernel, which "
                "slows them"
            )
            return self._recorded(RUN_FILE, "node"), None, seconds
        if not len(events.graphs):
            return events, None, seconds
        try:
            return events, self._recorded(NODES, "node"), seconds
        except (EnvironmentProblem, BadInput) as error:
            self.warn(
                f"the kernels of CUDA graphs are unknown: {error}",
                "the kernels of CUDA graphs are unknown",
            )
            return events, None, seconds

    def _recorded(self, name: str, graphs: str) -> Events:
        """The events of a run of the program; raises EnvironmentProblem, TargetFailed, BadInput."""
        database = self.folder / name
        duration = self.plan.budget and self.plan.budget * _TIMELINE_SHARE
        options = nsys.NsysOptions(TRACE, graphs, duration=duration, primary=True)
        with self.stage("nsys" if graphs == "graph" else "nsys by node"):
            try:
                try:
                    self.export_timeline(database, options)
                except nsys.ProgramFailed:
                    raise
                except nsys.NoTimeline:  # not every installation can trace libraries
                    self.export_timeline(database, structs.replace(options, trace=_PLAIN_TRACE))
            except nsys.ProgramFailed as error:
                raise TargetFailed(
                    f"the program ended with status {error.status}: {error.last}",
                    "run it without profkit first",
                ) from None
        with self.stage("timeline"):
            return read(database)

    # The picked kernels

    def _profiled(
        self, program: _Program, picks: Sequence[Pick]
    ) -> tuple[tuple[PickEntry, ...], Report | None, ProfkitError | None]:
        """The picks as far as they were profiled, ncu's report, and why there is none."""
        if not picks:
            self.warn("no kernel was profiled: the timeline has none")
            return (), None, None
        options = replace(self.options(), nvtx=None)
        chosen, selection = self._fitting(program, picks, options)
        entries = tuple(
            entry(program.events, pick, "" if place < chosen else _LEFT_OUT)
            for place, pick in enumerate(picks)
        )
        if selection is None:
            self.warn("no kernel was profiled: no time was left within --budget")
            return entries, None, None
        if chosen < len(picks):
            self.warn(f"{plural(len(picks) - chosen, 'kernel')} left out: --budget")
        name = f"{self.plan.name}.ncu-rep"
        report, failure = self._replayed(name, options, selection, program)
        late = isinstance(failure, _OutOfTime)
        if report is None:
            reason = f"not profiled: {failure.message}" if failure else "not profiled"
            return _missing(entries, _LEFT_OUT if late else reason), None, None if late else failure
        profiled = identified(entries[:chosen], report.summary)
        if late:
            profiled, failure = _missing(profiled, _LEFT_OUT), None
        elif failure is None:
            for _ in range(_REPEATS):
                rest = [pick for pick, row in zip(picks, profiled, strict=False) if row.reason]
                fuller = self._with_missed(report, options, program, rest)
                if fuller is None:
                    break
                report = fuller
                profiled = identified(profiled, report.summary)
        return (*profiled, *entries[chosen:]), report, failure

    def _with_missed(
        self, report: Report, options: ncu.NcuOptions, program: _Program, missed: Sequence[Pick]
    ) -> Report | None:
        """A report with kernels that ncu passed over; None where there are none, or no more.

        Behind a launch that it profiles ncu 2025.3 doesn't meet some of cuBLAS and cuDNN (H200); it
        does where the one before is not profiled: so these names alone are asked for.
        """
        if not missed:
            return None
        selection = launch_filter(program.events, program.steps, missed, before=0)
        if program.seconds + cost(selection.durations, passes(options)).seconds > self._left():
            self.warn(f"{plural(len(missed), 'kernel')} not identified: no time within --budget")
            return None
        more, _ = self._replayed("missed.ncu-rep", options, selection, program)
        if more is None:
            return None
        wanted = [entry(program.events, pick) for pick in missed]
        fuller = None
        if any(row.launch is not None for row in identified(wanted, more.summary)):
            joined = self.folder / "joined.ncu-rep"
            join([report.path, more.path], joined)
            report.path.unlink()
            fuller = load(self._packed(joined.rename(report.path.with_suffix(joined.suffix))))
        more.path.unlink()
        return fuller

    def _fitting(
        self, program: _Program, picks: Sequence[Pick], options: ncu.NcuOptions
    ) -> tuple[int, LaunchFilter | None]:
        """How many of the picks fit into the budget, and the filter for them."""
        replays = passes(options)
        for count in range(len(picks), 0, -1):
            selection = launch_filter(program.events, program.steps, picks[:count])
            if program.seconds + cost(selection.durations, replays).seconds <= self._left():
                return count, selection
        return 0, None

    def _replayed(
        self, name: str, options: ncu.NcuOptions, selection: LaunchFilter, program: _Program
    ) -> tuple[Report | None, ProfkitError | None]:
        """ncu's report, also one of a run that was ended, as far as it can be read."""
        plan = self.plan
        device = None if plan.collectives else program.device
        options = replace(
            options,
            kernel=selection.kernel,
            launch_skip=selection.skip,
            launch_count=selection.launches * (program.processes if device is None else 1),
            device=device,
            kill=program.processes == 1,
            ranks_in_lockstep=len(program.steps) if plan.collectives else None,
        )
        silent = plan.patience + _SLOWER * program.seconds
        watchdog = Watchdog(idle=plan.patience, silent=silent, limit=self._left())
        failure: ProfkitError | None = None
        path = self.folder / name
        try:
            path = self.record(name, options, selection.launches, "ncu", watchdog)
        except Stalled as stalled:
            kind = _OutOfTime if stalled.late else TargetFailed
            failure = kind(f"ncu was ended: {stalled}", _remedy(stalled))
        except ProfkitError as error:
            failure = error
        found = [path.with_suffix(ending) for ending in (".ncu-rep", ".ncu-repz")]
        path = next((file for file in found if file.is_file()), path)
        if failure is not None:
            self.warn(str(failure), failure.message)
        if not path.is_file():
            return None, failure
        path = self._packed(path)
        try:
            with self.stage("read"):
                report = load(path)
                report.summary  # noqa: B018  (analysis is part of this stage's time)
        except ProfkitError as error:
            path.unlink()
            self.warn(f"ncu's report can't be read: {error}", "ncu's report can't be read")
            return None, failure or error
        return report, failure

    def _packed(self, report: Path) -> Path:
        """The report as it is saved. It is read as such: to read it again would take as long."""
        return self.compress(report) if self.plan.compress else report


def _missing(entries: Sequence[PickEntry], reason: str) -> tuple[PickEntry, ...]:
    """The entries, those without a launch with a reason; one that is left out keeps its own."""
    return tuple(
        structs.replace(entry, reason=entry.reason if entry.reason == _LEFT_OUT else reason)
        if entry.launch is None
        else entry
        for entry in entries
    )


def _picks(events: Events, steps: Sequence[Steps], explain: float) -> tuple[Pick, ...]:
    """The picks of the first rank: others do the same, and wait for it."""
    if not steps:
        return ()
    return ranking(events, step_parts(events, first_rank(steps)), explain).picks


def _collectives(events: Events, steps: Steps) -> tuple[Pick, ...]:
    """The collective that takes the most time in the steps of a rank."""
    kernels = events.kernels
    of_rank = [stream.process == steps.process for stream in events.streams]
    exchanging = [kernel_kind(each.name) == COMMUNICATION for each in events.kernel_names]
    inside = (kernels.start >= steps.bounds[0]) & (kernels.start < steps.bounds[-1])
    inside &= np.array(of_rank, dtype=np.bool_)[kernels.stream]
    inside &= np.array(exchanging, dtype=np.bool_)[kernels.name]
    groups: dict[tuple[int, int], list[int]] = {}
    for row in np.flatnonzero(inside).tolist():
        group = int(kernels.name[row]), int(kernels.configuration[row])
        groups.setdefault(group, []).append(row)
    times = {
        group: int((kernels.end[rows] - kernels.start[rows]).sum())
        for group, rows in groups.items()
    }
    if not times:
        return ()
    name, shape = max(times, key=times.__getitem__)
    share = times[name, shape] / int(steps.bounds[-1] - steps.bounds[0])
    first = groups[name, shape][0]
    return (Pick(steps.process, steps.device, name, shape, first, share, 0, 0, ()),)


def _remedy(stalled: Stalled) -> str:
    if stalled.late:
        return "raise --budget, or profile a shorter run of the program"
    return "run one process (CUDA_VISIBLE_DEVICES=0), or see `profkit timeline` of the run"
