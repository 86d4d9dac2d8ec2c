"""`profkit diff` on every recorded pair: what it reports for a defect and its fix."""

from __future__ import annotations

from functools import cache

import pytest
import yaml
from msgspec import structs

import profkit
from profkit.comparison.attribution import factors_of, stalls_of
from profkit.comparison.comparability import Aspect
from profkit.comparison.comparison import Diff, KernelDiff, Side, diff
from profkit.comparison.finding_changes import Status
from profkit.comparison.repeats import Change
from profkit.comparison.reports import side as side_of
from profkit.comparison.text import headline
from profkit.comparison.timed_change import timings
from profkit.score.score import read_pair
from tests.conftest import needs_reader, pair_folder, pair_report

NAMES = (
    "array_of_structs", "atomics_global", "atomics_shared", "barrier_lockstep", "ffma_gemm",
    "frame_order", "fuse_passes", "grid_too_small", "integer_division", "loads_in_flight",
    "loop_order", "misaligned_rows", "mma_sync_gemm", "no_unrolling", "occupancy_block_size",
    "occupancy_registers", "occupancy_shared_memory", "one_accumulator", "pointer_chase",
    "reduction_conflicts", "register_spills", "scalar_half", "scattered_stores", "softmax_passes",
    "stray_double", "tail_effect", "transpose_conflicts", "workload_imbalance",
)  # fmt: skip
LEFT_IN_PART = {"one_accumulator"}
"""Pairs whose fix leaves a smaller part of the defect: four chains of dependent instructions."""
MIRROR = {
    Change.improved: Change.regressed,
    Change.regressed: Change.improved,
    Status.resolved: Status.new,
    Status.new: Status.resolved,
    Status.improved: Status.worsened,
    Status.worsened: Status.improved,
    Status.masked: Status.unmasked,
    Status.unmasked: Status.masked,
}


@cache
def side(name: str, which: str) -> profkit.Report:
    return profkit.load(pair_report(name, which))


@cache
def pair(name: str) -> Diff:
    return profkit.diff(side(name, "before"), side(name, "after"))


def main_kernel(found: Diff) -> KernelDiff:
    return found.kernels[0]


def bare(report: profkit.Report) -> Side:
    """A side of a report alone: no run that declares what it computes."""
    return structs.replace(side_of(report), timings=timings(None))


@pytest.mark.parametrize("name", NAMES)
def test_pairs_compare_without_what_their_runs_declare(name: str) -> None:
    found = diff(bare(side(name, "before")), bare(side(name, "after")))
    assert not found.refused
    for kernel in found.kernels:
        assert Aspect.problem not in {obstacle.aspect for obstacle in kernel.obstacles}


@needs_reader
@pytest.mark.parametrize("name", NAMES)
def test_the_defect_is_called_resolved(name: str) -> None:
    category = yaml.safe_load((pair_folder(name) / "pair.yaml").read_text(encoding="utf-8"))[
        "category"
    ]
    found = pair(name)
    assert not found.refused
    changes = [one for kernel in found.kernels for one in kernel.findings]
    resolved = {one.category for one in changes if one.status is Status.resolved}
    resolved |= {item.rule.category for item in found.removed_findings}
    improved = {one.category for one in changes if one.status is Status.improved}
    assert category in (improved if name in LEFT_IN_PART else resolved)


@pytest.mark.parametrize("name", NAMES)
def test_the_headline_is_that_of_the_timing(name: str) -> None:
    """Against the medians that were timed apart from ncu; fuse_passes and misaligned_rows have two
    kernels, so no latency is one kernel's."""
    found = pair(name)
    achieved = read_pair(pair_folder(name)).achieved
    (timed,) = found.timed
    assert timed.speedup == pytest.approx(achieved, rel=0.02)
    kernel = main_kernel(found)
    if kernel.timed is None:
        assert len(found.sides[0].report.launches) == 2
        return
    assert kernel.change is Change.improved
    assert kernel.by_timing == timed.valid
    said = headline(kernel)
    assert "faster" in said
    if timed.valid:
        assert f"{kernel.speedup:.2f}x" in said or f"{kernel.speedup:.1f}x" in said


@pytest.mark.parametrize("name", NAMES)
def test_causes_add_up_to_the_change(name: str) -> None:
    for kernel in pair(name).kernels:
        assert kernel.attribution is not None
        change = kernel.after.median - kernel.before.median
        together = sum(cause.seconds for cause in kernel.attribution.causes)
        assert together == pytest.approx(change, rel=1e-3, abs=1e-12)
        assert kernel.attribution.missing == ()


@pytest.mark.parametrize("name", NAMES)
def test_what_the_counters_leave_over_is_little(name: str) -> None:
    """The product of the factors is the launch's time, to what their passes differ by."""
    for which in ("before", "after"):
        for launch in side(name, which).summary.launches:
            factors = factors_of(launch)
            product = factors["instructions"] * factors["reissues"]
            product *= sum(stalls_of(launch).values()) / launch.get("sm_count")
            for divisor in ("warps_resident", "sms_with_work", "clock"):
                product /= factors[divisor]
            assert launch.duration / product == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_swapping_the_sides_mirrors_the_answer(name: str) -> None:
    there, back = pair(name), profkit.diff(side(name, "after"), side(name, "before"))
    assert [group.name for group in there.removed] == [group.name for group in back.added]
    by_name = {one.after.name: one for one in back.kernels}
    for kernel in there.kernels:
        other = by_name[kernel.before.name]
        assert other.before.name == kernel.after.name
        assert other.change is MIRROR.get(kernel.change, kernel.change)
        assert other.speedup == pytest.approx(1 / kernel.speedup, rel=1e-9)
        assert kernel.attribution is not None
        assert other.attribution is not None
        causes = {cause.key: cause.seconds for cause in kernel.attribution.causes}
        scale = max(map(abs, causes.values()))
        for cause in other.attribution.causes:
            assert cause.seconds == pytest.approx(-causes[cause.key], abs=1e-9 * scale)
        mirrored = {one.category: MIRROR.get(one.status, one.status) for one in kernel.findings}
        assert {one.category: one.status for one in other.findings} == mirrored
        assert {one.name for one in other.changed} == {one.name for one in kernel.changed}
        assert {(one.line_after, one.line_before, -one.change) for one in other.lines} == {
            (one.line_before, one.line_after, one.change) for one in kernel.lines
        }


@pytest.mark.parametrize("name", NAMES)
def test_a_report_against_itself_is_the_same_with_an_empty_list(name: str) -> None:
    report = side(name, "before")
    found = profkit.diff(report, report)
    assert not found.removed
    assert not found.added
    for kernel in found.kernels:
        assert kernel.change is Change.same
        assert kernel.changed == ()
        assert kernel.one_sided == ()
        assert {one.status for one in kernel.findings} <= {Status.unchanged}
