"""What profkit costs beside the script one would write instead; ratios are printed, not asserted.

`make bench`. Every run is a fresh process, imports included; the two sides take turns, so that a
machine that drifts drifts for both.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from profkit.report.catalog import catalog

HERE = Path(__file__).parent
REPORT = HERE.parent / "reports" / "h200" / "known.ncu-repz"
ROUNDS = 9

PROFKIT = (sys.executable, "-m", "profkit")
BY_HAND = (sys.executable, str(HERE / "by_hand.py"), str(REPORT))
INGEST = (sys.executable, str(HERE / "ingest.py"), str(REPORT))


@pytest.fixture(scope="module", autouse=True)
def metric_names() -> None:
    (HERE / "metric_names.txt").write_text("\n".join(catalog().metric_names), encoding="utf-8")


WALL, LOOP, RAISED, PEAK = range(4)
"""Figures of `run`."""


def run(command: Sequence[str]) -> tuple[float, float, float, int]:
    """Wall seconds, the seconds and KiB that it printed on stderr (or 0), peak memory in KiB."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    with process.stderr as errors:
        printed = errors.read().strip()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, printed
    seconds, raised = map(float, printed.split() or (0, 0))
    return time.perf_counter() - started, seconds, raised, usage.ru_maxrss


def compare(
    benchmark: BenchmarkFixture, ours: Sequence[str], theirs: Sequence[str], figure: int
) -> tuple[float, float]:
    """Medians of ours and theirs for one figure of `run`, the two in turns."""
    pairs: list[tuple[float, float]] = []

    def turn() -> None:
        pairs.append((run(ours)[figure], run(theirs)[figure]))

    benchmark.pedantic(turn, rounds=ROUNDS, warmup_rounds=1)
    ratio = statistics.median(our / their for our, their in pairs[1:])
    mine = statistics.median(our for our, _ in pairs[1:])
    other = statistics.median(their for _, their in pairs[1:])
    print(f"\n{benchmark.name}: {mine:,.3f} beside {other:,.3f}, ratio {ratio:.2f}")
    return mine, other


def test_analyze_beside_a_script(benchmark: BenchmarkFixture) -> None:
    """Whole `profkit analyze`, seconds; asked: at most 0.8 times the script."""
    assert compare(benchmark, (*PROFKIT, "analyze", str(REPORT)), BY_HAND, WALL)


def test_analyze_json_beside_a_script(benchmark: BenchmarkFixture) -> None:
    """`--format json`, which also disassembles kernels that claim half-precision work, seconds."""
    json = (*PROFKIT, "analyze", str(REPORT), "--format", "json")
    assert compare(benchmark, json, BY_HAND, WALL)


def test_ingest_beside_a_bare_loop(benchmark: BenchmarkFixture) -> None:
    """Ingest alone, seconds; asked: at most 0.35 times the vendor's reader in a loop."""
    assert compare(benchmark, INGEST, (*BY_HAND, "--bare"), LOOP)


def test_memory_beside_a_bare_loop(benchmark: BenchmarkFixture) -> None:
    """Peak memory of ingest beyond the imports, KiB; asked: at most 0.25 times the loop's."""
    assert compare(benchmark, INGEST, (*BY_HAND, "--bare"), RAISED)


def test_memory_of_analyze_beside_a_script(benchmark: BenchmarkFixture) -> None:
    """Peak memory of `profkit analyze`, KiB, imports included."""
    assert compare(benchmark, (*PROFKIT, "analyze", str(REPORT)), BY_HAND, PEAK)


def test_version_beside_a_bare_app(benchmark: BenchmarkFixture) -> None:
    """`profkit --version`, seconds; asked: at most 0.2."""
    bare = "import typer; app = typer.Typer(); app.command()(lambda: print(1)); app()"
    assert compare(benchmark, (*PROFKIT, "--version"), (sys.executable, "-c", bare), WALL)
