"""The whole of a profile: check the target, record with ncu and nsys, read, analyze, keep.

What it leaves is a run directory (`profkit.runs.run`), or nothing.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from profkit.analysis.json import report_json
from profkit.analysis.report import Report, load
from profkit.capture import ncu, nsys
from profkit.capture.correctness import Status
from profkit.capture.doctor import WARNING, gpu_checks
from profkit.capture.environment import digest, fingerprint_without_torch
from profkit.capture.gpu import VISIBLE, GpuState, NoDriver, chosen, lock_name, visibility
from profkit.capture.process import Finished, TimedOut, reduced_environment, run
from profkit.capture.target_format import CheckFile
from profkit.capture.tools import Tool, find
from profkit.core.errors import BadInput, EnvironmentProblem, ProfkitError, TargetFailed, UsageError
from profkit.core.extras import lacking
from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.lock import gpu_lock
from profkit.core.regular_file import digest as file_digest
from profkit.core.timestamp import timestamp
from profkit.core.typed_file import convert, plain, read_file
from profkit.core.version import __version__
from profkit.report.summary import ReportSummary
from profkit.rules.checklist import Checklist
from profkit.rules.finding_text import checklist_markdown
from profkit.runs.manifest import DriverGpu, FileEntry, Manifest, Policy, Stage
from profkit.runs.run import Draft, draft, free_room, keep, listed
from profkit.timeline.summary import TimelineSummary
from profkit.timing.results import DEFAULT
from profkit.timing.variants import read_variants

if TYPE_CHECKING:
    from profkit.timeline.reader import Timeline
    from profkit.timing.latency import LatencyReport
    from profkit.timing.measurement import TimingPlan

_ROOM_WANTED = 256 << 20
_CHECK_HALF_FROM = 0.05
_FAILED_CHECK = 6
_SAMPLING = 30.0  # seconds a variant: 240 samples of 0.1 s, about what ncu takes for one such call
_UNREADABLE = "no timeline: it can't be read"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KINDS: Mapping[int, type[ProfkitError]] = {2: UsageError, 4: EnvironmentProblem}

Tell = Callable[[str, str], None]


@dataclass(frozen=True)
class Plan:
    """What to profile and how.

    `program` is the command; a target script (its first word ends in .py) is checked first and
    profiled in the region that it marks, anything else from its start; with `plain` a script too.
    `timeout` is seconds for each of the recording stages. `samples` is for each variant; where it
    is None as many as a verdict takes, fewer of calls so slow that they would take over half a
    minute.
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
    compress: bool = False
    keep_variables: tuple[str, ...] = ()
    plain: bool = False

    @property
    def is_target(self) -> bool:
        return not self.plain and self.program[0].endswith(".py")

    @property
    def name(self) -> str:
        return Path(self.program[0]).stem if self.is_target else Path(self.program[0]).name


@dataclass(frozen=True)
class Outcome:
    """A kept run: its folder, what it holds, where the time went, what was worth a warning."""

    folder: Path
    report: ReportSummary
    found: Checklist
    timeline: TimelineSummary | None
    checked: CheckFile | None
    latency: LatencyReport | None
    stages: tuple[Stage, ...]
    warnings: tuple[str, ...]


def profile(plan: Plan, tell: Tell) -> Outcome:
    """Profile as planned.

    `tell` gets (stage, what goes on). Raises what the stages raise: EnvironmentProblem,
    TargetFailed, UsageError, BadInput. No process is left and no run that looks whole, however it
    ends.
    """
    _refuse_nonsense(plan)
    return _Profile(plan, tell).run()


def timing_of(plan: Plan, variants: Sequence[str]) -> TimingPlan:
    """How the variants of a profile are timed: so that a verdict is possible, in bounded time."""
    from profkit.timing.measurement import COMPARED_BLOCKS, Subject, TimingPlan

    kept = {name: os.environ[name] for name in plan.keep_variables if name in os.environ}
    return TimingPlan(
        subjects=(Subject(Path(plan.program[0]), tuple(variants)),),
        arguments=plan.program[1:],
        samples=plan.samples or COMPARED_BLOCKS * DEFAULT.samples,
        blocks=COMPARED_BLOCKS,
        seconds=None if plan.samples else _SAMPLING,
        gpu=plan.gpu,
        check=False,
        environment=kept,
    )


def _refuse_nonsense(plan: Plan) -> None:
    """Raise UsageError for what can't be meant, before anything runs."""
    if not plan.program:
        raise UsageError("nothing to profile", "give a target script, or `-- PROGRAM ARGUMENT...`")
    if plan.timeout is not None and not 0 < plan.timeout <= threading.TIMEOUT_MAX:
        raise UsageError(f"--timeout {plan.timeout:g} is no time limit", "give seconds above 0")
    for name in plan.keep_variables:
        if not _VARIABLE.fullmatch(name):
            raise UsageError(
                f"--keep-env {name!r} is not the name of a variable",
                "give the name alone, and the value by the environment",
            )
    if plan.variants and not plan.is_target:
        raise UsageError("--variant is for targets", "give a target script, before any `--`")
    ncu.collected(plan.options.sections)
    if plan.is_target and not Path(plan.program[0]).is_file():
        raise BadInput(f"{plan.program[0]}: no such target", "check the path")
    if not plan.is_target and shutil.which(plan.program[0]) is None:
        raise _not_a_program(plan.program[0])


def _not_a_program(word: str) -> ProfkitError:
    if not Path(word).is_file():
        return BadInput(f"{word}: no such program", "check the path")
    if word.endswith(".py"):
        name = shlex.quote(word)
        remedy = f"use `-- python {name}`, or for a target `profkit profile {name}`"
        return UsageError(f"{word}: not an executable program", remedy)
    if os.access(word, os.X_OK):
        return UsageError(f"{word}: not on the PATH", f"use `-- ./{shlex.quote(word)}`")
    return UsageError(f"{word}: not an executable program", f"chmod +x {shlex.quote(word)}")


class _Profile:
    """One profile on its way; the stages share the plan, the clock and the warnings."""

    def __init__(self, plan: Plan, tell: Tell) -> None:
        self._plan = plan
        self._tell = tell
        self._out = plan.out.absolute()  # a target may change its folder
        self._stages: list[Stage] = []
        self._warnings: list[str] = []
        self._shareable_warnings: list[str] = []
        self._environment = reduced_environment(plan.keep_variables)
        self._visible = os.environ.get(VISIBLE)

    def run(self) -> Outcome:
        try:
            return self._run()
        except OSError as error:
            raise EnvironmentProblem(
                f"{self._plan.out}: {error.strerror or error}",
                "make room, or give --out another disk",
            ) from error

    def _run(self) -> Outcome:
        with self._stage("prepare"):
            tool = _required_ncu()
            gpu = self._gpu()
            _room(self._out)
            collected = _collected(self._plan.options.sections)
            self._look_for_variables()
        with (
            gpu_lock(lock_name(gpu, self._plan.gpu, self._visible)),
            draft(self._out, self._plan.name) as where,
        ):
            checked = self._check(where, gpu) if self._plan.is_target else None
            timed = checked and self._plan.samples != 0
            latency = self._time(where, checked) if checked and timed else None
            recorded_timeline = self._record_timeline(where) if self._plan.timeline else None
            timeline = self._read_timeline(recorded_timeline) if recorded_timeline else None
            recorded = self._record(tool, where, _expected_launches(self._plan.options, timeline))
            report, seen = self._ingest(recorded, timeline)
            if self._plan.compress:
                with self._stage("compress"):
                    _compress(recorded)
            with self._stage("write"):
                found = report.checklist(
                    variants=read_variants(where.folder), timeline=seen.quantities if seen else {}
                )
                self._write(where, report, found)
                self._draw(where, report, latency)
                versions = _versions(tool, find("nsys") if timeline else None)
                manifest = self._manifest(versions, gpu, checked, report, recorded, collected)
                self._write_page(where, report, found, latency, manifest)
                folder = keep(where, manifest)
        shown = self._plan.out / folder.relative_to(self._out)
        return Outcome(
            shown,
            replace(report.summary, path=str(shown / self._kept_as(recorded))),
            found,
            seen,
            checked,
            latency,
            tuple(self._stages),
            tuple(self._warnings),
        )

    def _warn(self, told: str, shareable: str = "") -> None:
        """Tell a warning; `shareable` goes into the manifest where `told` may be private."""
        self._warnings.append(told)
        self._shareable_warnings.append(shareable or told)

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        self._tell(name, "")
        yield
        self._stages.append(Stage(name, time.monotonic() - started))

    def _gpu(self) -> GpuState | None:
        """The GPU that is locked and, for a target or with --gpu, used; None where unknown."""
        try:
            gpu = chosen(self._plan.gpu, self._visible)
        except NoDriver as error:
            gpu = None
            self._warn(f"the GPU's state is unknown: {error}", "the GPU's state is unknown")
        else:
            if gpu is None:
                self._warn(f"{VISIBLE} hides all GPUs")
        if self._plan.is_target or self._plan.gpu is not None:  # other programs may use several
            self._environment |= visibility(gpu, self._plan.gpu, self._visible)
        for check in gpu_checks(gpu) if gpu else ():
            if check.status == WARNING:
                told = f"{check.name} {check.found}: {check.costs}; {check.remedy}"
                self._warn(told, f"{check.name}: {check.costs}")
        return gpu

    def _look_for_variables(self) -> None:
        for name in self._plan.keep_variables:
            if name not in os.environ:
                self._warn(
                    f"--keep-env {name}: it is not set", "a variable of --keep-env is not set"
                )

    def _target(self, *arguments: str) -> list[str]:
        chosen = [word for name in self._plan.variants for word in ("--variant", name)]
        return [sys.executable, *self._plan.program, *chosen, *arguments]

    def _program(self) -> list[str]:
        return self._target() if self._plan.is_target else list(self._plan.program)

    def _check(self, where: Draft, gpu: GpuState | None) -> CheckFile:
        told = where.folder / "check.json"
        with self._stage("check"):
            try:
                finished = run(
                    self._target("--check", "--report", str(told)),
                    environment=self._environment,
                    timeout=self._plan.timeout,
                )
            except TimedOut as error:
                raise TargetFailed(
                    f"{self._plan.name}: its check was ended after {error.seconds:.0f} s",
                    "raise --timeout",
                ) from None
        alone = shlex.join(("python", *self._plan.program))
        if not told.is_file() and _knows_no_check(finished):
            raise TargetFailed(
                f"{self._plan.program[0]} is no profkit target", f"profile it with `-- {alone}`"
            )
        if finished.status not in {0, _FAILED_CHECK} or not told.is_file():
            kind = _KINDS.get(finished.status, TargetFailed)
            raise kind(
                f"{self._plan.name} ended with status {finished.status}: "
                f"{_last_line(finished.output)}",
                f"run it alone: {alone}",
            )
        checked = _checked(told, self._plan.name, alone)
        if finished.status == _FAILED_CHECK:
            raise TargetFailed(_what_failed(self._plan.name, checked), "mend it before profiling")
        if gpu and not _is_on(gpu, checked):
            self._warn(f"the target ran on another GPU than {gpu.index}, which was to be profiled")
        return checked

    def _time(self, where: Draft, checked: CheckFile) -> LatencyReport | None:
        """Latencies of the variants; those that can't be had cost a warning, not the run."""
        from profkit.timing.latency_json import latency_json
        from profkit.timing.measurement import latency_report, measure

        right = [row.name for row in checked.variants if row.status is Status.passed]
        plan = timing_of(self._plan, right)
        try:
            with self._stage("time"):
                timing = measure(plan, lambda stage, what: self._tell("time", f"{stage} {what}"))
                report = latency_report(timing, plan)
        except ProfkitError as error:
            self._warn(f"no latencies: {error}", "no latencies: the timing failed")
            return None
        self._look_for_fewer(report)
        (where.folder / "latency.json").write_text(latency_json(report), encoding="utf-8")
        return report

    def _look_for_fewer(self, report: LatencyReport) -> None:
        """Warn of variants that are too slow for as many samples as a verdict takes."""
        few = [
            one.label
            for one in report.timed
            if min(len(block.samples) for block in one.latency.blocks) < DEFAULT.samples
        ]
        if few and self._plan.samples is None:
            self._warn(
                f"{', '.join(few)}: too slow for {DEFAULT.samples} samples a block within "
                f"{_SAMPLING:g} s; a verdict takes `profkit time --compare`",
                "slow variants have fewer samples than a verdict takes",
            )

    def _record(self, tool: Tool, where: Draft, launches: int | None) -> Path:
        report = where.folder / f"{self._plan.name}.ncu-rep"
        options = self._plan.options
        if self._plan.is_target:
            options = _in_marked_region(options)
        words = ncu.command(tool, options, report, self._program())
        with self._stage("ncu"):
            errors = ncu.profile(
                words,
                report,
                environment=self._environment,
                timeout=self._plan.timeout,
                on_progress=lambda seen: self._tell("ncu", _progress(seen, launches)),
            )
        if errors:
            self._warn(f"ncu told an error: {errors[-1][:300]}", "ncu told an error")
        return report

    def _record_timeline(self, where: Draft) -> Path | None:
        """The scrubbed timeline; a timeline that can't be had costs a warning, not the run."""
        tool = find("nsys")
        if tool is None:
            self._warn("no timeline: nsys was not found (see `profkit doctor`)")
            return None
        database = where.folder / "timeline.sqlite"
        with (
            self._stage("nsys"),
            tempfile.TemporaryDirectory(prefix=".nsys-", dir=where.folder) as temporary,
        ):
            try:
                self._export_timeline(tool, Path(temporary), database)
                return database
            except nsys.NoTimeline as error:
                self._warn(f"no timeline: {error}", f"no timeline: {error.reason}")
            except EnvironmentProblem as error:
                self._warn(f"no timeline: {error}", "no timeline: nsys can't be run")
            except BadInput as error:
                self._warn(f"no timeline: {error}", _UNREADABLE)
            except OSError as error:
                self._warn(
                    f"no timeline: {error.strerror or error}", "no timeline: it can't be written"
                )
            database.unlink(missing_ok=True)
        return None

    def _export_timeline(self, tool: Tool, temporary: Path, database: Path) -> None:
        from profkit.timeline.redaction import scrub

        recorded = nsys.record(
            tool,
            self._program(),
            temporary / "timeline",
            environment=self._environment,
            timeout=self._plan.timeout,
            profiled_region_only=self._plan.is_target,
        )
        exported = temporary / "timeline.sqlite"
        nsys.export(
            tool, recorded, exported, environment=self._environment, timeout=self._plan.timeout
        )
        scrub(exported)
        shutil.copyfile(exported, database)
        if self._plan.keep_nsys_rep:
            shutil.copyfile(recorded, database.with_suffix(".nsys-rep"))
            self._warn("timeline.nsys-rep holds host, user and environment: don't share it")

    def _read_timeline(self, database: Path) -> Timeline | None:
        from profkit.timeline.reader import read

        with self._stage("timeline"):
            try:
                return read(database)
            except BadInput as error:
                database.unlink(missing_ok=True)
                self._warn(f"no timeline: {error}", _UNREADABLE)
                return None

    def _ingest(
        self, recorded: Path, timeline: Timeline | None
    ) -> tuple[Report, TimelineSummary | None]:
        from profkit.timeline.summary import summarize_timeline

        with self._stage("read"):
            report = load(recorded, check_half_from=_CHECK_HALF_FROM)
            report.summary  # noqa: B018  (analysis is part of this stage's time)
            return report, summarize_timeline(timeline) if timeline else None

    def _kept_as(self, recorded: Path) -> str:
        return recorded.name + "z" if self._plan.compress else recorded.name

    def _write(self, where: Draft, report: Report, found: Checklist) -> None:
        summary = report.summary
        text = report_json([(summary, summary.groups, found)], 0, with_host=False)
        (where.folder / "analysis.json").write_text(text, encoding="utf-8")
        text = checklist_markdown(summary, found, 0)
        (where.folder / "checklist.md").write_text(text, encoding="utf-8")
        if problem := lacking("a table", "pandas", "pyarrow"):
            self._warn(f"no kernels.parquet: {problem}", f"no kernels.parquet: {problem.message}")
        else:
            report.kernels.to_parquet(where.folder / "kernels.parquet")

    def _write_page(
        self,
        where: Draft,
        report: Report,
        found: Checklist,
        latency: LatencyReport | None,
        manifest: Manifest,
    ) -> None:
        """The run's page, which tells of the files beside it."""
        from profkit.page.page import RunParts, page_html

        files = listed(where.folder, manifest.files)
        beside = structs.replace(manifest, files=files)
        run = RunParts(latency, read_variants(where.folder), beside)
        (where.folder / "report.html").write_text(
            page_html(report, found, run=run), encoding="utf-8"
        )

    def _draw(self, where: Draft, report: Report, latency: LatencyReport | None) -> None:
        """The roofline, where a kernel has a place on it; the verb says why where none has."""
        if problem := lacking("a plot", "matplotlib"):
            self._warn(f"no roofline.png: {problem}", f"no roofline.png: {problem.message}")
            return
        from profkit.roofline.plot import plot_rooflines
        from profkit.roofline.roofline import roofline

        variants = read_variants(where.folder)
        timed = latency.timed if latency else ()
        found = roofline(report.summary, latencies=timed, variants=variants)
        for suffix in (".png", ".svg") if found.points else ():
            path = where.folder / f"roofline{suffix}"
            plot_rooflines([found], path, title=self._plan.name)

    def _manifest(
        self,
        versions: Mapping[str, str | None],
        gpu: GpuState | None,
        checked: CheckFile | None,
        report: Report,
        recorded: Path,
        collected: Mapping[str, str],
    ) -> Manifest:
        session = report.session
        launches = len(report)
        fingerprint = (checked.fingerprint if checked else None) or convert(
            fingerprint_without_torch(
                gpu.uuid if gpu else None, {"ncu": versions["ncu"]}, self._environment
            ),
            Fingerprint,
        )
        return Manifest(
            created=timestamp(),
            target=self._plan.name,
            command=session.shareable_command(),
            versions=dict(versions),
            gpu=_shareable(gpu),
            fingerprint=fingerprint,
            fingerprint_sha256=digest(plain(fingerprint)),
            policy=Policy(
                **collected,
                clock_control=session.clock_control,
                cache_control=session.cache_control,
                replay_mode=session.replay_mode,
            ),
            launches=launches,
            stages=tuple(self._stages),
            warnings=tuple(self._shareable_warnings),
            files={self._kept_as(recorded): FileEntry(launches=launches, bytes=0, sha256="")},
        )


def _versions(ncu_tool: Tool, nsys_tool: Tool | None) -> dict[str, str | None]:
    return {
        "profkit": __version__,
        "python": platform.python_version(),
        "ncu": ncu_tool.version_text,
        "nsys": nsys_tool.version_text if nsys_tool else None,
    }


def _collected(sections: str) -> dict[str, str]:
    """What --set asked for, for the manifest: a file by its name and SHA-256, without its path."""
    if sections in ncu.SETS:
        return {"set": sections}
    return {"set": Path(sections).name, "set_sha256": file_digest(Path(sections))}


def _required_ncu() -> Tool:
    tool = find("ncu")
    if tool is None:
        raise EnvironmentProblem(
            "ncu was not found", "install Nsight Compute, see `profkit doctor`"
        )
    return tool


def _in_marked_region(options: ncu.NcuOptions) -> ncu.NcuOptions:
    return replace(options, profile_from_start=False)


def _expected_launches(options: ncu.NcuOptions, timeline: Timeline | None) -> int | None:
    """How many launches ncu will profile, by a timeline of the same program; None if unknown."""
    if timeline is None or options.nvtx or options.replay_mode == "range":
        return None
    try:
        named = re.compile(options.kernel or "")
    except re.error:  # ncu reads another dialect of expressions, and will judge it
        return None
    launches = sum(bool(named.search(kernel.name)) for kernel in timeline.kernels)
    left = max(0, launches - (options.launch_skip or 0))
    return left if options.launch_count is None else min(left, options.launch_count)


def _progress(seen: ncu.Progress, launches: int | None) -> str:
    of = f" of {launches}" if launches and launches >= seen.kernels else ""
    return f"kernel {seen.kernels}{of} {seen.name}, {seen.passes} passes done"


def _room(out: Path) -> None:
    folder, free = free_room(out)
    if free < _ROOM_WANTED:
        raise EnvironmentProblem(
            f"{folder}: only {free >> 20} MiB free", "make room, or give --out another disk"
        )


def _knows_no_check(finished: Finished) -> bool:
    """Whether a script took no notice of --check, or did not know it."""
    return finished.status == 0 or "unrecognized arguments: --check" in finished.output


def _checked(report: Path, name: str, alone: str) -> CheckFile:
    """What a target's check reported; the script may be anybody's, and its report too."""
    try:
        return read_file(report, CheckFile)
    except BadInput as error:
        why = error.message.rpartition(f"{report}: ")[2]
        raise TargetFailed(
            f"{name}: the report of its check can't be read ({why})",
            f"run it alone: {alone} --check",
        ) from None


def _is_on(gpu: GpuState, checked: CheckFile) -> bool:
    """Whether the check ran on this GPU, as far as both tell; a MIG instance has its own UUID."""
    ran_on = (checked.fingerprint.gpu or Device()).uuid
    return not ran_on or not gpu.uuid or bool(gpu.mig) or ran_on == gpu.uuid


def _what_failed(name: str, checked: CheckFile) -> str:
    failed = [
        f"{variant.name} ({variant.reason or variant.error})"
        for variant in checked.variants
        if variant.status is Status.failed
    ]
    return f"{name}: wrong results from {', '.join(failed) or 'a variant'}"


def _shareable(gpu: GpuState | None) -> DriverGpu | None:
    if gpu is None:
        return None
    return DriverGpu(**{name: getattr(gpu, name) for name in DriverGpu.__struct_fields__})


def _compress(report: Path) -> None:
    import zstandard

    with report.open("rb") as plain, report.with_suffix(".ncu-repz").open("wb") as packed:
        zstandard.ZstdCompressor(level=19, threads=-1).copy_stream(
            plain, packed, size=report.stat().st_size
        )
    report.unlink()


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it said nothing"
