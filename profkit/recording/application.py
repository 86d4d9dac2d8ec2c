"""A whole application: a timeline first, then ncu on the kernels that explain its steps.

The result is a run directory, also where ncu failed: the timeline alone answers most questions.
"""

import math
import shlex
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from msgspec import structs

from profkit.analysis.report import Report, load
from profkit.application.answer import Answer, answer
from profkit.application.causes import replayed
from profkit.application.kernel_kinds import COMMUNICATION, kernels_of
from profkit.application.parts import step_parts
from profkit.application.picks_file import (
    ANSWER,
    NODES,
    PICKS,
    PickEntry,
    PicksFile,
    UnprofiledStep,
    entry,
    identified,
)
from profkit.application.ranking import Pick, ranking
from profkit.application.run import ApplicationRun, application
from profkit.application.steps import Steps, first_rank, steady_steps
from profkit.capture import nsys
from profkit.capture.ncu import CountersRefused, NothingProfiled
from profkit.capture.process import run
from profkit.capture.watchdog import Stalled, Watchdog
from profkit.core.atomic_file import write_atomic
from profkit.core.errors import BadInput, EnvironmentProblem, ProfkitError, TargetFailed, UsageError
from profkit.core.regular_file import open_regular
from profkit.core.text_files import read_text
from profkit.core.typed_file import encode, read_file
from profkit.execution.injection import MODULE_CALLS, injected, module_ranges_hooks
from profkit.page.application import application_section, page_without_report
from profkit.page.data import RunParts
from profkit.page.page import page_html
from profkit.recording.application_plan import PLAN, ApplicationPlan, save_plan
from profkit.recording.early import EarlyProgram, EarlyPrograms, early_programs
from profkit.recording.launch_filter import LaunchFilter, Search, own_device
from profkit.recording.recording import Profiling, Recorded, Tell, refuse_nonsense, required
from profkit.recording.selection import cost, passes
from profkit.recording.unprofiled import WINDOW, timed_environment, unprofiled_step
from profkit.report.framing import walk
from profkit.report.join import join
from profkit.runs.manifest import Manifest
from profkit.runs.run import PARTIAL, Draft, verify
from profkit.timeline import RUN_FILE
from profkit.timeline.events import Events
from profkit.timeline.lost_work import lost_graphs
from profkit.timeline.reader import read
from profkit.ui.text import plural

TRACE = "cuda,nvtx,cublas,cudnn"
_PLAIN_TRACE = "cuda,nvtx"
# Of the budget, chosen: two timelines and ncu have to fit
_TIMELINE_SHARE = 0.35
_RUNNING_SHARE = 0.8  # of --timeout, chosen: in the rest nsys writes what it has recorded
_RECORDING = ("nsys", "nsys by node")
"""The stages in which the program runs for a timeline."""
_ANALYSIS = 15.0  # s of the budget, chosen: reading, judging and writing take about 10
_SLOWER = 3.0  # chosen: times that a program under ncu may take until its first picked launch
_LEFT_OUT = "not profiled: no time within --budget"
_HIDDEN = "not profiled: ncu passes over it behind other launches"
_TOO_LONG = "not profiled: ncu takes long, --budget TIME gives it more"
_REPLAYS = 26.0  # s of ncu without a budget. Chosen: then a profile takes about a minute
_WORTH_A_SECOND = 0.005  # of the step, chosen: 10% in 20 s, for which ncu is started again
_HIDDEN_HOST = 0.01  # of a step, chosen: a host that changes no more is hidden behind the GPU
_NAMED_CALLS = 4  # of each outermost module, chosen: three after the autotuners'
_LOCKSTEP = ("--communicator-shmem-num-peers", "--lockstep-kernel-launch")


@dataclass(frozen=True, kw_only=True)
class ApplicationOutcome(Recorded):
    """A saved run of an application, and why ncu recorded no report."""

    run: ApplicationRun
    answer: Answer
    failure: ProfkitError | None


def profile_application(
    plan: ApplicationPlan, tell: Tell, resumed: Path | None = None
) -> ApplicationOutcome:
    """Profile as planned, or go on with an unfinished run.

    `tell` gets (stage, detail). Raises as `profile`, but where ncu alone fails: that is in the
    outcome. Whatever ends it, a run stays of what is finished once the timeline is.
    """
    refuse_nonsense(plan)
    if plan.options.kernel or plan.options.launch_skip or plan.options.launch_count:
        remedy = "leave out --kernel, --launch-skip and --launch-count"
        raise UsageError("--app picks the launches itself", remedy)
    return _Application(plan, tell).application(resumed)


@dataclass(frozen=True, eq=False)
class _Program:
    """A program whose kernels are picked; `seconds` is the time that it takes."""

    events: Events
    steps: Sequence[Steps]
    seconds: float

    @property
    def processes(self) -> int:
        return len({stream.process for stream in self.events.streams})


class _OutOfTime(TargetFailed):
    """ncu was ended with the budget, as was asked for."""


class _Application(Profiling):
    """An application's profile on its way."""

    plan: ApplicationPlan
    _run: Draft
    _entries: tuple[PickEntry, ...] = ()
    _unprofiled: UnprofiledStep | None = None
    _finished: Collection[str] = ()  # recordings of a run that goes on
    _early = 0  # warnings before ncu: those that stay true when ncu goes on
    _is_run = False
    _timed: EarlyProgram | None = None
    _waiting: EarlyProgram | None = None

    def application(self, resumed: Path | None) -> ApplicationOutcome:
        plan = self.plan
        self._began = time.monotonic()
        with (
            self.draft(resumed and resumed.absolute()) as self._run,
            self._remedied(),
            self._started_early(resumed) as (self._timed, self._waiting),
        ):
            if resumed:
                self._go_on()
            events, nodes = self._timelines()
            kernels = nodes or events
            with self.stage("steps"):
                steps = steady_steps(kernels, plan.step)
                picks = _picks(kernels, steps, plan.explain)
                if plan.collectives:
                    picks += _collectives(kernels, first_rank(steps))
            program = _Program(kernels, steps, self._recording_time)
            with _used(self._timed, program) as timed:
                if self._is_run and self._unprofiled is None:
                    self._keep("unprofiled")
                    self._unprofiled = self._measured(events, program, timed)
            with ThreadPoolExecutor(1) as pool:
                beside = cache(partial(pool.submit, self._of_timeline, events, nodes))
                report, failure = self._profiled(program, picks, beside)
                early = beside()
            self._write_picks()
            with self.stage("answer"):
                program_run = structs.replace(early.result(), picks=self._entries, report=report)
                result = answer(program_run)
            with self.stage("write"):
                self.write(ANSWER, encode(result, dense=False))
                manifest = self._write_report(program_run, result, report)
                left_out = any(row.reason == _LEFT_OUT for row in self._entries)
                if left_out or (failure and not isinstance(failure, CountersRefused)):
                    manifest = structs.replace(manifest, unfinished="ncu")
                    self.warnings.append(f"unfinished: {self._way_on} goes on")
                else:
                    (self.folder / PLAN).unlink(missing_ok=True)
                folder = self.save(self._run, manifest)
        return ApplicationOutcome(
            folder=folder,
            stages=tuple(self.stages),
            warnings=tuple(self.warnings),
            run=program_run,
            answer=result,
            failure=failure,
        )

    def _of_timeline(self, events: Events, nodes: Events | None) -> ApplicationRun:
        """The application before ncu's report is there: this process waits for ncu meanwhile, and
        loads what it is going to draw with."""
        with suppress(ImportError):
            import matplotlib.backends.backend_agg  # noqa: F401
        run = application(self.plan.name, events, nodes or events, self._file, None)
        run.application.groups  # noqa: B018
        return run

    # A run that is not finished yet

    @property
    def _file(self) -> PicksFile:
        return PicksFile(
            nvtx=self.plan.step,
            explain=self.plan.explain,
            budget=self.plan.budget,
            unprofiled=self._unprofiled,
            picks=self._entries,
        )

    def _write_picks(self) -> None:
        write_atomic(self.folder / PICKS, encode(self._file, dense=False))

    def _keep(self, stage: str) -> None:
        """Keep what is finished as a run, before a `stage`.

        The manifest lists the timelines alone: other files are replaced before it is.
        """
        self._write_picks()
        save_plan(self.folder, self.plan)
        warnings = tuple(self.shareable_warnings[: self._early])
        manifest = structs.replace(
            self.manifest(names=(RUN_FILE, NODES)), unfinished=stage, warnings=warnings
        )
        self.save(self._run, manifest)
        self.folder = self._run.final
        self._run = Draft(self.folder, self.folder)
        self._is_run = True

    def _go_on(self) -> None:
        """Take over what an unfinished run has."""
        manifest, file = verify(self.folder), read_file(self.folder / PICKS, PicksFile)
        if self.gpu and manifest.gpu and self.gpu.name != manifest.gpu.name:
            raise EnvironmentProblem(
                f"{self.folder}: the run is of {manifest.gpu.name}, this is {self.gpu.name}",
                "record a new run",
            )
        self.stages[:0] = manifest.stages
        for warning in manifest.warnings:
            self.warn(warning)
        self._early = len(self.shareable_warnings)
        self._entries, self._unprofiled = file.picks, file.unprofiled
        self._finished = set() if manifest.unfinished == "nsys" else set(manifest.files)
        self._is_run = True

    @contextmanager
    def _remedied(self) -> Iterator[None]:
        """Say of what ends the profile how to go on with it."""
        try:
            yield
        except ProfkitError as error:
            if self._is_run:
                error.remedy = "; then ".join(filter(None, (error.remedy, self._way_on)))
            raise
        except KeyboardInterrupt as interruption:
            if self._is_run:
                interruption.add_note(f"go on with {self._way_on}")
            raise

    @property
    def _way_on(self) -> str:
        return f"`profkit profile --resume {shlex.quote(str(self.folder))}`"

    def _prepare(self) -> None:
        super()._prepare()
        self.nsys_tool = required("nsys", "Nsight Systems")
        if self.plan.collectives:
            self._check_collectives()

    def _write_report(
        self, program: ApplicationRun, result: Answer, report: Report | None
    ) -> Manifest:
        """Write the page, and what ncu's report says of the kernels; the run's manifest."""
        checklist = program.checklist
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

    def _timelines(self) -> tuple[Events, Events | None]:
        """The events with graphs as a whole, and those by node where there are graphs. Where nsys
        loses graphs as a whole, the events are those by node."""
        if RUN_FILE in self._finished:
            events = read(self.folder / RUN_FILE)
        else:
            events = self._recorded(RUN_FILE, "graph")
            if lost_graphs(events):
                self.warn(
                    "nsys lost GPU work of CUDA graphs as a whole: recorded again by kernel, which "
                    "slows them"
                )
                events = self._recorded(RUN_FILE, "node")
            self._early = len(self.shareable_warnings)
            if len(events.kernels) or len(events.graphs):
                self._keep(_RECORDING[1] if len(events.graphs) else "unprofiled")
        nodes: Events | None = None
        if NODES in self._finished:
            nodes = read(self.folder / NODES)
        elif len(events.graphs):
            try:
                nodes = self._recorded(NODES, "node")
            except (EnvironmentProblem, BadInput) as error:
                self.warn_of("the kernels of CUDA graphs are unknown", error)
        return events, nodes

    def _recorded(self, name: str, graphs: str) -> Events:
        """The events of a run of the program; raises EnvironmentProblem, TargetFailed, BadInput."""
        database = self.folder / name
        limits = (self.plan.budget, _TIMELINE_SHARE), (self.plan.timeout, _RUNNING_SHARE)
        duration = min((max(1, int(limit * share)) for limit, share in limits if limit), default=0)
        options = nsys.NsysOptions(TRACE, graphs, duration=duration, primary=True)
        with self.stage(_RECORDING[graphs == "node"]), self._named(name == NODES) as environment:
            try:
                try:
                    self.export_timeline(database, options, environment)
                except nsys.Refused:  # not every installation can trace libraries
                    options = structs.replace(options, trace=_PLAIN_TRACE)
                    self.export_timeline(database, options, environment)
            except nsys.ProgramFailed as error:
                status = f"the program ended with status {error.finished.status}"
                if not 0 < duration <= error.finished.seconds:
                    self._keep_the_beginning(database)
                    remedy = "run it without profkit first"
                    if self.plan.modules:
                        remedy += ", then with --no-modules"
                    raise TargetFailed(f"{status}: {error.last}", remedy) from None
                self.warn_of(f"{status} when its time was over", error.last)
        with self.stage("timeline"):
            return read(database)

    @contextmanager
    def _named(self, in_all_calls: bool) -> Iterator[Mapping[str, str]]:
        """The environment in which the modules of a torch program get ranges: in the first calls,
        or in all, which then also has what is captured late, where times aren't used."""
        if not self.plan.modules:
            yield self.environment
            return
        with tempfile.TemporaryDirectory(prefix=f"{PARTIAL}hooks-", dir=self.folder) as temporary:
            log = Path(temporary) / "log"
            calls = {MODULE_CALLS: str(0 if in_all_calls else _NAMED_CALLS)}
            yield injected({**self.environment, **calls}, module_ranges_hooks(), log)
            if log.exists():
                last = read_text(log).strip().rpartition("\n")[2]
                self.warn_of("not all modules are named", last)

    def _keep_the_beginning(self, database: Path) -> None:
        """Keep the timeline of a program that failed, if it has GPU work."""
        if self._is_run:
            return
        with suppress(ProfkitError):
            if len(read(database).kernels):
                self._keep(_RECORDING[0])

    @property
    def _recording_time(self) -> float:
        """Seconds that the program took under nsys."""
        return sum(stage.seconds for stage in self.stages if stage.name == _RECORDING[0])

    def _measured(
        self, events: Events, program: _Program, early: EarlyProgram | None
    ) -> UnprofiledStep | None:
        """A step's time without a profiler; None where it can't be had, or says nothing about the
        host, which is hidden behind the GPU."""
        steps = program.steps if events is program.events else steady_steps(events, self.plan.step)
        limit = min(self._recording_time + WINDOW, self._left() - self._recording_time)
        if limit < WINDOW or not steps or not _host_matters(events, steps):
            return None
        first = first_rank(steps)
        measure = partial(unprofiled_step, self.program(), first.median, len(first), early=early)
        try:
            with self.stage("unprofiled"):
                return measure(environment=self.environment, timeout=limit)
        except ProfkitError as error:
            self.warn_of("the host's times are assumed", error)
            return None

    # The picked kernels

    def _profiled(
        self, program: _Program, picks: Sequence[Pick], beside: Callable[[], object]
    ) -> tuple[Report | None, ProfkitError | None]:
        """ncu's report of the picks, and why it lacks some; the entries say which. What is done
        `beside` ncu begins when nothing is left to do before ncu: Python does one at a time."""
        if not picks:
            self.warn("no kernel was profiled: the timeline has none")
            return None, None
        path = next(self.folder.glob(f"{self.plan.name}.ncu-rep*"), None)
        report, failure = load(path) if path else None, None
        self._entries = tuple(entry(program.events, pick) for pick in picks)
        left_out: set[Pick] = set()
        asked = set[Pick]()
        for is_repeated in (False, True):
            self._settle(report, failure)
            rest = [
                pick
                for pick, row in zip(picks, self._entries, strict=True)
                if row.launch is None and pick not in left_out
            ]
            selection, beyond = self._fitting(program, rest)
            left_out.update(beyond)
            if is_repeated and not (selection and self._pays(program, rest, selection)):
                left_out.update(_of_groups(rest, selection) if selection else ())
                break
            self._keep("ncu")
            if selection is None:
                break
            asked.update(_of_groups(rest, selection))
            beside()
            report, failure = self._replayed_early(report, selection, program)
            if failure is not None and not isinstance(failure, NothingProfiled):
                break
        if isinstance(failure, NothingProfiled) and report is not None:
            failure = None
        if failure is not None:
            self.warn(str(failure), failure.message)
        if left_out:
            self.warn(f"{plural(len(left_out), 'kernel')} {self._reason}")
        is_met = failure is None or report is not None
        reasons = {pick: _HIDDEN for pick in picks if is_met and pick not in asked}
        reasons.update(dict.fromkeys(left_out, self._reason))
        self._settle(report, failure, [reasons.get(pick, "") for pick in picks])
        return report, None if isinstance(failure, _OutOfTime) else failure

    @property
    def _reason(self) -> str:
        """Why there is no time for a kernel."""
        return _TOO_LONG if self.plan.budget is None else _LEFT_OUT

    def _settle(
        self, report: Report | None, failure: ProfkitError | None, reasons: Sequence[str] = ()
    ) -> None:
        """Write into the entries what a report has of the picks, or why it lacks them, by reasons
        of their own where they have some."""
        rows = identified(self._entries, report.summary) if report else self._entries
        reason = f"not profiled: {failure.message}" if failure else "not profiled"
        if isinstance(failure, _OutOfTime):
            reasons = [self._reason] * len(rows)
        self._entries = tuple(
            row
            if row.launch is not None
            else structs.replace(row, reason=own or (row.reason if report else reason))
            for row, own in zip(rows, reasons or [""] * len(rows), strict=True)
        )

    def _fitting(
        self, program: _Program, picks: Sequence[Pick]
    ) -> tuple[LaunchFilter | None, Sequence[Pick]]:
        """The filter for the picks that there is time for, those of each group that take most of it
        first, and the others."""
        if not picks:
            return None, ()
        room = _REPLAYS if self.plan.budget is None else self._left() - program.seconds
        ordered = sorted(picks, key=lambda pick: -pick.share)
        firsts = {pick.group: pick for pick in reversed(ordered)}.values()
        ordered.sort(key=lambda pick: pick not in firsts)
        search = Search(program.events, program.steps, ordered[0].process)
        return search.fitting(ordered, lambda tried: self._seconds(tried) <= room)

    def _seconds(self, selection: LaunchFilter) -> float:
        """How long ncu is going to take."""
        return cost(selection.durations, passes(self.options())).seconds

    def _pays(self, program: _Program, missed: Sequence[Pick], selection: LaunchFilter) -> bool:
        """Whether to start ncu again for picks that it passed over: in a budget, or for much."""
        share = sum(pick.share for pick in _of_groups(missed, selection))
        seconds = program.seconds + self._seconds(selection)
        return self.plan.budget is not None or share >= _WORTH_A_SECOND * seconds

    def _started_early(self, resumed: Path | None) -> AbstractContextManager[EarlyPrograms]:
        """The program, started twice while it is recorded, where it may be."""
        if resumed or self.plan.collectives:
            return nullcontext((None, None))
        program, options = self.program(), self.options()
        return early_programs(program, self.environment, timed_environment, self.tool, options)

    def _replayed_early(
        self, earlier: Report | None, selection: LaunchFilter, program: _Program
    ) -> tuple[Report | None, ProfkitError | None]:
        """As `_replayed`, of the program that was started early where that succeeds."""
        waiting, self._waiting = self._waiting, None
        with _used(waiting, program) as early:
            if early is not None:
                report, failure = self._replayed(earlier, selection, program, early)
                if report is not earlier or isinstance(failure, CountersRefused | _OutOfTime):
                    return report, failure
        return self._replayed(earlier, selection, program)

    def _replayed(
        self,
        earlier: Report | None,
        selection: LaunchFilter,
        program: _Program,
        waiting: EarlyProgram | None = None,
    ) -> tuple[Report | None, ProfkitError | None]:
        """ncu's report, joined to an earlier one, and why it is not whole: of a run that was ended
        what can be read."""
        plan, rank = self.plan, first_rank(program.steps).process
        device = None if plan.collectives else own_device(program.events, rank)
        options = replace(
            self.options(),
            nvtx=None,
            kernel=selection.kernel,
            invocations=selection.invocations,
            launch_count=selection.launches * (program.processes if device is None else 1),
            device=device,
            kill=program.processes == 1,
            ranks_in_lockstep=len(program.steps) if plan.collectives else None,
            port=waiting.port if waiting else None,
        )
        silent = plan.patience + _SLOWER * program.seconds
        watchdog = Watchdog(idle=plan.patience, silent=silent, limit=self._left())
        failure: ProfkitError | None = None
        with tempfile.TemporaryDirectory(prefix=f"{PARTIAL}ncu-", dir=self.folder) as temporary:
            name = f"{Path(temporary).name}/{plan.name}.ncu-rep"
            try:
                begin = waiting.begin if waiting else None
                self.record(name, options, selection.launches, "ncu", watchdog, begin)
            except Stalled as stalled:
                kind = _OutOfTime if stalled.late else TargetFailed
                failure = kind(f"ncu was ended: {stalled}", _remedy(stalled))
            except ProfkitError as error:
                failure = error
            recorded = next(Path(temporary).glob(f"{plan.name}.*"), None)
            if recorded is None:
                return earlier, failure
            try:
                return self._saved(recorded, earlier), failure
            except ProfkitError as error:
                self.warn_of("ncu's report can't be read", error)
                return earlier, failure or error

    def _saved(self, recorded: Path, earlier: Report | None) -> Report:
        """A report as one of the run, in place of an earlier one that it is joined to; raises
        BadInput where it can't be read."""
        if earlier is not None:
            joined = recorded.with_name("joined.ncu-rep")
            join([earlier.path, recorded], joined)
            recorded = joined
        if self.plan.compress:
            recorded = self.compress(recorded)
        with self.stage("read"):
            with open_regular(recorded) as opened:
                walk(recorded, opened)  # one that is not whole must not be part of the run
            if earlier is not None:
                load(recorded).summary  # noqa: B018  (nor replace another)
            path = recorded.replace(self.folder / f"{self.plan.name}{recorded.suffix}")
            try:
                report = load(path)
                report.summary  # noqa: B018  (analysis is part of this stage's time)
            except ProfkitError:
                path.unlink()
                raise
        return report


@contextmanager
def _used(early: EarlyProgram | None, program: _Program) -> Iterator[EarlyProgram | None]:
    """A program that was started early if it can take the place of another start; it is ended in
    the end."""
    with closing(early) if early else nullcontext():
        yield early if early and early.is_held and program.processes == 1 else None


def _host_matters(events: Events, steps: Sequence[Steps]) -> bool:
    """Whether a step gets faster where the host does."""
    recorded, usual = replayed(events, steps, host=1.0), replayed(events, steps)
    if recorded is None or usual is None:
        return False
    return recorded.present - usual.present >= _HIDDEN_HOST * recorded.present


def _picks(events: Events, steps: Sequence[Steps], explain: float) -> tuple[Pick, ...]:
    """The picks of the first rank: others do the same, and wait for it."""
    if not steps:
        return ()
    return ranking(events, step_parts(events, first_rank(steps)), explain).picks


def _of_groups(picks: Sequence[Pick], selection: LaunchFilter) -> list[Pick]:
    return [pick for pick in picks if (pick.name, pick.configuration) in selection.groups]


def _collectives(events: Events, steps: Steps) -> tuple[Pick, ...]:
    """The collective that takes the most time in the steps of a rank."""
    kernels = events.kernels
    of_rank = [stream.process == steps.process for stream in events.streams]
    inside = (kernels.start >= steps.bounds[0]) & (kernels.start < steps.bounds[-1])
    inside &= np.array(of_rank, dtype=np.bool_)[kernels.stream]
    inside &= kernels_of(events, COMMUNICATION)
    rows = np.flatnonzero(inside)
    if not len(rows):
        return ()
    shapes = len(events.configurations)
    codes = kernels.name[rows].astype(np.int64) * shapes + kernels.configuration[rows]
    groups, firsts, group = np.unique(codes, return_index=True, return_inverse=True)
    times = np.bincount(group, weights=kernels.end[rows] - kernels.start[rows])
    most = int(times.argmax())
    name, shape = divmod(int(groups[most]), shapes)
    share = float(times[most]) / int(steps.bounds[-1] - steps.bounds[0])
    first = int(rows[firsts[most]])
    return (Pick(steps.process, steps.device, name, shape, first, share, 0, 0, ()),)


def _remedy(stalled: Stalled) -> str:
    if stalled.late:
        return "raise --budget, or profile a shorter run of the program"
    return "run one process (CUDA_VISIBLE_DEVICES=0), or see `profkit timeline` of the run"
