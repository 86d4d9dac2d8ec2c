"""Statuses of findings: resolved, or masked by something else; and the quantity that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest

import profkit
from profkit.comparison.comparison import Diff, KernelDiff
from profkit.comparison.finding_changes import FindingChange, Status
from profkit.comparison.gates import failures, parse_gates
from profkit.comparison.measures import Measure, measures
from profkit.comparison.text import finding, headline
from profkit.rules.rule_file import shipped_rules
from tests.comparing import Made, compared
from tests.comparison.test_diff_pairs import NAMES
from tests.conftest import CORPUS, needs_corpus, needs_reader, pair_report

MORE_IS_BETTER = (
    "occupancy_", "threads_per_instruction", "grid_size", "sm_active_share", "tensor_busy",
    "issue_rate", "l2_hit_rate", "warps_", "fp32_fused", "flop_tensor_wgmma",
)  # fmt: skip
"""Quantities of which the programming guides want more; of what defects are measured by otherwise,
stalls, traffic, instructions, conflicts, imbalance, they want less."""
SHOWN_AS = {
    Status.resolved: "better", Status.improved: "better", Status.new: "worse", Status.worsened:
    "worse", Status.masked: "no better", Status.unmasked: "no worse", Status.unchanged: "alike",
}  # fmt: skip


@cache
def side(name: str, which: str) -> profkit.Report:
    return profkit.load(pair_report(name, which))


@cache
def pair(name: str, *, back: bool = False) -> Diff:
    sides = [side(name, which) for which in ("before", "after")]
    return profkit.diff(*(reversed(sides) if back else sides))


def changes(name: str, *, back: bool = False) -> Mapping[str, FindingChange]:
    return {one.category: one for one in main(name, back=back).findings}


def main(name: str, *, back: bool = False) -> KernelDiff:
    return pair(name, back=back).kernels[0]


def moved(one: FindingChange) -> set[str]:
    """How the quantity in brackets moved, and which status it allows."""
    assert one.seen is not None
    before, after = (
        1.0 if value != value else value for value in (one.seen.before, one.seen.after)
    )
    if abs(after - before) < 0.1 * max(before, after) or before == after:
        return {"alike", "no better", "no worse"}
    better = (after > before) == one.seen.name.startswith(MORE_IS_BETTER)
    return {"better", "no worse"} if better else {"worse", "no better"}


@needs_reader
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_bracket_agrees_with_the_word_before_it(name: str, back: bool) -> None:
    for kernel in pair(name, back=back).kernels:
        for one in kernel.findings:
            if one.seen:
                assert SHOWN_AS[one.status] in moved(one), finding(one)


@needs_reader
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("integer_division", "instruction_overhead resolved (integer_instructions"),
        ("no_unrolling", "instruction_overhead resolved (integer_instructions"),
        ("scalar_half", "instruction_issue resolved (instructions_executed"),
        ("loads_in_flight", "memory_latency resolved (stall_long_scoreboard"),
        ("workload_imbalance", "memory_latency improved (stall_long_scoreboard"),
        ("pointer_chase", "memory_latency resolved (stall_long_scoreboard"),
        ("register_spills", "register_spills resolved (local_memory_instructions 153.7 M → 0)"),
        ("atomics_global", "atomics_contention resolved (global_atomic_instructions"),
        ("atomics_shared", "shared_bank_conflicts resolved (atomics 24.5-way → no accesses)"),
        ("mma_sync_gemm", "tensor_path_legacy resolved (flop_tensor_hmma 549.8 GFLOP → 0 FLOP)"),
    ],
)
def test_a_fix_is_shown_by_the_defects_own_measure(name: str, said: str) -> None:
    assert any(finding(one).startswith(said) for one in changes(name).values())


def test_what_a_slower_kernel_hides_is_not_resolved() -> None:
    """Conflicts put into a transpose: each warp waits longer at barriers, as many bytes move."""
    kernel = main("transpose_conflicts", back=True)
    found = {one.category: one for one in kernel.findings}
    assert found["barrier_stalls"].status is Status.masked
    assert not found["barrier_stalls"].is_reported  # less than 5%
    assert found["dram_bandwidth"].status is Status.masked
    assert found["shared_bank_conflicts"].status is Status.new
    assert kernel.resolved == ()
    assert "resolved" not in headline(kernel)
    assert "masked" not in headline(kernel)


def test_what_a_fix_lays_bare_is_not_new() -> None:
    found = changes("reduction_conflicts")
    assert found["barrier_stalls"].status is Status.unmasked
    assert found["barrier_stalls"].speedup_after > 1.05
    assert failures(pair("reduction_conflicts"), parse_gates(["new-finding"])) == ()
    assert found["shared_bank_conflicts"].status is Status.resolved


@needs_corpus
def test_a_defect_that_grew_is_not_new() -> None:
    """8.3 G instructions of spills became 16.6 G, 69.5% of excess sectors 87.2%."""
    before, after = (
        profkit.load(CORPUS / f"mixes-reconstruction__{name}.ncu-rep")
        for name in ("full_profile", "version2")
    )
    for sides, status in (((before, after), "worsened"), ((after, before), "improved")):
        (kernel,) = profkit.diff(*sides).kernels
        shown = {each.category: finding(each) for each in kernel.findings}
        assert shown["register_spills"].startswith(f"register_spills {status} (local_memory_")
        assert shown["global_access_pattern"].startswith(f"global_access_pattern {status} (")


def test_a_chain_is_resolved_where_its_kernels_are_one() -> None:
    assert changes("fuse_passes")["dram_bandwidth"].status is Status.resolved


def test_the_limit_is_the_first_finding_of_the_checklist_with_its_doubt() -> None:
    first = "first finding still occupancy_registers (low confidence)"
    assert headline(main("tail_effect")).endswith(first)
    doubts = [
        (kernel.limit.certain, "(low confidence)" in headline(kernel))
        for name in NAMES
        if (kernel := main(name)).limit and not kernel.limit.busy
    ]
    assert doubts
    assert all(certain != low for certain, low in doubts)


def test_at_an_unchanged_time_a_threshold_is_no_event() -> None:
    def made(busy: float, bytes_moved: float, time: float) -> list[Made]:
        quiet = {"l2_busy": 0.3, "l1_busy": 0.3, "dram_bytes": bytes_moved, "dram_busy": busy}
        return [Made("k", [time], quiet)]

    def status(*sides: list[Made]) -> Status:
        (kernel,) = compared(*sides, found=True).kernels
        return {one.category: one.status for one in kernel.findings}["dram_bandwidth"]

    above, below = made(0.61, 1e9, 1e-4), made(0.59, 0.98e9, 1e-4)
    assert status(above, below) is status(below, above) is Status.unchanged
    assert status(above, made(0.4, 0.6e9, 1e-4)) is Status.resolved
    assert status(above, made(0.3, 1e9, 2e-4)) is Status.masked
    assert status(made(0.3, 1e9, 2e-4), above) is Status.unmasked


def test_a_status_follows_the_change_of_the_estimated_saving() -> None:
    def made(barrier: float, latency: float, time: float) -> list[Made]:
        waits = {"stall_barrier": barrier, "warp_latency": latency, "issue_rate": 0.1}
        waits |= dict.fromkeys((*BUSY, "dram_busy", "l2_busy", "l1_busy"), 0.1)
        return [Made("k", [time], waits)]

    def change(*sides: list[Made]) -> FindingChange:
        (kernel,) = compared(*sides, found=True).kernels
        return {one.category: one for one in kernel.findings}["barrier_stalls"]

    more, less = made(3.0, 10, 1e-4), made(1.8, 9.5, 0.85e-4)
    assert change(more, less).status is Status.improved
    assert change(less, more).status is Status.worsened
    still = change(more, made(2.9, 10, 0.99e-4))
    assert still.status is Status.unchanged
    assert not still.is_reported
    assert change(more, made(0.15, 8, 0.8e-4)).status is Status.resolved


def test_what_to_verify_is_read_as_quantities_that_move() -> None:
    told = measures(
        (
            "fp32_added and fp32_multiplied fall while fp32_fused rises",
            "alu_busy, fma_busy or xu_busy falls for the same work",
            "the second kernel is gone",
            "loads_per_wait rises to 4 or more",
        )
    )
    assert told == (
        Measure(("fp32_added", "fp32_multiplied"), rises=False),
        Measure(("fp32_fused",), rises=True),
        Measure(("alu_busy", "fma_busy", "xu_busy"), rises=False, alternatives=True),
    )


def test_rules_say_what_to_verify_in_quantities() -> None:
    """All that come with profkit but those that samples, the code or the launches alone show."""
    in_words = {
        rule.name
        for rule in shipped_rules()
        if rule.about == "kernel" and not measures(rule.verify)
    }
    assert in_words == {"accumulator_in_shared_memory", "short_launch"}


BUSY = ("fma_busy", "alu_busy", "lsu_busy", "lsu_data_busy", "issue_busy")
FULL_PIPE = {
    "dram_busy": 0.3,
    "alu_busy": 0.3,
    "fma_busy": 0.1,
    "fp16_busy": 0.0,
    "xu_busy": 0.05,
    "lsu_busy": 0.1,
}


@pytest.mark.parametrize(
    ("before", "after", "seconds", "told"),
    [
        ({"alu_busy": 0.9}, {"alu_busy": 0.55, "fma_busy": 0.75}, (1e-4, 7e-5), Status.resolved),
        ({"lsu_busy": 0.95}, {"lsu_busy": 0.2}, (1e-4, 5e-5), Status.resolved),
        ({"fma_busy": 0.7}, {"fma_busy": 0.22, "alu_busy": 0.9}, (1e-4, 1.2e-4), Status.new),
        ({"lsu_busy": 0.95}, {"lsu_busy": 0.4}, (1e-4, 2.5e-4), Status.masked),
    ],
)
def test_work_of_a_full_pipe_may_go_to_another(
    before: Mapping[str, float],
    after: Mapping[str, float],
    seconds: tuple[float, float],
    told: Status,
) -> None:
    sides = [
        [Made("k", [time], {**FULL_PIPE, **pipes})]
        for time, pipes in zip(seconds, (before, after), strict=True)
    ]
    (kernel,) = compared(*sides, found=True).kernels
    found = {one.category: one for one in kernel.findings}["pipe_saturated"]
    assert found.status is told
