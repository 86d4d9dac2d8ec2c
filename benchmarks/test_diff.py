"""What comparing 10,000 kernels with 10,000 takes, after they are read; printed, not asserted."""

from __future__ import annotations

import dataclasses
import gc
import random
import resource
import time
import tracemalloc
from pathlib import Path

from msgspec import structs
from pytest_benchmark.fixture import BenchmarkFixture

import profkit
from profkit.comparison.changes import quantities
from profkit.comparison.comparison import Side, diff
from profkit.comparison.result import Comparisons, Judged
from profkit.comparison.timed_change import timings
from profkit.comparison.view import diff_text
from profkit.report.summary import LaunchSummary, ReportSummary, groups
from profkit.rules.checklist import checklist
from profkit.rules.rule_file import shipped_rules

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
    return structs.replace(
        known, launches=launches, groups=groups(launches), recorded=len(launches)
    )


def _launch(like: LaunchSummary, at: int, seed: int, rng: random.Random) -> LaunchSummary:
    suffix = f"_in_{seed}" if at % 100 == 0 else ""
    told = dataclasses.replace(like.launch, index=at, name=f"kernel_{at}_part_{at % 7}{suffix}")
    moved = {name: value * rng.uniform(0.9, 1.0) for name, value in like.values.items()}
    same = {name: like.values[name] for name in ("grid_size", "block_size", "sm_clock")}
    return dataclasses.replace(like, launch=told, values=moved | same)


def as_shown(before: Side, after: Side) -> str:
    """What `profkit diff` prints of two reports that were read."""
    found = diff(before, after)
    assert len(found.kernels) == KERNELS
    judged = [Judged("", found, ())]
    return diff_text(Comparisons(judged, 3, show_all=False, with_host=False), "terminal")


def in_full(before: Side, after: Side) -> None:
    """Causes, findings and changes of every kernel, as JSON has them."""
    for kernel in diff(before, after).kernels:
        assert None not in (kernel.attribution, kernel.changed, kernel.findings)


def test_ten_thousand_kernels(benchmark: BenchmarkFixture) -> None:
    sides = [
        Side(one, checklist(one, shipped_rules()), timings(None)) for one in map(report, (1, 2))
    ]
    gc.collect()
    gc.freeze()
    benchmark.pedantic(lambda: as_shown(*sides), rounds=5)
    assert benchmark.stats is not None
    started = time.perf_counter()
    in_full(*sides)
    full = time.perf_counter() - started
    tracemalloc.start()
    as_shown(*sides)
    held, peak = (size / 2**20 for size in tracemalloc.get_traced_memory())
    tracemalloc.stop()
    gc.unfreeze()
    reports = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(
        f"\n{KERNELS:,} kernels against {KERNELS:,}: shown in {benchmark.stats.stats.median:.2f} s,"
        f" {held:.0f} MiB held after and {peak:.0f} MiB at most, beside {reports:.0f} MiB of the"
        f" reports; all of every kernel ({len(quantities())} quantities) in {full:.1f} s"
    )
