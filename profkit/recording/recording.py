"""A complete profile: check the target, record with ncu and nsys, read, analyze, save.

The result is a run directory (`profkit.runs.run`), or nothing.
"""

import math
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from profkit.analysis.json import report_json
from profkit.analysis.report import Report, load
from profkit.analysis.run_files import SCOUT
from profkit.analysis.without_counters import Analysis, analyze_timeline, save_code
from profkit.analysis.without_counters_view import without_counters_result
from profkit.capture import ncu, nsys
from profkit.capture.correctness import CheckFile, Status
from profkit.capture.doctor import WARNING, gpu_checks
from profkit.capture.environment import digest, fingerprint_without_torch
from profkit.capture.gpu import VISIBLE, GpuState, Selection, select
from profkit.capture.process import TimedOut, run
from profkit.capture.program_environment import failure_remedy, reduced_environment
from profkit.capture.sets import AUTO
from profkit.capture.tools import Tool, find
from profkit.capture.watchdog import Watchdog
from profkit.core.errors import BadInput, EnvironmentProblem, ProfkitError, TargetFailed, UsageError
from profkit.core.extras import lacking
from profkit.core.fingerprint import Device
from profkit.core.lock import gpu_lock
from profkit.core.regular_file import digest as file_digest
from profkit.core.regular_file import open_regular
from profkit.core.text_files import last_line
from profkit.core.timestamp import timestamp
from profkit.core.typed_file import encode, part, read_file, row_of
from profkit.core.version import __version__
from profkit.page.data import RunParts
from profkit.page.page import page_html
from profkit.recording.selection import check_autotuner, check_cost, choose, passes, selected
from profkit.report.summary import ReportSummary
from profkit.roofline.roofline import roofline
from profkit.rules.checklist import Checklist
from profkit.rules.checklist_view import checklist_markdown
from profkit.runs.manifest import DriverGpu, FileEntry, Manifest, Policy, Stage
from profkit.runs.run import (
    PARTIAL,
    Draft,
    draft,
    free_room,
    keep,
    listed,
    program_name,
    reopened,
)
from profkit.timeline import RUN_FILE, region
from profkit.timeline.events import Events
from profkit.timeline.reader import read
from profkit.timeline.redaction import scrub
from profkit.timeline.summary import TimelineSummary, summarize_timeline
from profkit.timing import measurement
from profkit.timing.latency_format import LatencyFile
from profkit.timing.results import DEFAULT
from profkit.timing.variants import read_variants

PACKED = ".ncu-repz"
_LEVEL = 3  # zstd; 79 MB become 5.7 MB in 0.3 s on two cores; at level 19 3.6 MB in 11 s
_ROOM_WANTED = 256 << 20  # bytes, chosen: a report and a timeline of some hundred launches fit
# Share of the half-precision roof, chosen: below it the disassembler (a third of a second) is not
# used to check FP16 counters, see profkit.report.quantities.evaluate.
_CHECK_HALF_FROM = 0.05
_POLICY = ("clock_control", "cache_control", "replay_mode")
_FAILED_CHECK = 6  # exit code of profkit.core.errors.TargetFailed
_SAMPLING = 30.0  # seconds a variant: 240 samples of 0.1 s, about what ncu takes for one such call
_KINDS: Mapping[int, type[ProfkitError]] = {2: UsageError, 4: EnvironmentProblem}
_FREE = "free disk space, or give --output another disk"

Tell = Callable[[str, str], None]


@dataclass(frozen=True)
class Plan:
    """The program to profile, and how.

    `program` is the command; a target script (its first word ends in .py) is checked first and
    profiled in the region that it marks, anything else from its start; with `plain` a script too,
    with `marked` in the region that it marks.
    `timeout` is seconds for each of the recording stages, `max_time` the most that ncu may take by
    the timeline's launches. `options.sections` may be `auto`: scout, and `then` the set `then` of
    the kernels that take the time. `samples` is for each variant; None: as
    many as a verdict needs, fewer where they would take over _SAMPLING seconds. Without counters a
    run is of what needs none, or with `require_counters` an error.
    """

    program: tuple[str, ...]
    variants: tuple[str, ...] = ()
    options: ncu.NcuOptions = field(default_factory=ncu.NcuOptions)
    out: Path = Path("reports")
    gpu: int | None = None
    timeout: float | None = None
    timeline: bool = True
    samples: int | None = None
    keep_nsys_rep: bool = False
    compress: bool = True
    max_time: float = math.inf
    then: str = "lean"
    keep_variables: tuple[str, ...] = ()
    plain: bool = False
    marked: bool = False
    require_counters: bool = False

    @property
    def is_target(self) -> bool:
        return not self.plain and self.program[0].endswith(".py")

    @property
    def name(self) -> str:
        """The script's name without its suffix, of Python's or of a launcher's; the program's."""
        return Path(self.program[0]).stem if self.is_target else program_name(self.program)


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A saved run: its folder, seconds by stage, warnings."""

    folder: Path
    stages: tuple[Stage, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Outcome(Recorded):
    """What a run holds; where counters were refused, an analysis without them in place of report
    and checklist."""

    report: ReportSummary | None = None
    checklist: Checklist | None = None
    without_counters: Analysis | None = None
    timeline: TimelineSummary | None
    checked: CheckFile | None
    latency: LatencyFile | None


def profile(plan: Plan, tell: Tell) -> Outcome:
    """Profile as planned.

    `tell` gets (stage, detail). Raises EnvironmentProblem, TargetFailed, UsageError, BadInput. It
    never leaves a process or an incomplete run behind.
    """
    refuse_nonsense(plan)
    return Profiling(plan, tell).run()


def timing_of(plan: Plan, variants: Sequence[str]) -> measurement.TimingPlan:
    """How the variants of a profile are timed: so that a verdict is possible, in bounded time."""
    script, kept = Path(plan.program[0]), plan.keep_variables
    return measurement.TimingPlan(
        subjects=(measurement.Subject(script, tuple(variants), keep_variables=kept),),
        arguments=plan.program[1:],
        samples=plan.samples or measurement.BLOCKS * DEFAULT.samples,
        blocks=measurement.BLOCKS,
        seconds=math.inf if plan.samples else _SAMPLING,
        gpu=plan.gpu,
        check=False,
    )


def refuse_nonsense(plan: Plan) -> None:
    """Raise UsageError for invalid requests, before anything runs."""
    if not plan.program:
        raise UsageError("nothing to profile", "give a target script, or `-- PROGRAM ARGUMENT...`")
    if plan.timeout is not None and not 0 < plan.timeout <= threading.TIMEOUT_MAX:
        raise UsageError(
            f"--timeout {plan.timeout:g} is not a valid time limit", "give seconds above 0"
        )
    if plan.variants and not plan.is_target:
        raise UsageError("--variant is for targets", "give a target script, before any `--`")
    is_auto = plan.options.sections == AUTO
    if is_auto and plan.options.launch_skip is not None:
        raise UsageError("--launch-skip is not for --set auto", "use --kernel or --nvtx")
    ncu.collected(replace(plan.options, sections=plan.then) if is_auto else plan.options)
    if plan.is_target and not Path(plan.program[0]).is_file():
        raise BadInput(f"{plan.program[0]}: no such target script", "check the path")
    if not plan.is_target and shutil.which(plan.program[0]) is None:
        raise _not_a_program(plan.program[0])


def _not_a_program(word: str) -> ProfkitError:
    if Path(word).is_dir():
        return BadInput(f"{word}: a directory, not a program", "check the path")
    if not Path(word).is_file():
        return BadInput(f"{word}: no such program", "check the path")
    if word.endswith(".py"):
        name = shlex.quote(word)
        remedy = f"use `-- python {name}`, or for a target `profkit profile {name}`"
        return UsageError(f"{word}: not an executable program", remedy)
    if os.access(word, os.X_OK):
        return UsageError(f"{word}: not on the PATH", f"use `-- ./{shlex.quote(word)}`")
    remedy = f"give a target script (.py) or a program; chmod +x {shlex.quote(word)} makes it one"
    return UsageError(f"{word}: not an executable program", remedy)


class Profiling:
    """One profile on its way: what its stages share."""

    tool: Tool
    gpu: GpuState | None
    folder: Path
    nsys_tool: Tool | None = None
    _checked: CheckFile | None = None
    _latency: LatencyFile | None = None
    _summary: TimelineSummary | None = None

    def __init__(self, plan: Plan, tell: Tell) -> None:
        self.plan = plan
        self.tell = tell
        self.out = plan.out.absolute()  # a target may change its folder
        self.stages: list[Stage] = []
        self.warnings: list[str] = []
        self.shareable_warnings: list[str] = []
        self.environment = reduced_environment(plan.keep_variables)

    def run(self) -> Outcome:
        plan = self.plan
        with self.draft() as run:
            self._checked = self._check() if plan.is_target else None
            if self._checked and plan.samples != 0:
                self._latency = self._time(self._checked)
            events = self._timeline() if plan.timeline else None
            try:
                recorded = self._report(events)
            except ncu.CountersRefused as refused:
                if plan.require_counters or events is None:
                    raise
                self.warn_of(refused.message, f"analyzed without them; {refused.remedy}")
                return self._without_counters(run, events)
            with self.stage("read"):
                report = load(recorded, check_half_from=_CHECK_HALF_FROM)
                report.summary  # noqa: B018  (analysis is part of this stage's time)
                self._summary = summarize_timeline(events) if events else None
            if plan.compress:
                recorded = self.compress(recorded)
            with self.stage("write"):
                variants = read_variants(self.folder)
                quantities = region.measure(events) if events else {}
                checklist = report.checklist(variants=variants, timeline=quantities)
                self.write_tables(report, checklist)
                self.draw(report)
                manifest = self.manifest(report, recorded.name)
                parts = RunParts(self._latency, variants, manifest)
                self.write("report.html", page_html(report, checklist, run=parts))
                folder = self.save(run, manifest)
        summary = structs.replace(report.summary, path=str(folder / recorded.name))
        return self._outcome(folder, report=summary, checklist=checklist)

    def _outcome(self, folder: Path, **content: Any) -> Outcome:
        return Outcome(
            folder=folder,
            stages=tuple(self.stages),
            warnings=tuple(self.warnings),
            timeline=self._summary,
            checked=self._checked,
            latency=self._latency,
            **content,
        )

    def _report(self, timeline: Events | None) -> Path:
        """ncu's report of the launches that a timeline tells."""
        options = self.options()
        kernels = selected(timeline, options) if timeline else None
        if timeline and kernels is not None:
            check_autotuner(timeline, kernels, options)
            check_cost(timeline, kernels, options, self.plan.max_time)
        expected = None if kernels is None else len(kernels)
        if options.sections == AUTO:
            options, expected = self._scout(options, expected)
        return self.record(f"{self.plan.name}.ncu-rep", options, expected)

    def _without_counters(self, run: Draft, timeline: Events) -> Outcome:
        """The run of what needs no counters: timing, timeline, and code where it can be had."""
        for report in self.folder.glob("*.ncu-rep*"):
            report.unlink()
        with self.stage("read"):
            save_code(timeline, self.folder, self.environment, self.program())
            analysis = analyze_timeline(timeline, self.folder / RUN_FILE)
            self._summary = summarize_timeline(timeline)
        with self.stage("write"):
            result = without_counters_result(structs.replace(analysis, path=self.plan.name))
            self.write("without_counters.json", encode(result))
            folder = self.save(run, self.manifest())
        return self._outcome(folder, without_counters=structs.replace(analysis, path=str(folder)))

    @contextmanager
    def draft(self, resumed: Path | None = None) -> Iterator[Draft]:
        """A folder for the run, or that of an unfinished one, while no other profile uses the GPU;
        raises EnvironmentProblem for what a system refuses."""
        try:
            with self.stage("prepare"):
                self._prepare()
            locked = gpu_lock(self.selection.lock)
            opened = reopened(resumed) if resumed else draft(self.out, self.plan.name)
            with locked, opened as run:
                self.folder = run.folder
                yield run
        except OSError as error:
            reason = error.strerror or error
            raise EnvironmentProblem(f"{self.plan.out}: {reason}", _FREE) from error

    def _prepare(self) -> None:
        self.tool, self.selection = required("ncu", "Nsight Compute"), self._selection()
        self.gpu = self.selection.gpu
        check_room(self.out)
        self._sections = _sections(self.plan.options.sections)
        for name in self.plan.keep_variables:
            if name not in os.environ:
                unset = "a variable of --keep-env is not set"
                self.warn(f"--keep-env {name}: it is not set", unset)

    def write(self, name: str, text: str) -> None:
        """Write a file of the run."""
        (self.folder / name).write_text(text, encoding="utf-8")

    def save(self, run: Draft, manifest: Manifest) -> Path:
        """Make the draft a run; its folder, from the current one."""
        return self.plan.out / keep(run, manifest).relative_to(self.out)

    def warn(self, warning: str, shareable: str = "") -> None:
        """Show a warning; `shareable` goes into the manifest where `warning` may be private."""
        self.warnings.append(warning)
        self.shareable_warnings.append(shareable or warning)

    def warn_of(self, problem: str, details: object) -> None:
        """Show a warning whose details may be private."""
        self.warn(f"{problem}: {details}", problem)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        self.tell(name, "")
        yield
        self.stages.append(Stage(name, time.monotonic() - started))

    def _selection(self) -> Selection:
        """The GPU that is locked and, for a target or with --gpu, used."""
        selection = select(self.plan.gpu)
        if selection.problem:
            self.warn_of("the GPU's state is unknown", selection.problem)
        elif selection.gpu is None:
            self.warn(f"{VISIBLE} hides all GPUs")
        if self.plan.is_target or self.plan.gpu is not None:  # other programs may use several
            self.environment |= selection.variables
        for check in gpu_checks(selection.gpu) if selection.gpu else ():
            if check.status == WARNING:
                warning = f"{check.name} {check.state}: {check.costs}; {check.remedy}"
                self.warn(warning, f"{check.name}: {check.costs}")
        return selection

    def _target(self, *arguments: str) -> list[str]:
        selected = [word for name in self.plan.variants for word in ("--variant", name)]
        return [sys.executable, *self.plan.program, *selected, *arguments]

    def program(self) -> list[str]:
        return self._target() if self.plan.is_target else list(self.plan.program)

    def _check(self) -> CheckFile:
        path, name, gpu = self.folder / "check.json", self.plan.name, self.gpu
        words = self._target("--check", "--report", str(path))
        with self.stage("check"):
            try:
                finished = run(words, environment=self.environment, timeout=self.plan.timeout)
            except TimedOut as error:
                raise TargetFailed(
                    f"{name}: the check timed out after {error.seconds:.0f} s", "raise --timeout"
                ) from None
        alone = shlex.join(("python", *self.plan.program))
        status, output = finished.status, finished.output
        # a script that took no notice of --check, or did not know it
        if not path.is_file() and (status == 0 or "unrecognized arguments: --check" in output):
            raise TargetFailed(
                f"{self.plan.program[0]} is not a profkit target", f"profile it with `-- {alone}`"
            )
        if status not in {0, _FAILED_CHECK} or not path.is_file():
            last = last_line(output)
            kind = _KINDS.get(status, TargetFailed)
            message = f"{name} ended with status {status}: {last}"
            raise kind(message, failure_remedy(last, f"run it alone: {alone}"))
        try:  # the script may be anybody's, and its report too
            checked = read_file(path, CheckFile)
        except BadInput as error:
            why = error.message.rpartition(f"{path}: ")[2]
            raise TargetFailed(
                f"{name}: the report of its check can't be read ({why})",
                f"run it alone: {alone} --check",
            ) from None
        if status == _FAILED_CHECK:
            wrong = [
                f"{variant.name} ({variant.reason or variant.error})"
                for variant in checked.variants
                if variant.status is Status.failed
            ]
            message = f"{name}: wrong results from {', '.join(wrong) or 'a variant'}"
            raise TargetFailed(message, "fix it before profiling")
        uuid = (checked.fingerprint.gpu or Device()).uuid
        # as far as both are known; a MIG instance has its own UUID
        if gpu and uuid and gpu.uuid and not gpu.mig and uuid != gpu.uuid:
            self.warn(f"the target ran on another GPU than the requested GPU {gpu.index}")
        return checked

    def _time(self, checked: CheckFile) -> LatencyFile | None:
        """Latencies of the variants; a failure causes a warning, not the end of the run."""
        right = [row.name for row in checked.variants if row.status is Status.passed]
        plan = timing_of(self.plan, right)
        try:
            with self.stage("time"):
                timing = measurement.measure(
                    plan, lambda stage, detail: self.tell("time", f"{stage} {detail}")
                )
                report = measurement.latency_report(timing, plan)
        except ProfkitError as error:
            self.warn(f"no latencies: {error}", "no latencies: the timing failed")
            return None
        self.write("latency.json", encode(report))
        return report

    def options(self) -> ncu.NcuOptions:
        return replace(
            self.plan.options,
            capability=self.gpu.compute_capability if self.gpu else None,
            profile_from_start=not (self.plan.is_target or self.plan.marked),
        )

    def _scout(
        self, options: ncu.NcuOptions, launches: int | None
    ) -> tuple[ncu.NcuOptions, int | None]:
        """Record all launches with few counters; the options that record the kernels that take
        the time in detail, and how many launches these are."""
        first = replace(options, sections="scout", sampling=False)
        report = self.record(f"{SCOUT}.ncu-rep", first, launches, SCOUT)
        detailed = replace(options, sections=self.plan.then, flop=False)
        with self.stage("choose"):
            choice = choose(load(report).summary, passes(detailed), self.plan.max_time)
        if self.plan.compress:
            report = self.compress(report)
        self.warn(f"recorded in detail: {choice.text}; all launches are in {report.name}")
        chosen = replace(detailed, kernel=choice.kernel, launch_count=choice.launches)
        return chosen, choice.launches

    def compress(self, report: Path) -> Path:
        """The report compressed, as ncu or else profkit compressed it."""
        if report.suffix == PACKED:
            return report
        import zstandard

        packed = report.with_suffix(PACKED)
        with self.stage("compress"), open_regular(report) as source, packed.open("wb") as target:
            compressor = zstandard.ZstdCompressor(level=_LEVEL, threads=-1)
            compressor.copy_stream(source, target, size=report.stat().st_size)
        report.unlink()
        return packed

    def record(
        self,
        name: str,
        options: ncu.NcuOptions,
        launches: int | None,
        stage: str = "ncu",
        watchdog: Watchdog | None = None,
        begin: Callable[[Sequence[str]], subprocess.Popen[bytes]] | None = None,
    ) -> Path:
        """Record the program with ncu, which `begin` starts; the report's path, which may have
        another ending."""
        report = self.folder / name
        if self.plan.compress and ncu.can_compress(self.tool, self.environment):
            report = report.with_suffix(PACKED)

        def show(progress: ncu.Progress) -> None:
            known = launches and launches >= progress.kernels
            total = f" of {launches}" if known else ""
            kernel = f"kernel {progress.kernels}{total} {progress.name}"
            self.tell(stage, f"{kernel}, {progress.passes} passes done")

        words = ncu.command(self.tool, options, report, self.program())
        with self.stage(stage):
            errors = ncu.profile(
                words,
                report,
                environment=self.environment,
                timeout=self.plan.timeout,
                on_progress=show,
                watchdog=watchdog,
                begin=begin,
            )
        if errors:
            self.warn_of("ncu reported an error", errors[-1][:300])
        return report

    def _timeline(self) -> Events | None:
        """The redacted timeline; a failure causes a warning, not the end of the run."""
        self.nsys_tool = find("nsys")
        if self.nsys_tool is None:
            self.warn("no timeline: nsys was not found (see `profkit doctor`)")
            return None
        database = self.folder / RUN_FILE
        try:
            with self.stage("nsys"):
                options = nsys.NsysOptions(profiled_region_only=self.plan.is_target)
                self.export_timeline(database, options)
            with self.stage("timeline"):
                return read(database)
        except (EnvironmentProblem, BadInput, OSError) as error:
            reason = (error.strerror or error) if isinstance(error, OSError) else error
            self.warn(f"no timeline: {reason}", f"no timeline: {_without_details(error)}")
            database.unlink(missing_ok=True)
            self.nsys_tool = None
            return None

    def export_timeline(
        self,
        database: Path,
        options: nsys.NsysOptions,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Record the program, in another environment where one is given, and export its timeline,
        redacted, to `database`.

        Raises NoTimeline, and ProgramFailed with what was recorded until then.
        """
        assert self.nsys_tool is not None
        environment = environment or self.environment
        limits: Any = {"environment": environment, "timeout": self.plan.timeout}
        failed: nsys.ProgramFailed | None = None
        with tempfile.TemporaryDirectory(prefix=f"{PARTIAL}nsys-", dir=self.folder) as temporary:
            place = Path(temporary) / "timeline"
            try:
                recorded = nsys.record(self.nsys_tool, self.program(), place, options, **limits)
            except nsys.ProgramFailed as failure:
                failed, recorded = failure, failure.recorded
            exported = place.with_suffix(".sqlite")
            nsys.export(self.nsys_tool, recorded, exported, **limits)
            scrub(exported)
            shutil.copyfile(exported, database)
            if self.plan.keep_nsys_rep:
                kept = shutil.copyfile(recorded, database.with_suffix(".nsys-rep"))
                self.warn(f"{kept.name} contains host, user and environment: don't share it")
        if failed:
            raise failed

    def write_tables(self, report: Report, checklist: Checklist) -> None:
        summary = report.summary
        self.write("analysis.json", report_json(summary, checklist))
        self.write("checklist.md", checklist_markdown(summary, checklist))
        if problem := lacking("a table", "pandas", "pyarrow"):
            self.warn(f"no kernels.parquet: {problem}", f"no kernels.parquet: {problem.message}")
        else:
            report.kernels.to_parquet(self.folder / "kernels.parquet")

    def draw(self, report: Report) -> None:
        """The roofline plot, if a kernel has a point; `profkit roofline` prints why where none
        has."""
        if problem := lacking("a plot", "matplotlib"):
            self.warn(f"no roofline.png: {problem}", f"no roofline.png: {problem.message}")
            return
        from profkit.roofline.plot import plot_rooflines

        timed = self._latency.series if self._latency else ()
        variants = read_variants(self.folder)
        points = roofline(report.summary, latencies=timed, variants=variants)
        for suffix in (".png", ".svg") if points.points else ():
            path = self.folder / f"roofline{suffix}"
            plot_rooflines([points], path, title=self.plan.name)

    def manifest(
        self, report: Report | None = None, name: str = "", names: Collection[str] | None = None
    ) -> Manifest:
        """The manifest of the files so far, or of those of `names`; `name` is that of the
        report."""
        session, gpu = report.session if report else None, self.gpu
        versions = {
            "profkit": __version__,
            "python": platform.python_version(),
            "ncu": self.tool.version_text,
            "nsys": self.nsys_tool.version_text if self.nsys_tool else None,
        }
        uuid, tools = gpu.uuid if gpu else None, {"ncu": versions["ncu"]}
        checked = self._checked.fingerprint if self._checked else None
        fingerprint = checked or fingerprint_without_torch(uuid, tools, self.environment)
        launches = FileEntry(launches=len(report), bytes=0, sha256="") if report else None
        return Manifest(
            created=timestamp(),
            target=self.plan.name,
            command=session.shareable_command() if session else Path(self.plan.program[0]).name,
            versions=versions,
            gpu=row_of(DriverGpu, gpu) if gpu else None,
            fingerprint=fingerprint,
            fingerprint_sha256=digest(fingerprint),
            policy=Policy(**self._sections, **part(session, *_POLICY)) if session else Policy(),
            launches=len(report) if report else None,
            stages=tuple(self.stages),
            warnings=tuple(self.shareable_warnings),
            files=listed(self.folder, {name: launches} if launches else {}, names),
        )


def _without_details(error: Exception) -> str:
    """Why there is no timeline, without output that may be private."""
    if isinstance(error, nsys.NoTimeline):
        return error.reason
    if isinstance(error, EnvironmentProblem):
        return "nsys can't be run"
    return "it can't be read" if isinstance(error, BadInput) else "it can't be written"


def _sections(sections: str) -> dict[str, str]:
    """The value of --set for the manifest: a file by its name and SHA-256, without its path."""
    if sections in {*ncu.SETS, AUTO}:
        return {"set": sections}
    return {"set": Path(sections).name, "set_sha256": file_digest(Path(sections))}


def check_room(out: Path) -> None:
    folder, free = free_room(out)
    if free < _ROOM_WANTED:
        raise EnvironmentProblem(f"{folder}: only {free >> 20} MiB free", _FREE)


def required(name: str, title: str) -> Tool:
    """A tool; raises EnvironmentProblem, with its title, where it is not installed."""
    if (tool := find(name)) is None:
        raise EnvironmentProblem(f"{name} was not found", f"install {title}, see `profkit doctor`")
    return tool
