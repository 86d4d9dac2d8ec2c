"""Drives Nsight Compute: its command line, its progress, and what its messages mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.capture.process import TimedOut, run
from profkit.capture.tools import Tool
from profkit.core.errors import BadInput, EnvironmentProblem, ProfkitError, TargetFailed, UsageError
from profkit.core.text_files import MissingFile, read_text

SETS = ("full", "detailed", "basic")

_KERNEL = re.compile(
    r'==PROF== Profiling "(?P<name>[^"]*)"(?: - (?P<index>\d+))?(?: \((?P<at>\d+)/(?P<of>\d+)\))?:'
)
_PASSES = re.compile(r"100% - (?P<passes>\d+) pass")
_STATUS = re.compile(r"==ERROR== The application returned an error code \((?P<status>\d+)\)")
_REFUSED_CALL = re.compile(r"Unsupported API during capture \((?P<call>\w+)\)")
_OWN = re.compile(r"==(?:ERROR|WARNING)==[^\n]*")
_MOST_LINES = 1000
_LONGEST_LINE = 1 << 14
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
    words = [tool.path, "--force-overwrite", "--export", str(report), *collected(options.sections)]
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


def collected(sections: str) -> list[str]:
    """The words that tell ncu what to collect: a set, or the sections and metrics of a file.

    Raises UsageError for what is neither a set nor such a file.
    """
    if sections in SETS:
        return ["--set", sections]
    instead = f"use one of {', '.join(SETS)}, or a file with a section or metric a line"
    try:
        lines = read_text(Path(sections)).splitlines()
    except MissingFile:
        raise UsageError(f"--set {sections!r} is neither a set nor a file", instead) from None
    except BadInput as error:
        raise UsageError(f"--set {error.message}", instead) from None
    names = [name for line in lines if (name := line.strip()) and not name.startswith("#")]
    if not names:
        raise UsageError(f"--set {sections!r} names no section or metric", instead)
    metrics = [name for name in names if "__" in name]
    words = [word for name in names if name not in metrics for word in ("--section", name)]
    return words + (["--metrics", ",".join(metrics)] if metrics else [])


def profile(
    words: Sequence[str],
    report: Path,
    *,
    environment: Mapping[str, str],
    timeout: float | None,
    on_progress: Callable[[Progress], None] | None = None,
) -> tuple[str, ...]:
    """Run an ncu command line to a good end, with its report; errors that ncu told all the same.

    Raises what `diagnose` says of a bad one, and TargetFailed past `timeout` seconds.
    """
    seen = _Seen(on_progress)
    try:
        finished = run(words, environment=environment, timeout=timeout, on_text=seen.feed)
    except TimedOut as error:
        raise TargetFailed(
            f"ncu was ended after {error.seconds:.0f} s{_last_kernel(seen.last)}",
            "raise --timeout, or profile fewer launches (--kernel, --launch-count)",
        ) from None
    if finished.status or not report.is_file():
        raise diagnose("\n".join((*seen.own, finished.output)), finished.status)
    return tuple(_errors(seen.own))


class _Seen:
    """Follows ncu's output, which comes in pieces of lines, between those of the program."""

    def __init__(self, on_progress: Callable[[Progress], None] | None) -> None:
        self._on_progress = on_progress
        self._line = ""
        self._whole = Progress(0, "", 0)
        self.last = self._whole
        self.own: list[str] = []

    def feed(self, text: str) -> None:
        """Take the next piece; only what is new is looked at, and the line that it goes on with."""
        lines, newline, line = (self._line + text).rpartition("\n")
        if len(line) > _LONGEST_LINE:  # no line of ncu's
            lines, newline, line = lines + newline + line, "", ""
        if lines:
            self._whole = _further(self._whole, lines)
            self.own += _OWN.findall(lines)[: _MOST_LINES - len(self.own)]
        self._line = line
        now = _further(self._whole, line) if "==" in line else self._whole
        if self._on_progress and now != self.last:
            self._on_progress(now)
        self.last = now


def _further(progress: Progress, text: str) -> Progress:
    kernels = _KERNEL.findall(text)
    passes = sum(int(count) for count in _PASSES.findall(text))
    return Progress(
        progress.kernels + len(kernels),
        kernels[-1][0] if kernels else progress.name,
        progress.passes + passes,
    )


def _last_kernel(last: Progress) -> str:
    return f" at kernel {last.kernels}, {last.name}" if last.kernels else " before any kernel"


def diagnose(output: str, status: int) -> ProfkitError:
    """What went wrong in a run of ncu that failed or left no report, with the remedy.

    Only ncu's own errors and warnings are looked at: the profiled program may say anything.
    """
    own = "\n".join(_OWN.findall(output))
    refused = _REFUSED_CALL.search(own)
    if refused or "RecordStatusUnsupportedApi" in own:
        call = refused["call"] if refused else "a CUDA call"
        return EnvironmentProblem(
            f"ncu can't replay the marked range: {call} in it can't be repeated",
            "leave out the variant that makes the call, or use --replay-mode application",
        )
    for marks, (kind, message, remedy) in _PROBLEMS.items():
        if any(mark in own for mark in marks):
            return kind(message, remedy)
    return _failure(own, output, status)


def _failure(own: str, output: str, status: int) -> ProfkitError:
    """A failure that ncu gave no reason for."""
    if crashed := _STATUS.search(own):
        return TargetFailed(
            f"the profiled program ended with status {crashed['status']}{_last_words(output)}",
            "run it without profkit first",
        )
    if "No kernels were profiled" in own:
        return TargetFailed(
            "ncu profiled no kernel",
            "check --kernel, --nvtx and --launch-skip, and that the program reaches its launches",
        )
    end = f"ended with status {status}{_last_words(output)}" if status else "wrote no report"
    return EnvironmentProblem(f"ncu {end}", "see `profkit doctor`")


def _last_words(output: str) -> str:
    """The last thing said that is not ncu's progress: ncu's error, or the program's last line."""
    told = [line for line in _errors(_OWN.findall(output)) if "error code" not in line]
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    spoken = [line for line in lines if not line.startswith("==")]
    words = (told or spoken or [""])[-1]
    return f": {words[:300]}" if words else ""


def _errors(own: Sequence[str]) -> list[str]:
    mark = "==ERROR=="
    return [line.removeprefix(mark).strip() for line in own if line.startswith(mark)]


_PROBLEMS: Mapping[tuple[str, ...], tuple[type[ProfkitError], str, str]] = {
    ("ERR_NVGPUCTRPERM",): (
        EnvironmentProblem,
        "no permission to read GPU performance counters",
        _PERMISSION,
    ),
    ("driver resource was unavailable", "concurrently collecting profiling data"): (
        EnvironmentProblem,
        "another profiler holds the GPU's counters",
        "stop it, or pause DCGM with `dcgmi profile --pause`",
    ),
    ("driver is not compatible", "Cuda driver is not compatible", "UnsupportedDriverVersion"): (
        EnvironmentProblem,
        "the driver is too old for this ncu",
        "update the driver, or use the ncu of the driver's CUDA version",
    ),
    ("Failed to initialize the profiler", "LibraryNotLoaded"): (
        EnvironmentProblem,
        "ncu can't reach the GPU's counters here",
        "profile on a machine with direct access to the GPU",
    ),
    ("No space left on device", "Failed to write report", "Failed to save report"): (
        EnvironmentProblem,
        "the disk is full",
        "make room, or give --out a folder on another disk",
    ),
    ("Failed to find metric", "No metrics to collect found", "No section"): (
        UsageError,
        "ncu does not know a section or metric that was asked for",
        "list them with `ncu --list-sections` and `ncu --query-metrics`",
    ),
    ("Failed to lock clocks", "Failed to set clocks", "Failed to control clocks"): (
        EnvironmentProblem,
        "ncu may not set the clocks on this machine",
        "profile with --clock-control none",
    ),
}
"""What ncu says, and what to tell where it says any of it."""
