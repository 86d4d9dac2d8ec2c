"""Drives Nsight Compute: its command line, its progress, and what its messages mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.capture.process import Finished, TimedOut, run
from profkit.capture.tools import Tool
from profkit.errors import EnvironmentProblem, ProfkitError, TargetFailed, UsageError

SETS = ("full", "detailed", "basic")

_KERNEL = re.compile(
    r'==PROF== Profiling "(?P<name>[^"]*)"(?: - (?P<index>\d+))?(?: \((?P<at>\d+)/(?P<of>\d+)\))?:'
)
_PASSES = re.compile(r"- (?P<passes>\d+) pass(?:es)?")
_STATUS = re.compile(r"==ERROR== The application returned an error code \((?P<status>\d+)\)")
_PERMISSION = (
    "allow counters: run as root; or load the driver with "
    "`options nvidia NVreg_RestrictProfilingToAdminUsers=0`; or start the container with "
    "`--cap-add=SYS_ADMIN`"
)


@dataclass(frozen=True)
class NcuOptions:
    """What is asked of ncu. `sections` is a set's name or a file with a section or metric a line.

    Clock and cache control are always passed, so that the report tells what was in force.
    """

    sections: str = "full"
    clock_control: str = "none"
    cache_control: str = "all"
    replay_mode: str = "kernel"
    target_processes: str = "all"
    import_source: bool = True
    profile_from_start: bool = True
    kernel: str | None = None
    launch_skip: int | None = None
    launch_count: int | None = None
    nvtx: str | None = None


@dataclass(frozen=True)
class Progress:
    """Kernels seen so far, the name of the last, and the replay passes that finished ones took."""

    kernels: int
    name: str
    passes: int


def command(tool: Tool, options: NcuOptions, report: Path, program: Sequence[str]) -> list[str]:
    """The ncu command line; raises UsageError for a set that is neither a name nor a file."""
    words = [tool.path, "--force-overwrite", "--export", str(report), *_collect(options.sections)]
    words += ["--clock-control", options.clock_control, "--cache-control", options.cache_control]
    words += ["--replay-mode", options.replay_mode]
    words += ["--target-processes", options.target_processes]
    words += ["--nvtx"]
    by_kernel = options.replay_mode != "range"  # range replay refuses what is about single kernels
    if by_kernel:
        words += ["--import-source", "yes" if options.import_source else "no"]
    if by_kernel and not options.profile_from_start:
        words += ["--profile-from-start", "off"]
    if options.kernel:
        words += ["--kernel-name-base", "demangled", "--kernel-name", f"regex:{options.kernel}"]
    if options.launch_skip is not None:
        words += ["--launch-skip", str(options.launch_skip)]
    if options.launch_count is not None:
        words += ["--launch-count", str(options.launch_count)]
    if options.nvtx:
        words += ["--nvtx-include", f"{options.nvtx.rstrip('/')}/"]
    return [*words, *program]


def _collect(sections: str) -> list[str]:
    if sections in SETS:
        return ["--set", sections]
    try:
        lines = Path(sections).read_text(encoding="utf-8").splitlines()
    except OSError:
        raise UsageError(
            f"--set {sections!r} is neither a set nor a file", f"use one of {', '.join(SETS)}"
        ) from None
    names = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    metrics = [name for name in names if "__" in name]
    words = [word for name in names if name not in metrics for word in ("--section", name)]
    return words + (["--metrics", ",".join(metrics)] if metrics else [])


def profile(
    words: Sequence[str],
    *,
    environment: Mapping[str, str],
    timeout: float | None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Finished:
    """Run an ncu command line to a good end.

    Raises what `diagnose` says of a bad one, and TargetFailed past `timeout` seconds.
    """
    seen = _Seen(on_progress)
    try:
        finished = run(words, environment=environment, timeout=timeout, on_text=seen.feed)
    except TimedOut as error:
        raise TargetFailed(
            f"ncu was ended after {error.seconds:.0f} s{_last_kernel(error.output)}",
            "raise --timeout, or profile fewer launches (--kernel, --launch-count)",
        ) from None
    problem = diagnose(finished.output, finished.status)
    if problem is not None:
        raise problem
    return finished


class _Seen:
    """Follows ncu's output; progress comes in pieces of lines."""

    def __init__(self, on_progress: Callable[[Progress], None] | None) -> None:
        self._on_progress = on_progress
        self._text = ""
        self._last = Progress(0, "", 0)

    def feed(self, text: str) -> None:
        self._text += text
        kernels = _KERNEL.findall(self._text)
        passes = sum(int(count) for count in _PASSES.findall(self._text))
        now = Progress(len(kernels), kernels[-1][0] if kernels else "", passes)
        if self._on_progress and now != self._last:
            self._on_progress(now)
        self._last = now


def _last_kernel(output: str) -> str:
    kernels = _KERNEL.findall(output)
    return f" at kernel {len(kernels)}, {kernels[-1][0]}" if kernels else " before any kernel"


def diagnose(output: str, status: int) -> ProfkitError | None:
    """What ncu's output says went wrong, with the remedy; None where nothing did."""
    for problem in _PROBLEMS:
        if any(mark in output for mark in problem.marks):
            return problem.error(problem.message, problem.remedy)
    crashed = _STATUS.search(output)
    if crashed:
        return TargetFailed(
            f"the profiled program ended with status {crashed['status']}{_own_words(output)}",
            "run it without profkit first",
        )
    if "No kernels were profiled" in output:
        return TargetFailed(
            "ncu profiled no kernel",
            "check --kernel, --nvtx and --launch-skip, and that the program reaches its launches",
        )
    if status:
        return EnvironmentProblem(
            f"ncu ended with status {status}{_own_words(output)}", "see `profkit doctor`"
        )
    return None


def _own_words(output: str) -> str:
    """The last thing said that is not ncu's progress: ncu's error, or the program's last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "==ERROR==" in line and "error code" not in line]
    spoken = [line for line in lines if not line.startswith("==")]
    words = (errors or spoken or [""])[-1].removeprefix("==ERROR==").strip()
    return f": {words[:300]}" if words else ""


@dataclass(frozen=True)
class _Problem:
    marks: tuple[str, ...]
    error: type[ProfkitError]
    message: str
    remedy: str


_PROBLEMS = (
    _Problem(
        ("ERR_NVGPUCTRPERM",),
        EnvironmentProblem,
        "no permission to read GPU performance counters",
        _PERMISSION,
    ),
    _Problem(
        ("driver resource was unavailable", "concurrently collecting profiling data"),
        EnvironmentProblem,
        "another profiler holds the GPU's counters",
        "stop it, or pause DCGM with `dcgmi profile --pause`",
    ),
    _Problem(
        ("driver is not compatible", "Cuda driver is not compatible", "UnsupportedDriverVersion"),
        EnvironmentProblem,
        "the driver is too old for this ncu",
        "update the driver, or use the ncu of the driver's CUDA version",
    ),
    _Problem(
        ("Failed to initialize the profiler", "LibraryNotLoaded"),
        EnvironmentProblem,
        "ncu can't reach the GPU's counters here",
        "profile on a machine with direct access to the GPU",
    ),
    _Problem(
        ("No space left on device", "Failed to write report", "Failed to save report"),
        EnvironmentProblem,
        "the disk is full",
        "make room, or give --out a folder on another disk",
    ),
    _Problem(
        ("Failed to find metric", "No metrics to collect found", "No section"),
        UsageError,
        "ncu does not know a section or metric that was asked for",
        "list them with `ncu --list-sections` and `ncu --query-metrics`",
    ),
    _Problem(
        ("RecordStatusUnsupportedApi",),
        EnvironmentProblem,
        "ncu can't replay the marked range: a CUDA call in it can't be repeated",
        "profile with --replay-mode kernel or application",
    ),
    _Problem(
        ("Failed to lock clocks", "Failed to set clocks", "Failed to control clocks"),
        EnvironmentProblem,
        "ncu may not set the clocks on this machine",
        "profile with --clock-control none",
    ),
)
