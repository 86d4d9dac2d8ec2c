"""The shipped rules on made-up launches: what they must say, and what would be false."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from profkit.rules.engine import diagnose
from profkit.rules.finding import Finding
from profkit.rules.rule_file import shipped_rules
from tests.rules.test_engine import report

RULES = {rule.name: rule for rule in shipped_rules()}
BUSY = ("dram_busy", "l2_busy", "l1_busy", "lsu_busy", "lsu_data_busy", "issue_busy", "fma_busy")
BASE = {
    "duration": 1e-3,
    "instructions_executed": 1e8,
    "warp_latency": 100.0,
    "grid_size": 10_000.0,
    "block_size": 256.0,
    "waves": 20.0,
    "sm_count": 132.0,
    "issue_rate": 0.1,
    "wait_exposure": 0.9,
    "global_memory_instructions": 1e7,
    "shared_memory_instructions": 1e7,
    "local_memory_instructions": 0.0,
    "special_instructions": 0.0,
    "conversion_instructions": 0.0,
    "tensor_instructions": 0.0,
    **dict.fromkeys(BUSY, 0.1),
}


def finding(rule: str, **values: float) -> Finding | None:
    """What one rule finds on a launch with these quantities."""
    made = diagnose(report([{**BASE, **values}]), [RULES[rule]])
    return next(iter(made.findings), None)


def likely(rule: str, **values: float) -> float:
    made = finding(rule, **values)
    assert made is not None
    assert made.estimate is not None
    return made.estimate.likely


DOUBLES = {
    "fp64_instructions": 4e7,
    "conversion_instructions": 2e6,
    "fp64_busy": 0.9,
    "xu_busy": 0.05,
    "special_instructions": 0.0,
}


@pytest.mark.parametrize(
    ("work", "stray"),
    [
        ({"flop_fp32": 0.0, "flop_fp64": 1e9}, False),  # a program written in double
        ({"flop_fp32": 1e8, "flop_fp64": 1e9}, False),
        ({"flop_fp32": 5e9, "flop_fp64": 1e9}, True),
        ({"flop_fp32": 0.0, "flop_fp64": 1e9, "conversion_instructions": 8e7}, True),
    ],
)
def test_a_double_is_stray_among_floats_alone(work: Mapping[str, float], stray: bool) -> None:
    values = {**DOUBLES, **work}
    assert (finding("fp64_in_float_code", **values) is not None) == stray
    assert (finding("fp64_pipe", **values) is None) == stray


def test_contended_atomics_are_estimated_from_their_waits() -> None:
    atomics = {
        "global_atomic_instructions": 1e7,
        "global_memory_instructions": 1e7,
        "shared_atomic_instructions": 0.0,
        "l2_atomic_sectors": 1e7,
        "l2_bytes": 1e9,
        "stall_drain": 0.0,
        "stall_membar": 0.0,
        "stall_long_scoreboard": 10.0,
        "stall_short_scoreboard": 0.0,
        "stall_mio_throttle": 0.0,
    }
    factors = [
        likely("atomics_global", **atomics, stall_lg_throttle=waiting) for waiting in (30, 50, 70)
    ]
    assert factors == sorted(factors)
    # an atomic counts as 16 of the others in the queue, of which there are two as many; warps wait
    # for 30, 50 and 70 of 100 cycles, and nothing issues in 0.9 of a wait
    gone = [0.9 * 16 / 18 * waiting for waiting in (0.3, 0.5, 0.7)]
    assert factors == pytest.approx([1 / (1 - share) for share in gone], rel=1e-6)


def test_waits_for_tma_are_not_called_waits_behind_atomics() -> None:
    """Nine atomics an SM take tiles from a counter; as many other loads would wait for long."""
    tiles = {
        "global_atomic_instructions": 1156.0,
        "global_memory_instructions": 1156.0,
        "shared_atomic_instructions": 0.0,
        "l2_atomic_sectors": 1156.0,
        "l2_bytes": 1.7e8,
        "elapsed_cycles": 8.3e4,
        "warp_latency": 5.0,
        "instructions_executed": 1.9e7,
        "stall_drain": 0.0,
        "stall_membar": 0.0,
        "stall_long_scoreboard": 2.0,
        "stall_short_scoreboard": 0.0,
        "stall_mio_throttle": 0.0,
        "stall_lg_throttle": 0.0,
    }
    assert likely("atomics_global", **tiles) > 1.2
    assert finding("atomics_global", **tiles, l2_read_bytes=1.5e8) is None


@pytest.mark.parametrize(
    ("cc", "has_them"), [((8, 0), True), ((8, 6), False), ((8, 9), False), ((9, 0), True)]
)
def test_tensor_cores_for_doubles_are_advised_where_a_gpu_has_them(
    cc: tuple[int, int], has_them: bool
) -> None:
    actions = RULES["fp64_pipe"].actions_on(cc)
    assert any("FP64 tensor cores" in action for action in actions) == has_them


@pytest.mark.parametrize(("kibibytes", "is_advised"), [(0, True), (8, True), (24, False)])
def test_small_blocks_are_advised_where_shared_memory_lets_more_threads_in(
    kibibytes: float, is_advised: bool
) -> None:
    """A block of 1024 threads an SM; of blocks of 256 with 24 KiB, four fit into 100 KiB."""
    limits = {f"occupancy_limit_{name}": 1.0 for name in ("registers", "warps", "blocks", "shared")}
    values = {"block_size": 1024.0, "shared_per_block": kibibytes * 1024, **limits}
    actions = RULES["occupancy_block_size"].actions_on((8, 9), values)
    assert ("Use 128 to 256 threads per block." in actions) == is_advised


def test_shared_atomics_relieve_what_their_conflicts_took() -> None:
    cycles = {"elapsed_cycles": 1e6, "shared_atomic_instructions": 1e7}
    atomics = {**cycles, "lsu_data_busy": 0.8, "l1_busy": 0.8, "shared_conflict_share_atomic": 0.9}
    half, all_of_it = (
        likely("atomics_shared", **atomics, shared_conflicts_atomic=share * 0.8 * 1e6 * 132)
        for share in (0.5, 0.97)
    )
    assert half < 2
    assert all_of_it > 2 * half


def test_a_queue_s_fix_is_not_held_by_what_it_relieves() -> None:
    queue = {
        "stall_lg_throttle": 1.0,
        "stall_mio_throttle": 60.0,
        "stall_tex_throttle": 0.0,
        "global_atomic_instructions": 0.0,
        "shared_atomic_instructions": 0.0,
        "fp64_instructions": 0.0,
        "conversion_instructions": 0.0,
        "special_instructions": 0.0,
    }
    assert likely("queue_full", **queue, lsu_busy=0.95, l1_busy=0.95, lsu_data_busy=0.9) > 1.4
    assert likely("queue_full", **queue, dram_busy=0.8) < 1.1


def test_a_full_l1_has_a_rule_that_leaves_other_causes_their_part() -> None:
    full = {"l1_busy": 0.99, "lsu_data_busy": 0.99, "lsu_busy": 0.7}
    alone = likely("l1_throughput", **full)
    assert alone > 1.5
    assert finding("at_the_roof", **full)
    for cause in ("shared_conflict_share", "global_excessive_share"):
        assert likely("l1_throughput", **full, **{cause: 0.5}) < alone
    assert finding("l1_throughput", **{**full, "dram_busy": 0.995}) is None


@pytest.mark.parametrize("pipe", ["l1_busy", "fp64_busy", "fma_busy", "l2_busy", "tensor_busy"])
def test_each_roof_is_seen_whatever_else_is_missing(pipe: str) -> None:
    assert diagnose(report([{"duration": 1e-3, pipe: 0.95}]), [RULES["at_the_roof"]]).findings
    assert diagnose(report([{"duration": 1e-3, pipe: 0.5}]), [RULES["at_the_roof"]]).unknown


def test_empty_lanes_are_not_divergence() -> None:
    small = {"block_size": 8.0, "threads_per_instruction": 8.0, "stall_long_scoreboard": 0.0}
    assert finding("thread_divergence", **small) is None
    assert likely("partial_warps", **small) > 2
    assert finding("partial_warps", block_size=1010.0) is None
    full = {"threads_per_instruction": 16.0, "stall_long_scoreboard": 0.0}
    assert 1.7 < likely("thread_divergence", **full, issue_busy=0.9) <= 2


@pytest.mark.parametrize(("waves", "fires"), [(0.01, False), (0.9, False), (3.0, True)])
def test_more_room_on_an_sm_needs_blocks_to_fill_it(waves: float, fires: bool) -> None:
    small = {
        "block_size": 32.0,
        "occupancy_limit_blocks": 32.0,
        "occupancy_limit_registers": 64.0,
        "occupancy_limit_shared": 64.0,
        "occupancy_limit_warps": 64.0,
        "occupancy_theoretical": 0.5,
        "warps_eligible_per_scheduler": 0.2,
        "issue_rate": 0.2,
        "warps_active_per_scheduler": 8.0,
    }
    assert (finding("occupancy_block_size", **small, waves=waves) is not None) == fires


@pytest.mark.parametrize("hits", [0.0, 0.3, 0.9])
def test_hit_rates_do_not_show_rereads(hits: float) -> None:
    """A vector addition reads two bytes for each that it writes, whatever hits in L2."""
    streaming = {"dram_busy": 0.8, "l2_busy": 0.4, "l2_hit_rate": hits, "l2_read_bytes": 2e9}
    add = {"dram_read_bytes": 2e9, "dram_write_bytes": 1e9, "dram_bytes": 3e9}
    assert finding("data_read_again", **streaming, **add) is None
    reduction = {"dram_read_bytes": 7e9, "dram_write_bytes": 1e9, "dram_bytes": 8e9}
    # of the need 0.8 / 0.95 = 0.842 a twelfth of the reads, 0.061, goes, and as much of the 0.158
    # above it: 0.781 + 0.158 (1 - 0.061) = 0.929 is left
    assert likely("data_read_again", **streaming, **reduction) == pytest.approx(1.077, abs=1e-3)


def test_integers_that_are_results_are_not_overhead() -> None:
    integers = {
        "integer_instructions": 8e7,
        "control_instructions": 1e6,
        "conversion_instructions": 1e6,
        "issue_busy": 0.8,
        "alu_busy": 0.8,
        "fmaheavy_busy": 0.5,
        "xu_busy": 0.0,
        "tensor_busy": 0.0,
    }
    assert finding("instruction_overhead", **integers)

    class Philox:
        def get(self, name: str, _: object) -> float:
            return 0.1 if name == "overhead_share" else 0.0

    hashing = report([{**BASE, **integers}])
    found = diagnose(hashing, [RULES["instruction_overhead"]], sampling=lambda _: Philox())  # type: ignore[arg-type, return-value]
    assert found.findings == ()


def test_a_kernel_without_spills_needs_no_spill_counter() -> None:
    found = diagnose(
        report([{**BASE, "local_memory_instructions": 0.0}]), [RULES["register_spills"]]
    )
    assert (found.findings, found.unknown) == ((), {})


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"lsu_busy": 0.07}, "l1_wavefronts"),
        ({"lsu_busy": 0.3}, "l1_throughput"),  # at most what 16 bytes a thread need
        ({"lsu_busy": 0.07, "tensor_busy": 0.5}, "l1_throughput"),  # operands of tensor cores
        (
            {"lsu_busy": 0.07, "shared_conflict_share": 0.0, "global_excessive_share": 0.0},
            "l1_throughput",
        ),
    ],
)
def test_many_wavefronts_an_access_have_another_cause_than_many_accesses(
    values: Mapping[str, float], rule: str
) -> None:
    full = {"l1_busy": 0.99, "lsu_data_busy": 0.99, **values}
    fired = {name for name in ("l1_throughput", "l1_wavefronts") if finding(name, **full)}
    assert fired == {rule}


@pytest.mark.parametrize(
    ("values", "compiled"),
    [
        ({"stall_wait": 13.5}, True),
        ({"stall_wait": 3.0}, False),
        ({"stall_wait": 13.5, "tensor_instructions": 1e7}, False),  # a chain of matrix products
        ({"stall_wait": 13.5, "fp64_instructions": 1e7}, False),
    ],
)
def test_code_that_nobody_scheduled_was_compiled_for_debugging(
    values: Mapping[str, float], compiled: bool
) -> None:
    launch = {"warp_latency": 18.0, "tensor_instructions": 0.0, "fp64_instructions": 0.0}
    assert (finding("debug_code", **{**launch, **values}) is not None) == compiled


@pytest.mark.parametrize(
    ("special", "flop_fp32", "fires"),
    [
        (4e6, 1e7, True),  # one special function in eight FP64 instructions of a / b
        (1e6, 1e7, False),  # in thirty of a logarithm
        (4e6, 1e12, False),  # floats have special functions of their own
    ],
)
def test_divisions_of_doubles_are_counted_without_samples(
    special: float, flop_fp32: float, fires: bool
) -> None:
    counted = {**DOUBLES, "special_instructions": special, "flop_fp64": 2e9}
    found = finding("division_sequences", **{**counted, "flop_fp32": flop_fp32})
    assert bool(found) == fires
    if found:
        assert found.estimate
        assert 1.5 < found.estimate.likely < 8 / (8 - 7 * 0.8)


@pytest.mark.parametrize(
    ("rule", "values", "measured"),
    [
        ("half_precision_unpacked", {"global_load_sectors_per_request": 2.0}, "half_instructions"),
        ("accurate_math_calls", {"special_instructions": 1e6}, "math_call_instructions"),
        ("data_read_again", {"dram_busy": 0.8, "l2_read_bytes": 1e9}, "dram_read_bytes"),
    ],
)
def test_a_title_is_not_said_where_what_it_names_was_not_recorded(
    rule: str, values: dict[str, float], measured: str
) -> None:
    busy = {"issue_busy": 0.9, "dram_bytes": 1.1e9, "dram_write_bytes": 1e8, "l2_bytes": 2e9}
    assert finding(rule, **busy, **values) is None
    assert finding(rule, **busy, **values, **{measured: 1e9}) is not None


def test_special_functions_are_no_cause_where_their_pipe_is_idle() -> None:
    work = {"special_instructions": 1e7, "conversion_instructions": 1e7, "fp64_instructions": 0.0}
    stalls = {"stall_math_pipe_throttle": 30.0, "elapsed_cycles": 1e6}
    assert finding("special_functions", **work, **stalls, xu_busy=0.5)
    assert finding("special_functions", **work, **stalls, xu_busy=0.0) is None


@pytest.mark.parametrize(("spills", "is_limit"), [(0.0, False), (1e6, True)])
def test_no_register_limit_is_raised_for_a_private_array(spills: float, is_limit: bool) -> None:
    values = {"spill_instructions": spills, "local_memory_instructions": 1e7}
    actions = " ".join(RULES["register_spills"].actions_on((9, 0), values))
    assert ("Raise the register limit" in actions) is is_limit
    assert "Index private arrays with constants" in actions


def test_what_waits_less_gets_no_further_than_the_present_work_allows() -> None:
    """A barrier's waits gone, the kernel still has its L2 work, 80% of the time."""
    made = finding("barrier_stalls", stall_barrier=80.0, l2_busy=0.8, dram_busy=0.05)
    assert made is not None
    assert made.estimate is not None
    assert made.estimate.high == pytest.approx(max(1 / 0.8, made.estimate.likely))


def test_imbalance_gains_no_more_than_equal_shares() -> None:
    """SMs are busy 98% of the time on average, and have the warps that their blocks fill."""
    filled = {"occupancy_achieved": 0.5, "occupancy_theoretical": 1.0, "waves": 0.5}
    assert finding("workload_imbalance", sm_imbalance=0.01, **filled) is None
    made = finding("workload_imbalance", sm_imbalance=0.2, **filled)
    assert made is not None
    assert made.estimate is not None
    assert made.estimate.high == pytest.approx(1 / 0.8)
