"""Runs Nsight Compute: its command line, its progress, and its error messages."""

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from msgspec import Struct

from profkit.capture.process import TimedOut, follow, run, start
from profkit.capture.program_environment import failure_remedy
from profkit.capture.sets import (
    AUTO,
    NCU_SETS,
    NOTHING,
    OWN_SETS,
    CaptureSet,
    capture_set,
)
from profkit.capture.tools import Tool
from profkit.capture.watchdog import Watchdog
from profkit.core.compute_capability import ComputeCapability
from profkit.core.errors import BadInput, EnvironmentProblem, ProfkitError, TargetFailed, UsageError
from profkit.core.text_files import MissingFile, read_text
from profkit.core.yaml_files import shipped_yaml

SETS = (*OWN_SETS, *NCU_SETS)

_KERNEL = re.compile(r'==PROF== Profiling "([^"]*)"(?: - \d+)?(?: \(\d+/\d+\))?:')
_PASSES = re.compile(r"100% - (\d+) pass")
_STATUS = re.compile(r"==ERROR== The application returned an error code \((\d+)\)")
_REFUSED_CALL = re.compile(r"Unsupported API during capture \((\w+)\)")
_OWN = re.compile(r"==(?:ERROR|WARNING)==[^\n]*")
_MAY_COMPRESS = (2026, 1)  # ncu 2025.3 does not
_HELP = 30.0  # seconds, chosen: it takes one
_CONNECTIONS = 8  # ports, chosen: a program that is attached to has one process with GPU work
_MOST_LINES = 1000  # chosen: bounds the memory for messages
_LONGEST_LINE = 1 << 14  # characters, chosen: above any line of ncu's own


class CountersRefused(EnvironmentProblem):
    """The machine gives nobody, or not this user, its hardware counters."""


class NothingProfiled(TargetFailed):
    """No launch of the program passed ncu's filters."""


@dataclass(frozen=True)
class NcuOptions:
    """Options of ncu. `sections` is a set's name or a file with one section or metric per line.

    `flop` adds what the roofs need, `sampling` samples over time. profkit's sets depend on the
    GPU's compute capability. Clock and cache control are always passed, so that the report records
    them. With `invocations` only those of each function that `kernel` matches are profiled, counted
    from 1. `device` is the only GPU whose kernels are profiled; `kill` ends the program after
    `launch_count` launches. So many `ranks_in_lockstep` replay their launches together, which
    collectives need (ncu 2026.1). With `port` ncu attaches to a program that waits there.
    """

    sections: str = "full"
    flop: bool = False
    sampling: bool = False
    capability: ComputeCapability | None = None
    graph_profiling: str = "node"
    clock_control: str = "none"
    cache_control: str = "all"
    replay_mode: str = "kernel"
    target_processes: str = "all"
    import_source: bool = True
    profile_from_start: bool = True
    kernel: str | None = None
    invocations: tuple[int, ...] = ()
    launch_skip: int | None = None
    launch_count: int | None = None
    nvtx: str | None = None
    device: int | None = None
    kill: bool = False
    ranks_in_lockstep: int | None = None
    port: int | None = None

    @property
    def by_kernel(self) -> bool:
        """Whether a result is of a single kernel, not of a range or a whole graph."""
        return not self.in_range and self.graph_profiling == "node"

    @property
    def in_range(self) -> bool:
        """Whether a range is replayed, which refuses what is about single kernels."""
        return self.replay_mode == "range"


class Progress(Struct, frozen=True):
    """Kernels so far, the name of the last, and the replay passes of finished ones."""

    kernels: int
    name: str
    passes: int


def command(tool: Tool, options: NcuOptions, report: Path, program: Sequence[str]) -> list[str]:
    """The ncu command line; raises UsageError for a set that is neither a name nor a file.

    One that attaches has no program, nor what belongs to the one that launches it.
    """
    if options.port:
        mode = ["--mode", "attach", "--hostname", "127.0.0.1", *_ports(options.port)]
    else:
        mode = ["--nvtx", "--target-processes", options.target_processes]
    kernel, ranks = options.kernel, options.ranks_in_lockstep
    numbered = "|".join(map(str, options.invocations))
    source = "yes" if options.import_source else "no"
    words: dict[str, str | int | None] = {
        "--export": str(report),
        "--clock-control": options.clock_control,
        "--cache-control": options.cache_control,
        "--replay-mode": options.replay_mode,
        # ncu before 2023.1 does not know the option
        "--graph-profiling": "graph" if options.graph_profiling == "graph" else None,
        "--import-source": None if options.in_range else source,
        "--profile-from-start": None if options.in_range or options.profile_from_start else "off",
        "--kernel-name-base": "demangled" if kernel else None,
        "--kernel-id": f"::regex:{kernel}:^({numbered})$" if kernel and numbered else None,
        "--kernel-name": f"regex:{kernel}" if kernel and not numbered else None,
        "--launch-skip": options.launch_skip,
        "--launch-count": options.launch_count,
        "--devices": options.device,
        "--communicator": "shmem" if ranks else None,
        "--communicator-shmem-num-peers": ranks,
        "--kill": "yes" if options.kill else None,
        "--nvtx-include": f"{options.nvtx.rstrip('/')}/" if options.nvtx else None,
    }
    pairs = [(option, str(word)) for option, word in words.items() if word is not None]
    flags = ["--force-overwrite", *mode, *(["--lockstep-kernel-launch"] if ranks else [])]
    target = () if options.port else program
    return [tool.path, *flags, *collected(options), *chain.from_iterable(pairs), *target]


def launching(tool: Tool, options: NcuOptions, port: int, program: Sequence[str]) -> list[str]:
    """The ncu command line that starts a program, and makes it wait at the port when it begins to
    use the GPU. That its end is another's business needs no error."""
    words = ["--nvtx", "--target-processes", options.target_processes, "--check-exit-code", "no"]
    return [tool.path, "--mode", "launch", *_ports(port), *words, *program]


def _ports(first: int) -> list[str]:
    return ["--port", str(first), "--max-connections", str(_CONNECTIONS)]


def collected(options: NcuOptions) -> list[str]:
    """The words that tell ncu what to collect: a set, or the sections and metrics of a file.

    Raises UsageError for what is neither a set nor such a file.
    """
    added = (("flop", options.flop), ("sampling", options.sampling))
    names = [name for name, wanted in added if wanted]
    extra = sum((capture_set(name, options.capability) for name in names), start=NOTHING)
    if options.sections in NCU_SETS:
        return ["--set", options.sections, *extra.words]
    if options.sections in OWN_SETS:
        by_instruction = options.by_kernel
        own = capture_set(options.sections, options.capability, by_instruction=by_instruction)
        return (own + extra).words
    names = listed_names(options.sections)
    sections = tuple(name for name in names if "__" not in name)
    metrics = tuple(name for name in names if "__" in name)
    return (CaptureSet(sections, metrics, 0) + extra).words


def listed_names(path: str) -> list[str]:
    """The sections and metrics of a file, one a line; raises UsageError for any other file."""
    sets = ", ".join((*SETS, AUTO))
    remedy = f"use one of {sets}, or a file with one section or metric per line"
    try:
        lines = read_text(Path(path)).splitlines()
    except MissingFile:
        raise UsageError(f"--set {path!r} is neither a set nor a file", remedy) from None
    except BadInput as error:
        raise UsageError(f"--set {error.message}", remedy) from None
    names = [name for line in lines if (name := line.strip()) and not name.startswith("#")]
    if not names:
        raise UsageError(f"--set {path!r} contains no section or metric", remedy)
    return names


def can_compress(tool: Tool, environment: Mapping[str, str]) -> bool:
    """Whether this ncu writes compressed reports by itself: its help names their extension."""
    if tool.version < _MAY_COMPRESS:
        return False
    try:
        finished = run([tool.path, "--help"], environment=environment, timeout=_HELP)
    except TimedOut:
        return False
    return "ncu-repz" in finished.output


def profile(
    words: Sequence[str],
    report: Path,
    *,
    environment: Mapping[str, str],
    timeout: float | None,
    on_progress: Callable[[Progress], None] | None = None,
    watchdog: Watchdog | None = None,
    begin: Callable[[Sequence[str]], subprocess.Popen[bytes]] | None = None,
) -> tuple[str, ...]:
    """Run an ncu command line; the errors that ncu printed although it wrote a report. `begin` is
    what starts it, where it is not started by itself.

    Raises the error of `diagnose` for a failed run, TargetFailed past `timeout` seconds, and
    Stalled where the `watchdog` ended it: the report may hold what was recorded until then.
    """
    follower = _Follower(on_progress)
    try:
        supervisor = begin(words) if begin else start(words, environment)
        finished = follow(supervisor, timeout=timeout, on_text=follower.feed, watchdog=watchdog)
    except TimedOut as error:
        last = follower.last
        place = f"at kernel {last.kernels}, {last.name}" if last.kernels else "before any kernel"
        raise TargetFailed(
            f"ncu was ended after {error.seconds:.0f} s {place}",
            "raise --timeout, or profile fewer launches (--kernel, --launch-count)",
        ) from None
    if finished.status or not report.is_file():
        raise diagnose("\n".join((*follower.messages, finished.output)), finished.status)
    return tuple(_errors(follower.messages))


class _Follower:
    """Follows ncu's output, which comes in pieces of lines, between those of the program."""

    def __init__(self, on_progress: Callable[[Progress], None] | None) -> None:
        self._on_progress = on_progress
        self._line = ""
        self._whole = self.last = Progress(0, "", 0)
        self.messages: list[str] = []

    def feed(self, text: str) -> None:
        """Process the next piece, with the unfinished line before it."""
        lines, newline, line = (self._line + text).rpartition("\n")
        if len(line) > _LONGEST_LINE:  # no line of ncu's
            lines, newline, line = lines + newline + line, "", ""
        if lines:
            self._whole = _advanced(self._whole, lines)
            self.messages += _OWN.findall(lines)[: _MOST_LINES - len(self.messages)]
        self._line = line
        progress = _advanced(self._whole, line) if "==" in line else self._whole
        if self._on_progress and progress != self.last:
            self._on_progress(progress)
        self.last = progress


def _advanced(progress: Progress, text: str) -> Progress:
    kernels = _KERNEL.findall(text)
    return Progress(
        progress.kernels + len(kernels),
        kernels[-1] if kernels else progress.name,
        progress.passes + sum(map(int, _PASSES.findall(text))),
    )


def diagnose(output: str, status: int) -> ProfkitError:
    """What went wrong in a run of ncu that failed or left no report, with the remedy.

    Only ncu's own errors and warnings count: the profiled program may print anything.
    """
    own = "\n".join(_OWN.findall(output))
    refused = _REFUSED_CALL.search(own)
    if refused or "RecordStatusUnsupportedApi" in own:
        call = refused[1] if refused else "a CUDA call"
        return EnvironmentProblem(
            f"ncu can't replay the range: it calls {call}, which is not supported",
            "leave out the variant that makes the call, or use --replay-mode application",
        )
    for row in shipped_yaml("profkit.capture", "ncu.yaml"):
        if any(mark in own for mark in row["marks"]):
            kind = UsageError if row.get("usage") else EnvironmentProblem
            return (CountersRefused if row.get("refused") else kind)(row["problem"], row["remedy"])
    words = _last_words(output)
    if crashed := _STATUS.search(own):
        message = f"the profiled program ended with status {crashed[1]}{words}"
        return TargetFailed(message, failure_remedy(words, "run the program without profkit first"))
    if "No kernels were profiled" in own:
        return NothingProfiled(
            "ncu profiled no kernel",
            "check --kernel, --nvtx and --launch-skip, and that the program reaches its launches",
        )
    message = f"ncu ended with status {status}{words}" if status else "ncu wrote no report"
    return EnvironmentProblem(message, "see `profkit doctor`")


def _last_words(output: str) -> str:
    """The last line of output except ncu's progress: ncu's error, or the program's last line."""
    errors = [line for line in _errors(_OWN.findall(output)) if "error code" not in line]
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    printed_lines = [line for line in lines if not line.startswith("==")]
    words = (errors or printed_lines or [""])[-1]
    return f": {words[:300]}" if words else ""


def _errors(messages: Sequence[str]) -> list[str]:
    mark = "==ERROR=="
    return [line.removeprefix(mark).strip() for line in messages if line.startswith(mark)]
