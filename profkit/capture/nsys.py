"""Drives Nsight Systems: a small timeline of CUDA calls and NVTX ranges, exported to SQLite.

CPU sampling stays off: with it a five-second script has written 2 GB. The environment is reduced
outside nsys, never between nsys and the program: nsys reaches the program through it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from profkit.capture.process import TimedOut, run
from profkit.capture.tools import Tool
from profkit.errors import EnvironmentProblem


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
    EnvironmentProblem with nsys's last words when there is no report.
    """
    words = [tool.path, "profile", "--force-overwrite=true", f"--output={report}"]
    words += ["--sample=none", "--cpuctxsw=none", "--trace=cuda,nvtx"]
    if profiled_region_only:
        words += ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]
    _run([*words, *program], environment, timeout)
    written = report if report.suffix == ".nsys-rep" else report.with_suffix(".nsys-rep")
    if not written.is_file():
        raise EnvironmentProblem("nsys wrote no report", "see `profkit doctor`, or use --no-nsys")
    return written


def export(
    tool: Tool,
    report: Path,
    database: Path,
    *,
    environment: Mapping[str, str],
    timeout: float | None,
) -> None:
    """Export an `.nsys-rep` to SQLite; raises EnvironmentProblem when that fails."""
    words = [tool.path, "export", "--type=sqlite", "--force-overwrite=true"]
    _run([*words, f"--output={database}", str(report)], environment, timeout)
    if not database.is_file():
        raise EnvironmentProblem("nsys exported no timeline", "see `profkit doctor`")


def _run(words: Sequence[str], environment: Mapping[str, str], timeout: float | None) -> None:
    try:
        finished = run(words, environment=environment, timeout=timeout)
    except TimedOut as error:
        raise EnvironmentProblem(
            f"nsys was ended after {error.seconds:.0f} s", "raise --timeout, or use --no-nsys"
        ) from None
    if finished.status:
        lines = [line.strip() for line in finished.output.splitlines() if line.strip()]
        words_of_nsys = lines[-1][:300] if lines else "it said nothing"
        raise EnvironmentProblem(
            f"nsys {words[1]} ended with status {finished.status}: {words_of_nsys}",
            "see `profkit doctor`, or use --no-nsys",
        )
