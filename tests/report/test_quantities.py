"""Alternatives by architecture, reasons for what is missing, and checks of what contradicts."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from msgspec import structs

from profkit.report.action import Action
from profkit.report.catalog import catalog
from profkit.report.checks import contradictions
from profkit.report.framing import Framing
from profkit.report.quantities import Quantities, evaluate
from profkit.report.reader import Launch, RawReport, to_si
from profkit.report.session import decode
from profkit.report.summary import summarize
from tests.conftest import h200, needs_reader


def raw(cc: tuple[int, int], **metrics: float) -> RawReport:
    """A report of one launch with the given metrics; `__dot__` stands for a dot."""
    named = {name.replace("__dot__", "."): value for name, value in metrics.items()}
    launch = Launch(
        index=0,
        name="kernel",
        function="kernel",
        workload="kernel",
        nvtx=(),
        rule_results=(),
        breakdowns={name: {} for name in catalog().breakdowns},
        device={"cc_major": cc[0], "cc_minor": cc[1]},
    )
    return RawReport(
        path=Path("x.ncu-rep"),
        framing=Framing(1, (), 0),
        session=decode([]),
        launches=(launch,),
        columns={name: np.array([value]) for name, value in named.items()},
        recorded={name: np.array([True]) for name in named},
        actions=(cast("Action", SimpleNamespace(metric_by_name=lambda _: None)),),
    )


def value(quantities: Quantities, name: str) -> float:
    return float(quantities.values[name][0])


def test_the_architecture_picks_the_formula() -> None:
    metrics = {
        "sm__pipe_tensor_cycles_active__dot__avg__dot__pct_of_peak_sustained_elapsed": 0.1,
        "sm__pipe_tensor_cycles_active_v2__dot__avg__dot__pct_of_peak_sustained_elapsed": 0.2,
        "sm__pipe_tc_cycles_active__dot__avg__dot__pct_of_peak_sustained_elapsed": 0.3,
    }
    assert value(evaluate(raw((9, 0), **metrics)), "tensor_busy") == 0.1
    assert value(evaluate(raw((8, 9), **metrics)), "tensor_busy") == 0.2
    assert value(evaluate(raw((10, 0), **metrics)), "tensor_busy") == 0.3


def test_every_reason_for_a_missing_value_is_distinguished() -> None:
    told = evaluate(
        raw(
            (8, 6),
            gpu__time_duration__dot__sum=np.nan,
            l1tex__t_sectors_pipe_lsu_mem_global_op_ld__dot__sum=0.0,
            l1tex__t_requests_pipe_lsu_mem_global_op_ld__dot__sum=0.0,
        )
    )
    reasons = {name: reason[0] for name, reason in told.missing.items()}
    assert reasons["duration"] == "the counter returned no value"
    assert reasons["global_load_sectors_per_request"] == "undefined for this launch"
    assert reasons["tma_busy"] == "not on this architecture"
    assert reasons["stall_gmma"] == "not on this architecture"
    assert reasons["tensor_fp64_busy"] == "not on this architecture"
    volta = evaluate(raw((7, 0), gpu__time_duration__dot__sum=np.nan))
    assert volta.missing["peak_rate_tensor_fp16"][0] == "not known for this architecture"
    assert (
        reasons["l2_hit_rate"] == "not collected; record with ncu --section MemoryWorkloadAnalysis"
    )
    assert reasons["global_load_sectors"] is None
    assert reasons["flop"] == "not collected; record with ncu --section SpeedOfLight_RooflineChart"


def test_dram_counters_do_not_exist_on_unified_memory() -> None:
    told = evaluate(raw((12, 1), gpu__time_duration__dot__sum=1e-3))
    assert told.missing["dram_busy"][0] == "not on this architecture"
    assert told.missing["dram_bytes"][0] == "not on this architecture"


@needs_reader
def test_a_half_precision_claim_is_not_believed_unchecked() -> None:
    report = h200("known")
    unchecked = evaluate(report._raw, check_half_from=0.05)
    assert np.isnan(unchecked.values["flop_fp16"][1])
    assert unchecked.missing["flop"][1] == "not separated from constant loads"
    assert unchecked.values["flop_fp16"][0] == 0
    checked = evaluate(report._raw)
    assert (checked.values["flop_fp16"] == 0).all()
    known = ~np.isnan(unchecked.values["flop"])
    assert unchecked.values["flop"][known] == pytest.approx(checked.values["flop"][known], rel=0.01)


@pytest.mark.parametrize(
    ("number", "unit", "expected"),
    [(38.0, "%", 0.38), (69408.0, "ns", 69.408e-6), (7.0, "", 7.0)],
)
def test_units_become_si(number: float, unit: str, expected: float) -> None:
    assert to_si(number, unit) == expected


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"l2_busy": 1.2}, "l2_busy is 120.0%"),
        ({"warp_latency": 2.0}, "warp stalls sum to"),
        ({"dram_bytes": 1.0e6}, "DRAM bandwidth x duration"),
        ({"sm_clock": 2.2e9}, "measured SM clock 2.20 GHz"),
        ({"pc_samples_dropped_bytes": 4096.0}, "samples were dropped"),
    ],
)
def test_contradictions_are_reported(change: dict[str, float], words: str) -> None:
    launch = h200("sdpa_s512_flash").summary.launches[0]
    assert contradictions(launch.values, launch.gpu) == ()
    odd = dataclasses.replace(launch, values={**launch.values, **change})
    assert len(odd.warnings) == 1
    assert words in odd.warnings[0]


def test_noise_between_passes_is_no_contradiction() -> None:
    launch = h200("sdpa_s512_flash").summary.launches[0]
    near = {**launch.values, "l2_write_hit_rate": 1.009, "sm_busy": 1.0}
    assert contradictions(near, launch.gpu) == ()


def test_of_a_tensor_pipes_counters_the_largest_counts() -> None:
    pipes = ("sm__pipe_tensor_cycles_active", "sm__pipe_tc_cycles_active")
    for shares in ((0.0, 0.137), (0.137, 0.0)):
        named = zip(pipes, shares, strict=True)
        metrics = {
            f"{pipe}__dot__avg__dot__pct_of_peak_sustained_elapsed": share for pipe, share in named
        }
        assert value(evaluate(raw((10, 0), **metrics)), "tensor_busy") == 0.137
        assert value(evaluate(raw((9, 0), **metrics)), "tensor_busy") == shares[0]


def test_work_that_a_chip_has_no_hardware_for_is_none() -> None:
    counted = {
        f"l1tex__data_{what}_pipe_lsu_mem_shared_op_{kind}__dot__sum": float(number)
        for what, kind, number in (("bank_conflicts", "ld", 30), ("bank_conflicts", "st", 10))
    }
    counted["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom__dot__sum"] = 0.0
    for kind, number in (("ld", 60.0), ("st", 20.0), ("atom", 0.0)):
        counted[f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{kind}__dot__sum"] = number
    turing = evaluate(raw((7, 5), **counted))
    assert value(turing, "shared_conflicts_async") == 0
    assert value(turing, "shared_conflicts") == 40
    assert value(turing, "shared_conflict_share") == 0.5
    assert turing.formulas["shared_conflicts_async"][0] == "0"
    ampere = evaluate(raw((8, 0), **counted))
    assert np.isnan(value(ampere, "shared_conflict_share"))


def test_a_turings_wavefront_takes_two_cycles() -> None:
    name = "l1tex__data_pipe_lsu_wavefronts__dot__avg__dot__pct_of_peak_sustained_elapsed"
    for cc, factor in (((7, 0), 1), ((7, 5), 2), ((8, 0), 1), ((9, 0), 1), ((12, 0), 1)):
        assert value(evaluate(raw(cc, **{name: 0.4597})), "lsu_data_busy") == factor * 0.4597


@pytest.mark.parametrize(
    ("l1", "stage", "busy"), [(0.1962, 0.05, 0.1962 * 8005953 / 8017032), (0.2, 0.21, 0.21)]
)
def test_l1_is_as_busy_as_its_active_share_or_its_busiest_part(
    l1: float, stage: float, busy: float
) -> None:
    shares = evaluate(
        raw(
            (7, 0),
            l1tex__throughput__dot__avg__dot__pct_of_peak_sustained_active=l1,
            l1tex__data_pipe_lsu_wavefronts__dot__avg__dot__pct_of_peak_sustained_elapsed=stage,
            l1tex__cycles_active__dot__sum=8005953.0,
            l1tex__cycles_elapsed__dot__sum=8017032.0,
        )
    )
    assert value(shares, "l1_busy") == pytest.approx(busy)
    assert value(shares, "sm_active_share") == pytest.approx(8005953 / 8017032)


def test_a_share_above_one_is_reported_as_impossible() -> None:
    report = raw(
        (7, 0),
        smsp__sass_average_branch_targets_threads_uniform__dot__pct=100.0,
        smsp__sass_branch_targets_threads_divergent__dot__avg=0.0,
    )
    launch = summarize(report, evaluate(report)).launches[0]
    assert "branch_uniformity" in launch.impossible
    assert any("branch_uniformity is 10000" in warning for warning in launch.warnings)


def sampled(samples: float) -> RawReport:
    """A launch with warp samples, a quarter of them at barriers, and no stall counters."""
    return raw(
        (9, 0),
        smsp__warps_active__dot__avg__dot__per_cycle_active=8.0,
        smsp__issue_active__dot__avg__dot__per_cycle_active=0.5,
        smsp__pcsamp_sample_count=samples,
        smsp__pcsamp_warps_issue_stalled_barrier=samples / 4,
        smsp__pcsamp_warps_issue_stalled_selected=samples / 16,
    )


def test_stalls_are_shares_of_warp_samples_where_no_counter_was_collected() -> None:
    told = evaluate(sampled(1600))
    assert value(told, "warp_latency") == 16  # Little's law: 8 warps, half an instruction a cycle
    assert value(told, "stall_barrier") == 4
    assert value(told, "stall_selected") == 1
    assert "sample_count" in (told.formulas["stall_barrier"][0] or "")


@pytest.mark.parametrize(("samples", "noted"), [(57, True), (1600, False)])
def test_few_warp_samples_are_noted(samples: int, noted: bool) -> None:
    report = sampled(samples)
    (launch,) = summarize(report, evaluate(report)).launches
    words = "warp states are shares of 57 warp samples: uncertain by several percentage points"
    assert (words in launch.warnings) == noted


def test_l1_is_as_busy_as_its_busiest_part() -> None:
    parts = (
        "data_bank_reads", "data_pipe_lsu_wavefronts", "lsuin_requests",
        "m_l1tex2xbar_req_cycles_active", "m_xbar2l1tex_read_sectors",
        "texin_sm2tex_req_cycles_active",
    )  # fmt: skip
    end = "__dot__avg__dot__pct_of_peak_sustained_elapsed"
    busy = {f"l1tex__{part}{end}": number / 10 for number, part in enumerate(parts)}
    assert value(evaluate(raw((9, 0), **busy)), "l1_busy") == 0.5
    whole = {f"l1tex__throughput{end}": 0.6}
    assert value(evaluate(raw((9, 0), **busy, **whole)), "l1_busy") == 0.6


def test_sparse_tensor_work_is_not_taken_for_none_by_dense_counters() -> None:
    dense = {
        f"sm__ops_path_tensor_op_{kind}_sparsity_off__dot__sum": 2.0
        for kind in ("hmma_src_fp16_dst_fp16", "hmma_src_fp16_dst_fp32", "hgmma_src_fp16")
    }
    told = evaluate(raw((9, 0), **dense))
    assert value(told, "flop_tensor_fp16") == 6
    assert np.isnan(value(told, "flop_tensor_sparse"))  # not known, and so listed


def test_a_metric_asked_for_by_name_tells_nothing_of_its_section() -> None:
    single = raw((9, 0), l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld__dot__sum=1.0)
    named = structs.replace(single.session, options={"metrics": "a__b", "section": "Occupancy"})
    whole = structs.replace(single.session, options={"set": "full"})
    reasons = [
        evaluate(dataclasses.replace(single, session=session)).missing["l1_load_hit_rate"][0]
        for session in (named, whole)
    ]
    assert reasons[0] == "not collected; record with ncu --section MemoryWorkloadAnalysis_Tables"
    assert reasons[1] == "not collected by this version of ncu"
