"""profkit's values against ncu's export, a calculation by hand or a published figure."""

from __future__ import annotations

import math

import pytest

from profkit.report.catalog import catalog
from tests.conftest import CAUSAL, FULL, RECORDED, export, h200, needs_reader

FLASH, CUDNN, EFFICIENT = "sdpa_s512_flash", "sdpa_s512_cudnn", "sdpa_s512_efficient"


NCU_UNITS = {
    "%": 1e-2, "ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3,
    "msecond": 1e-3, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12,
    "Kbyte/s": 1e3, "Mbyte/s": 1e6, "Gbyte/s": 1e9, "Tbyte/s": 1e12,
    "Khz": 1e3, "Mhz": 1e6, "Ghz": 1e9,
}  # fmt: skip


def to_si(value: float, unit: str) -> float:
    """A value as ncu prints it, in SI."""
    return value * NCU_UNITS.get(unit, 1.0)


def printed_half_step(text: str) -> float:
    """Half a unit of the last printed digit."""
    _, _, decimals = text.partition(".")
    return 0.5 * 10.0 ** -len(decimals)


@pytest.mark.parametrize("name", RECORDED)
def test_plain_metrics_equal_ncus_own_export(name: str) -> None:
    units, rows = export(name, "raw")
    report = h200(name)
    compared = 0
    for launch, row in zip(report.summary.launches, rows, strict=True):
        for quantity in catalog().quantities.values():
            formula = launch.formulas.get(quantity.name)
            if formula is None or formula not in row:
                continue
            printed = row[formula].replace(",", "")
            slack = to_si(printed_half_step(printed), units[formula]) * (1 + 1e-9)
            expected = to_si(float(printed), units[formula])
            assert launch.values[quantity.name] == pytest.approx(expected, abs=slack, rel=1e-12), (
                launch.name,
                quantity.name,
            )
            compared += 1
    assert compared >= len(rows)


@pytest.mark.parametrize("name", RECORDED)
def test_every_metric_that_ncu_exported_is_found(name: str) -> None:
    _, rows = export(name, "raw")
    for launch, row in zip(h200(name).summary.launches, rows, strict=True):
        for quantity in catalog().quantities.values():
            plain = [
                item.formula.text
                for item in quantity.alternatives
                if item.formula.is_plain and launch.gpu.cc in item.cc
            ]
            if any(row.get(formula) for formula in plain):
                assert quantity.name in launch.values, quantity.name


DETAILS = {
    ("GPU Speed Of Light Throughput", "SM Frequency"): "sm_clock",
    ("GPU Speed Of Light Throughput", "DRAM Frequency"): "dram_clock",
    ("GPU Speed Of Light Throughput", "Duration"): "duration",
    ("GPU Speed Of Light Throughput", "DRAM Throughput"): "dram_busy",
    ("GPU Speed Of Light Throughput", "L1/TEX Cache Throughput"): "l1_busy_active",
    ("GPU Speed Of Light Throughput", "L2 Cache Throughput"): "l2_busy",
    ("GPU Speed Of Light Throughput", "Compute (SM) Throughput"): "sm_busy",
    ("GPU Speed Of Light Throughput", "Memory Throughput"): "memory_busy",
    ("GPU Speed Of Light Throughput", "SM Active Cycles"): "active_cycles",
    ("Memory Workload Analysis", "Memory Throughput"): "dram_bandwidth",
    ("Memory Workload Analysis", "L1/TEX Hit Rate"): "l1_hit_rate",
    ("Memory Workload Analysis", "L2 Hit Rate"): "l2_hit_rate",
    ("Memory Workload Analysis", "Local Memory Spilling Requests"): "spill_instructions",
    ("Compute Workload Analysis", "Issue Slots Busy"): "issue_busy",
    ("Compute Workload Analysis", "Executed Ipc Active"): "ipc_active",
    ("Compute Workload Analysis", "Executed Ipc Elapsed"): "ipc_elapsed",
    ("Scheduler Statistics", "One or More Eligible"): "issue_busy_active",
    ("Scheduler Statistics", "Active Warps Per Scheduler"): "warps_active_per_scheduler",
    ("Scheduler Statistics", "Eligible Warps Per Scheduler"): "warps_eligible_per_scheduler",
    ("Warp State Statistics", "Warp Cycles Per Issued Instruction"): "warp_latency",
    ("Warp State Statistics", "Avg. Active Threads Per Warp"): "threads_per_instruction",
    ("Warp State Statistics", "Avg. Not Predicated Off Threads Per Warp"): (
        "threads_per_instruction_predicated"
    ),
    ("Instruction Statistics", "Executed Instructions"): "instructions_executed",
    ("Instruction Statistics", "Issued Instructions"): "instructions_issued",
    ("Launch Statistics", "Block Size"): "block_size",
    ("Launch Statistics", "Grid Size"): "grid_size",
    ("Launch Statistics", "Registers Per Thread"): "registers_per_thread",
    ("Launch Statistics", "Dynamic Shared Memory Per Block"): "shared_dynamic",
    ("Launch Statistics", "Static Shared Memory Per Block"): "shared_static",
    ("Launch Statistics", "Shared Memory Configuration Size"): "shared_carveout",
    ("Launch Statistics", "Threads"): "threads",
    ("Launch Statistics", "Waves Per SM"): "waves",
    ("Launch Statistics", "# SMs"): "sm_count",
    ("Occupancy", "Block Limit Registers"): "occupancy_limit_registers",
    ("Occupancy", "Block Limit Shared Mem"): "occupancy_limit_shared",
    ("Occupancy", "Block Limit Warps"): "occupancy_limit_warps",
    ("Occupancy", "Block Limit SM"): "occupancy_limit_blocks",
    ("Occupancy", "Theoretical Occupancy"): "occupancy_theoretical",
    ("Occupancy", "Achieved Occupancy"): "occupancy_achieved",
    ("Occupancy", "Theoretical Active Warps per SM"): "warps_theoretical",
    ("Occupancy", "Achieved Active Warps Per SM"): "warps_active",
    ("Source Counters", "Branch Instructions"): "branch_instructions",
    ("Source Counters", "Avg. Divergent Branches"): "branches_divergent",
}


@pytest.mark.parametrize("name", FULL + CAUSAL)
def test_quantities_equal_ncus_details_page(name: str) -> None:
    _, rows = export(name, "details")
    launches = {launch.index: launch for launch in h200(name).summary.launches}
    seen = set()
    for row in rows:
        quantity = DETAILS.get((row["Section Name"], row["Metric Name"]))
        if quantity is None or not row["Metric Value"]:
            continue
        launch = launches[int(row["ID"])]
        printed = row["Metric Value"].replace(",", "")
        unit = row["Metric Unit"]
        slack = to_si(printed_half_step(printed), unit) * (1 + 1e-9)
        expected = to_si(float(printed), unit)
        assert launch.get(quantity) == pytest.approx(expected, abs=slack, rel=1e-12), (
            launch.name,
            quantity,
        )
        seen.add(quantity)
    assert seen == set(DETAILS.values())


@pytest.mark.parametrize("name", [FLASH, CUDNN, EFFICIENT])
def test_flop_of_sdpa_are_exactly_those_of_the_algorithm(name: str) -> None:
    batch, heads, length, dim = 32, 8, 512, 64
    launch = h200(name).kernel(0)
    assert launch["flop_tensor_fp16"] == 4 * batch * heads * length**2 * dim
    assert launch["flop_tensor"] == launch["flop_tensor_fp16"]


@pytest.mark.parametrize("name", CAUSAL)
def test_causal_kernels_execute_whole_tiles_on_the_diagonal(name: str) -> None:
    batch, heads, length, dim = 4, 16, 2048, 128
    least = 4 * batch * heads * length**2 * dim / 2
    done = h200(name).kernel(0)["flop_tensor_bf16"]
    assert least < done < 1.1 * least


def test_tensor_utilization_is_of_the_dense_peak_not_the_sparse_one() -> None:
    for name in (FLASH, CUDNN):
        assert round(h200(name).kernel(0)["tensor_busy"], 2) == 0.38
    assert round(h200(FLASH).kernel(0)["tensor_hmma_utilization"], 2) == 0.38
    assert round(h200(CUDNN).kernel(0)["tensor_wgmma_utilization"], 2) == 0.38
    for name, sparse in ((FLASH, 0.127), (CUDNN, 0.190)):
        shares = [value for _, value in shares_of(name)]
        assert all(abs(value - sparse) > 0.001 for value in shares)


def shares_of(name: str) -> list[tuple[str, float]]:
    launch = h200(name).summary.launches[0]
    tensor = [item for item in catalog().group("tensor") if item.unit == "1"]
    shares = [(item.name, launch.get(item.name)) for item in tensor]
    work = [(item.label, item.share) for item in launch.work if item.precision == "tensor_fp16"]
    return [(label, value) for label, value in shares + work if value > 0]


def test_roofs_of_an_h200_are_its_hardwares() -> None:
    launch = h200(CUDNN).kernel(0)
    clock = launch["sm_clock"]
    assert launch["dram_bandwidth_peak"] == pytest.approx(4.81e12, rel=0.002)
    assert launch["peak_rate_tensor_fp16"] == 4096 * 132 * clock
    assert launch["peak_rate_tensor_fp16_hmma"] == pytest.approx(2 / 3 * 4096 * 132 * clock)
    assert launch["peak_rate_fp32"] == 2 * 128 * 132 * clock
    assert launch["peak_rate_fp64"] == 2 * 64 * 132 * clock


@pytest.mark.parametrize(
    ("name", "path_share", "chip_share"), [(FLASH, 0.38, 0.256), (CUDNN, math.nan, 0.376)]
)
def test_share_of_peak_is_reported_for_the_path_and_for_the_chip(
    name: str, path_share: float, chip_share: float
) -> None:
    work = {item.precision: item for item in h200(name).summary.launches[0].work}["tensor_fp16"]
    assert work.share == pytest.approx(chip_share, rel=0.02)
    assert work.path_share == pytest.approx(path_share, rel=0.02, nan_ok=True)
    assert work.datasheet == 989e12


@needs_reader
def test_fp32_flop_equal_a_count_of_the_executed_code() -> None:
    for name in FULL + CAUSAL:
        for launch in h200(name).summary.launches:
            kernel = h200(name).kernel(launch.index)
            frame = kernel.instructions("thread_instructions")
            counted = 0.0
            for sass, threads in zip(frame["sass"], frame["thread_instructions"], strict=True):
                opcode = next(word for word in sass.split() if not word.startswith("@"))
                counted += threads * {"FADD": 1, "FMUL": 1, "FFMA": 2}.get(opcode.split(".")[0], 0)
            assert launch.get("flop_fp32") == counted, launch.name


@needs_reader
def test_kernels_without_half_arithmetic_have_no_half_flop() -> None:
    copy = h200("known").kernel(1)
    assert copy.name.startswith("copy_strided")
    assert copy["flop_fp16_counted"] == 16_777_216 * 4
    assert copy["flop_fp16"] == 0
    assert copy["flop"] == 0
    for launch in h200("sdpa_s512_math").summary.launches:
        assert launch.get("flop_fp16") == 0


def test_bank_conflicts_of_the_transposes_are_those_of_their_layout() -> None:
    conflicted, padded = h200("known").kernel(2), h200("known").kernel(3)
    assert conflicted.name.startswith("transpose_conflict")
    assert conflicted["shared_ways_load"] == 32
    assert conflicted["shared_ways_store"] == 1
    assert conflicted["shared_conflict_share_load"] == pytest.approx(31 / 32, rel=0.002)
    assert conflicted["shared_wavefronts_excessive"] == 31 * conflicted["shared_load_requests"]
    assert padded["shared_ways_load"] == padded["shared_ways_store"] == 1
    assert padded["shared_wavefronts_excessive"] == 0


def test_ldmatrix_is_no_bank_conflict() -> None:
    flash = h200(FLASH).kernel(0)
    requests = flash["shared_load_requests"] + flash["ldmatrix_requests"]
    assert flash["shared_wavefronts_load"] / requests > 3.9
    assert flash["shared_ways_load"] == 1
    assert flash["shared_conflict_share_load"] < 0.01


def test_conflicts_of_async_copies_and_atomics_are_counted() -> None:
    sgemm = h200("sdpa_s512_math").kernel(5)
    assert sgemm["shared_conflicts_async"] > 0.99 * sgemm["shared_conflicts"]
    assert sgemm["shared_ways_async"] == pytest.approx(3.4, abs=0.05)
    atomics = h200(EFFICIENT).kernel(0)
    assert atomics["shared_conflicts_atomic"] > atomics["shared_conflicts_store"] > 0
    assert 3 < atomics["shared_ways_atomic"] <= 32


@pytest.mark.parametrize("name", FULL + CAUSAL)
def test_conflicts_of_all_accesses_add_up(name: str) -> None:
    for launch in h200(name).summary.launches:
        kinds = ("load", "store", "atomic", "async")
        for part in ("conflicts", "wavefronts"):
            total = sum(launch.get(f"shared_{part}_{kind}") for kind in kinds)
            assert launch.get(f"shared_{part}") == total
        for ours, ncus in (("executed", "executed"), ("ideal", "ideal")):
            total = sum(launch.get(f"shared_{ours}_{kind}") for kind in kinds)
            assert total == launch.get(f"shared_wavefronts_{ncus}")


def test_shuffles_and_global_stores_are_not_shared_memory() -> None:
    softmax = h200("sdpa_s512_math").kernel(6)
    assert softmax["shared_stage_wavefronts"] > 3e6
    assert softmax["shared_wavefronts"] == 0
    assert math.isnan(softmax["shared_conflict_share"])


@pytest.mark.parametrize("name", [FLASH, CUDNN, EFFICIENT])
def test_attention_reads_its_inputs_through_l2_once_a_tile(name: str) -> None:
    kernel = h200(name).kernel(0)
    copied = kernel["async_copy_bytes"] + kernel["tma_load_bytes"]
    assert kernel["l2_read_bytes"] == pytest.approx(copied, rel=0.005)
    assert kernel["l2_bytes"] == kernel["l2_read_bytes"] + kernel["l2_write_bytes"]


@needs_reader
def test_work_that_was_not_collected_is_not_passed_over() -> None:
    launch = h200("sdpa_s512_flash_set_detailed").summary.launches[0]
    assert launch.get("tensor_instructions") > 0
    assert launch.get("flop_tensor") == 4 * 32 * 8 * 512**2 * 64  # by machine code


def test_known_kernels_move_and_compute_what_their_source_says() -> None:
    report = h200("known")
    copy = report.kernel(0)
    assert copy.name.startswith("copy_coalesced")
    assert copy["l1_bytes"] == 2 * 262_144 * 256 * 16
    assert copy["global_load_sectors_per_request"] == 16
    strided = report.kernel(1)
    assert strided["global_load_sectors_per_request"] == 32
    assert strided["global_excessive_share"] == pytest.approx(7 / 8)
    double = report.kernel(10)
    assert double.name.startswith("fp64_accident")
    assert double["flop_fp64"] == pytest.approx(1.049e9, rel=0.001)
    assert double["flop_fp32"] == 0


@pytest.mark.parametrize("name", FULL + CAUSAL)
def test_two_ways_to_the_same_quantity_agree(name: str) -> None:
    for launch in h200(name).summary.launches:
        get = launch.get
        assert get("dram_bytes") == pytest.approx(
            get("dram_read_bytes") + get("dram_write_bytes"), rel=1e-12
        )
        if get("duration") > 10e-6:
            assert get("dram_bandwidth") * get("duration") == pytest.approx(
                get("dram_bytes"), rel=0.05, abs=1e6
            )
        assert get("tensor_busy") == pytest.approx(
            get("tensor_busy_active") * get("sm_active_share"), rel=1e-9, abs=1e-12
        )
        assert get("l1_busy") == pytest.approx(
            get("l1_busy_active") * get("sm_active_share"), rel=1e-9
        )
