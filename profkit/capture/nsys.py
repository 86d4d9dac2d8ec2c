"""Runs Nsight Systems: a small timeline of CUDA calls and NVTX ranges, exported to SQLite.

CPU sampling stays off: with it a five-second script has written 2 GB. The environment is reduced
outside nsys, never between nsys and the program: nsys reaches the program through it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from profkit.capture.process import TimedOut, run
from profkit.capture.tools import Tool
from profkit.core.errors import EnvironmentProblem


class NoTimeline(EnvironmentProblem):
    """nsys gave no timeline; `reason` is without nsys's output, which may be private."""

    def __init__(self, message: str, remedy: str, reason: str = "") -> None:
        super().__init__(message, remedy)
        self.reason = reason or message


def record(
    tool: Tool,
    program: Sequence[str],
    report: Path,
    *,
    environment: Mapping[str, str],
    timeout: float | None,
    profiled_region_only: bool,
) -> Path:
    """Record a program; the path of the `.nsys-rep`.

    `profiled_region_only` starts and stops with the program's cudaProfilerStart and Stop. Raises
    NoTimeline with nsys's last line of output when there is no report.
    """
    words = [tool.path, "profile", "--force-overwrite=true", f"--output={report}"]
    words += ["--sample=none", "--cpuctxsw=none", "--trace=cuda,nvtx", "--cuda-graph-trace=node"]
    if profiled_region_only:
        words += ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]
    _run([*words, *program], environment, timeout)
    file = report if report.suffix == ".nsys-rep" else report.with_suffix(".nsys-rep")
    if not file.is_file():
        raise NoTimeline("nsys wrote no report", "see `profkit doctor`, or use --no-nsys")
    return file


def export(
    tool: Tool,
    report: Path,
    database: Path,
    *,
    environment: Mapping[str, str],
    timeout: float | None,
) -> None:
    """Export an `.nsys-rep` to SQLite; raises NoTimeline when that fails."""
    words = [tool.path, "export", "--type=sqlite", "--force-overwrite=true"]
    _run([*words, f"--output={database}", str(report)], environment, timeout)
    if not database.is_file():
        raise NoTimeline("nsys exported no timeline", "see `profkit doctor`")


def _run(words: Sequence[str], environment: Mapping[str, str], timeout: float | None) -> None:
    try:
        finished = run(words, environment=environment, timeout=timeout)
    except TimedOut as error:
        message = f"nsys was ended after {error.seconds:.0f} s"
        raise NoTimeline(message, "raise --timeout, or use --no-nsys") from None
    if finished.status:
        lines = finished.output.splitlines()
        last = next((line.strip() for line in reversed(lines) if line.strip()), "no output")
        reason = f"nsys {words[1]} ended with status {finished.status}"
        remedy = "see `profkit doctor`, or use --no-nsys"
        raise NoTimeline(f"{reason}: {last[:300]}", remedy, reason)
