"""What the rules cost on a report of many kernels; asked: 30 rules on 10,000 kernels in 1 s.

`make bench`.
"""

from __future__ import annotations

from itertools import cycle, islice

import pytest
from msgspec import structs
from pytest_benchmark.fixture import BenchmarkFixture

import profkit
from benchmarks.test_cost import REPORT
from profkit.report.summary import ReportSummary
from profkit.rules.engine import diagnose
from profkit.rules.rule_file import shipped_rules

KERNELS = 10_000


@pytest.fixture(scope="module")
def large() -> ReportSummary:
    """The kernels of a recorded report, over and over."""
    report = profkit.load(REPORT).summary
    groups = tuple(structs.replace(group) for group in islice(cycle(report.groups), KERNELS))
    launches = tuple(group.typical for group in groups)
    return structs.replace(report, groups=groups, launches=launches)


def test_rules_on_many_kernels(benchmark: BenchmarkFixture, large: ReportSummary) -> None:
    """All shipped rules, findings and estimates, seconds."""
    found = benchmark.pedantic(diagnose, (large, shipped_rules()), rounds=5, warmup_rounds=1)
    assert found.kernels == KERNELS
    assert benchmark.stats is not None
    seconds = benchmark.stats.stats.median
    rules = len(shipped_rules())
    print(
        f"\n{rules} rules on {KERNELS:,} kernels, {len(found.findings):,} findings: {seconds:.2f} s"
    )
    assert seconds < 1
