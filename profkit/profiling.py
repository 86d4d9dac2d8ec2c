"""The whole of a profile: check the target, record with ncu and nsys, read, analyze, keep.

What it leaves is a run directory (`profkit.store.run`), or nothing.
"""

from __future__ import annotations

import json
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from profkit import __version__
from profkit.analysis.summary import ReportSummary
from profkit.analysis.timeline import TimelineSummary
from profkit.capture import ncu, nsys
from profkit.capture.doctor import WARNING, gpu_checks
from profkit.capture.gpu import GpuState, NoDriver, states
from profkit.capture.process import TimedOut, reduced_environment, run
from profkit.capture.tools import Tool, find
from profkit.errors import BadInput, EnvironmentProblem, ProfkitError, TargetFailed, UsageError
from profkit.render.json import report_json
from profkit.report import Report, load
from profkit.store.lock import gpu_lock
from profkit.store.run import Draft, draft, keep

_ROOM_WANTED = 256 << 20
_CHECK_HALF_FROM = 0.05
_FAILED_CHECK = 6
_KINDS: Mapping[int, type[ProfkitError]] = {2: UsageError, 4: EnvironmentProblem}

Tell = Callable[[str, str], None]


@dataclass(frozen=True)
class Plan:
    """What to profile and how.

    `program` is the command; a target script (its first word ends in .py) is checked first and
    profiled in the region that it marks, anything else from its start. `timeout` is seconds for
    each of the recording stages.
    """

    program: tuple[str, ...]
    variants: tuple[str, ...] = ()
    options: ncu.NcuOptions = field(default_factory=ncu.NcuOptions)
    out: Path = Path("reports")
    gpu: int | None = None
    timeout: float | None = None
    timeline: bool = True
    keep_nsys_rep: bool = False
    compress: bool = False
    keep_variables: tuple[str, ...] = ()

    @property
    def is_target(self) -> bool:
        return self.program[0].endswith(".py")

    @property
    def name(self) -> str:
        return Path(self.program[0]).stem if self.is_target else Path(self.program[0]).name


@dataclass(frozen=True)
class Stage:
    """A part of the work and its wall seconds."""

    name: str
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """A kept run: its folder, what it holds, where the time went, what was worth a warning."""

    folder: Path
    report: ReportSummary
    timeline: TimelineSummary | None
    checked: Mapping[str, Any] | None
    stages: tuple[Stage, ...]
    warnings: tuple[str, ...]


def profile(plan: Plan, tell: Tell) -> Outcome:
    """Profile as planned.

    `tell` gets (stage, what goes on). Raises what the stages raise: EnvironmentProblem,
    TargetFailed, UsageError, BadInput. No process is left and no run that looks whole, however it
    ends.
    """
    if not plan.program:
        raise UsageError("nothing to profile", "give a target script, or `-- PROGRAM ARGUMENT...`")
    if plan.is_target and not Path(plan.program[0]).is_file():
        raise UsageError(f"{plan.program[0]}: no such target", "check the path")
    if not plan.is_target and shutil.which(plan.program[0]) is None:
        raise UsageError(f"{plan.program[0]}: no such program", "check the path")
    return _Profile(plan, tell).run()


class _Profile:
    """One profile on its way; the stages share the plan, the clock and the warnings."""

    def __init__(self, plan: Plan, tell: Tell) -> None:
        self._plan = plan
        self._tell = tell
        self._stages: list[Stage] = []
        self._warnings: list[str] = []
        self._environment = reduced_environment(plan.keep_variables)
        if plan.gpu is not None:
            self._environment["CUDA_VISIBLE_DEVICES"] = str(plan.gpu)

    def run(self) -> Outcome:
        with self._stage("prepare"):
            tool = _required_ncu()
            gpu = self._gpu()
            _room(self._plan.out)
        with (
            gpu_lock(gpu.uuid if gpu else str(self._plan.gpu or 0)),
            draft(self._plan.out, self._plan.name) as where,
        ):
            checked = self._check(where) if self._plan.is_target else None
            recorded = self._record(tool, where)
            timeline = self._timeline(where) if self._plan.timeline else None
            report, seen = self._ingest(recorded, timeline)
            if self._plan.compress:
                with self._stage("compress"):
                    _compress(recorded)
            with self._stage("write"):
                self._write(where, report)
                manifest = self._manifest(tool, gpu, checked, report, recorded, timeline)
                folder = keep(where, manifest)
        return Outcome(
            folder,
            replace(report.summary, path=str(folder / self._kept_as(recorded))),
            seen,
            checked,
            tuple(self._stages),
            tuple(self._warnings),
        )

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        self._tell(name, "")
        yield
        self._stages.append(Stage(name, time.monotonic() - started))

    def _gpu(self) -> GpuState | None:
        try:
            found = states()
        except NoDriver as error:
            self._warnings.append(f"the GPU's state is unknown: {error}")
            return None
        index = self._plan.gpu or 0
        if index >= len(found):
            raise EnvironmentProblem(f"no GPU {index}", f"there are {len(found)}")
        self._warnings += [
            f"{check.name} {check.found}: {check.costs}; {check.remedy}"
            for check in gpu_checks(found[index])
            if check.status == WARNING
        ]
        return found[index]

    def _target(self, *arguments: str) -> list[str]:
        chosen = [word for name in self._plan.variants for word in ("--variant", name)]
        return [sys.executable, *self._plan.program, *chosen, *arguments]

    def _program(self) -> list[str]:
        return self._target() if self._plan.is_target else list(self._plan.program)

    def _check(self, where: Draft) -> Mapping[str, Any]:
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
        if finished.status not in {0, _FAILED_CHECK} or not told.is_file():
            kind = _KINDS.get(finished.status, TargetFailed)
            raise kind(
                f"{self._plan.name} ended with status {finished.status}: "
                f"{_last_line(finished.output)}",
                f"run it alone: python {' '.join(self._plan.program)}",
            )
        checked: Mapping[str, Any] = json.loads(told.read_text(encoding="utf-8"))
        if finished.status == _FAILED_CHECK:
            raise TargetFailed(_what_failed(self._plan.name, checked), "mend it before profiling")
        return checked

    def _record(self, tool: Tool, where: Draft) -> Path:
        report = where.folder / f"{self._plan.name}.ncu-rep"
        options = self._plan.options
        if self._plan.is_target:
            options = _in_marked_region(options)
        words = ncu.command(tool, options, report, self._program())
        with self._stage("ncu"):
            ncu.profile(
                words,
                environment=self._environment,
                timeout=self._plan.timeout,
                on_progress=lambda seen: self._tell(
                    "ncu", f"kernel {seen.kernels} {seen.name}, {seen.passes} passes done"
                ),
            )
        if not report.is_file():
            raise EnvironmentProblem("ncu wrote no report", "see `profkit doctor`")
        return report

    def _timeline(self, where: Draft) -> Path | None:
        """The scrubbed timeline; a timeline that can't be had costs a warning, not the run."""
        from profkit.ingest.nsys_scrub import scrub

        tool = find("nsys")
        if tool is None:
            self._warnings.append("no timeline: nsys was not found (see `profkit doctor`)")
            return None
        database = where.folder / "timeline.sqlite"
        try:
            with self._stage("nsys"), tempfile.TemporaryDirectory(prefix="profkit-") as temporary:
                recorded = nsys.record(
                    tool,
                    self._program(),
                    Path(temporary) / "timeline",
                    environment=self._environment,
                    timeout=self._plan.timeout,
                    profiled_region_only=self._plan.is_target,
                )
                exported = Path(temporary) / "timeline.sqlite"
                nsys.export(
                    tool,
                    recorded,
                    exported,
                    environment=self._environment,
                    timeout=self._plan.timeout,
                )
                scrub(exported)
                shutil.copyfile(exported, database)
                if self._plan.keep_nsys_rep:
                    shutil.copyfile(recorded, where.folder / "timeline.nsys-rep")
                    self._warnings.append(
                        "timeline.nsys-rep holds host, user and environment: don't share it"
                    )
        except (EnvironmentProblem, BadInput) as error:
            database.unlink(missing_ok=True)
            self._warnings.append(f"no timeline: {error}")
            return None
        return database

    def _ingest(
        self, recorded: Path, timeline: Path | None
    ) -> tuple[Report, TimelineSummary | None]:
        from profkit.analysis.timeline import summarize_timeline
        from profkit.ingest.nsys_sqlite import read

        with self._stage("read"):
            report = load(recorded, check_half_from=_CHECK_HALF_FROM)
            report.summary  # noqa: B018  (analysis is part of this stage's time)
            try:
                return report, summarize_timeline(read(timeline)) if timeline else None
            except BadInput as error:
                self._warnings.append(f"the timeline can't be read: {error}")
                return report, None

    def _kept_as(self, recorded: Path) -> str:
        return recorded.name + "z" if self._plan.compress else recorded.name

    def _write(self, where: Draft, report: Report) -> None:
        summary = report.summary
        text = report_json([(summary, summary.groups)], 0, with_host=False)
        (where.folder / "analysis.json").write_text(text, encoding="utf-8")
        report.kernels.to_parquet(where.folder / "kernels.parquet")

    def _manifest(
        self,
        tool: Tool,
        gpu: GpuState | None,
        checked: Mapping[str, Any] | None,
        report: Report,
        recorded: Path,
        timeline: Path | None,
    ) -> Mapping[str, Any]:
        session = report.session
        timeline_tool = find("nsys") if timeline else None
        name = self._kept_as(recorded)
        fingerprint = (checked or {}).get("fingerprint", {})
        return {
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "target": self._plan.name,
            "command": session.shareable_command(),
            "versions": {
                "profkit": __version__,
                "python": platform.python_version(),
                "ncu": tool.version_text,
                "nsys": timeline_tool.version_text if timeline_tool else None,
            },
            "gpu": _without_processes(gpu),
            "fingerprint": fingerprint,
            "fingerprint_sha256": (checked or {}).get("fingerprint_sha256"),
            "policy": {
                "set": self._plan.options.sections,
                "clock_control": session.clock_control,
                "cache_control": session.cache_control,
                "replay_mode": session.replay_mode,
            },
            "launches": len(report),
            "stages": [asdict(stage) for stage in self._stages],
            "warnings": list(self._warnings),
            "files": {name: {"launches": len(report)}},
        }


def _required_ncu() -> Tool:
    tool = find("ncu")
    if tool is None:
        raise EnvironmentProblem(
            "ncu was not found", "install Nsight Compute, see `profkit doctor`"
        )
    return tool


def _in_marked_region(options: ncu.NcuOptions) -> ncu.NcuOptions:
    return replace(options, profile_from_start=False)


def _room(out: Path) -> None:
    folder = next(parent for parent in (out, *out.absolute().parents) if parent.is_dir())
    free = shutil.disk_usage(folder).free
    if free < _ROOM_WANTED:
        raise EnvironmentProblem(
            f"{folder}: only {free >> 20} MiB free", "make room, or give --out another disk"
        )


def _what_failed(name: str, checked: Mapping[str, Any]) -> str:
    failed = [
        f"{variant['name']} ({variant.get('reason') or variant.get('error')})"
        for variant in checked.get("variants", ())
        if variant.get("status") == "failed"
    ]
    return f"{name}: wrong results from {', '.join(failed) or 'a variant'}"


def _without_processes(gpu: GpuState | None) -> Mapping[str, Any] | None:
    if gpu is None:
        return None
    return {name: value for name, value in asdict(gpu).items() if name != "processes"}


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
