"""What comparing 10,000 kernels with 10,000 takes, after they are read; printed, not asserted."""

from __future__ import annotations

import dataclasses
import random
import resource
import tracemalloc
from pathlib import Path

from pytest_benchmark.fixture import BenchmarkFixture

import profkit
from profkit.analysis.changes import COMPARED
from profkit.analysis.checklist import checklist
from profkit.analysis.diff import Diff, Side, diff
from profkit.analysis.rules import shipped_rules
from profkit.analysis.summary import LaunchSummary, ReportSummary, groups
from profkit.analysis.timed_change import timings

REPORT = Path(__file__).parent.parent / "reports" / "h200" / "known.ncu-repz"
KERNELS = 10_000


def report(seed: int) -> ReportSummary:
    """A report of kernels like the recorded ones, each quantity moved by up to a tenth.

    One in a hundred has another name in every report.
    """
    known = profkit.load(REPORT).summary
    rng = random.Random(seed)
    launches = tuple(_launch(known.launches[at % len(known.launches)], at, seed, rng)
                     for at in range(KERNELS))  # fmt: skip
    return dataclasses.replace(
        known, launches=launches, groups=groups(launches), recorded=len(launches)
    )


def _launch(like: LaunchSummary, at: int, seed: int, rng: random.Random) -> LaunchSummary:
    suffix = f"_in_{seed}" if at % 100 == 0 else ""
    told = dataclasses.replace(like.launch, index=at, name=f"kernel_{at}_part_{at % 7}{suffix}")
    moved = {name: value * rng.uniform(0.9, 1.0) for name, value in like.values.items()}
    same = {name: like.values[name] for name in ("grid_size", "block_size", "sm_clock")}
    return dataclasses.replace(like, launch=told, values=moved | same)


def compared(before: Side, after: Side) -> Diff:
    """All that a view asks of every kernel."""
    found = diff(before, after)
    assert len(found.kernels) == KERNELS
    for kernel in found.kernels:
        assert None not in (kernel.change, kernel.attribution, kernel.changed, kernel.findings)
    assert found.total.causes
    return found


def test_ten_thousand_kernels(benchmark: BenchmarkFixture) -> None:
    sides = [
        Side(one, checklist(one, shipped_rules()), timings(None)) for one in map(report, (1, 2))
    ]
    benchmark.pedantic(lambda: compared(*sides), rounds=3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    found = compared(*sides)
    held, peak = tracemalloc.get_traced_memory()
    print(
        f"\n{KERNELS:,} kernels against {KERNELS:,}: median {benchmark.stats.stats.median:.2f} s; "
        f"{held / 2**20:.0f} MiB held, {peak / 2**20:.0f} MiB at most, beside "
        f"{before / 2**10:.0f} MiB of the reports; {len(COMPARED)} quantities, "
        f"{found.counted(found.kernels[0].change):,} {found.kernels[0].change.value}"
    )
