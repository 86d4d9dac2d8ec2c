"""Runs Nsight Systems: a small timeline of CUDA calls and NVTX ranges, exported to SQLite.

CPU sampling stays off: with it a five-second script has written 2 GB. The environment is reduced
outside nsys, never between nsys and the program: nsys reaches the program through it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from profkit.capture.process import Finished, TimedOut, run
from profkit.capture.tools import Tool
from profkit.core.errors import EnvironmentProblem
from profkit.core.text_files import last_line

_ENDED = (128 + 9, 128 + 15)  # exit statuses after SIGKILL and SIGTERM


class NoTimeline(EnvironmentProblem):
    """nsys gave no timeline; `reason` is without nsys's output, which may be private."""

    def __init__(self, message: str, remedy: str, reason: str = "") -> None:
        super().__init__(message, remedy)
        self.reason = reason or message


class Refused(NoTimeline):
    """nsys did not do what its options ask for."""


class ProgramFailed(NoTimeline):
    """The program that nsys `recorded` has `finished` with another status than 0; `last` is the
    last line of output."""

    def __init__(self, error: NoTimeline, finished: Finished, last: str, recorded: Path) -> None:
        super().__init__(error.message, error.remedy, error.reason)
        self.finished, self.last, self.recorded = finished, last, recorded


class NsysOptions(Struct, frozen=True):
    """What nsys records: APIs, CUDA graphs by "node" or whole ("graph").

    `profiled_region_only` starts and stops with the program's cudaProfilerStart and Stop;
    `duration` ends the program after so many seconds of recording, 0 never. With `primary` nsys
    does not wait for processes that outlive the program, such as a pool of compilers.
    """

    trace: str = "cuda,nvtx"
    graphs: str = "node"
    profiled_region_only: bool = False
    duration: int = 0
    primary: bool = False

    @property
    def words(self) -> list[str]:
        """The options of `nsys profile`."""
        words = ["--sample=none", "--cpuctxsw=none", f"--trace={self.trace}"]
        words.append(f"--cuda-graph-trace={self.graphs}")
        if self.profiled_region_only:
            words += ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]
        if self.primary:
            words.append("--wait=primary")
        if self.duration:
            words += [f"--duration={self.duration}", "--kill=sigterm"]
        return words


def record(
    tool: Tool,
    program: Sequence[str],
    report: Path,
    options: NsysOptions,
    *,
    environment: Mapping[str, str],
    timeout: float | None,
) -> Path:
    """Record a program; the path of the `.nsys-rep`.

    Raises NoTimeline after the timeout, Refused with nsys's last line of output when there is no
    report, and ProgramFailed where the program failed; one that was ended after the duration did
    not, unless it made another status of that.
    """
    words = [tool.path, "profile", "--force-overwrite=true", f"--output={report}"]
    ended = (0, *_ENDED) if options.duration else (0,)
    file = report if report.suffix == ".nsys-rep" else report.with_suffix(".nsys-rep")
    _run([*words, *options.words, *program], environment, timeout, file, ended)
    if not file.is_file():
        raise Refused("nsys wrote no report", "see `profkit doctor`, or use --no-nsys")
    return file


def export(
    tool: Tool,
    report: Path,
    database: Path,
    *,
    environment: Mapping[str, str],
    timeout: float | None,
) -> None:
    """Export an `.nsys-rep` to SQLite; raises NoTimeline when that fails.

    Payloads of NVTX ranges, in which NCCL passes the sizes of its messages, are left out of an
    export that doesn't ask for them; what doesn't know the option exports the rest.
    """
    words = [tool.path, "export", "--type=sqlite", "--force-overwrite=true"]
    files = [f"--output={database}", str(report)]
    try:
        _run([*words, "--include-blobs=true", *files], environment, timeout)
    except Refused:
        _run([*words, *files], environment, timeout)
    if not database.is_file():
        raise Refused("nsys exported no timeline", "see `profkit doctor`")


def _run(
    words: Sequence[str],
    environment: Mapping[str, str],
    timeout: float | None,
    recorded: Path | None = None,
    expected: Sequence[int] = (0,),
) -> None:
    try:
        finished = run(words, environment=environment, timeout=timeout)
    except TimedOut as error:
        if recorded and recorded.is_file():  # nsys did its part
            return
        message = f"nsys was ended after {error.seconds:.0f} s"
        raise NoTimeline(message, "raise --timeout, or use --no-nsys") from None
    if finished.status not in expected:
        last = last_line(finished.output)
        reason = f"nsys {words[1]} ended with status {finished.status}"
        remedy = "see `profkit doctor`, or use --no-nsys"
        failure = Refused(f"{reason}: {last}", remedy, reason)
        if recorded and recorded.is_file():  # nsys did its part
            raise ProgramFailed(failure, finished, last, recorded)
        raise failure
