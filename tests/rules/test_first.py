"""What makes the rest of a list void, what is known without an estimate, and what has no cause."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

import profkit
from profkit.report.checks import NOT_COLLECTED
from profkit.report.source_lines import Place
from profkit.report.summary import ReportSummary
from profkit.rules.checklist import Checklist, checklist
from profkit.rules.engine import explain
from profkit.rules.finding_text import place_name, prospects
from profkit.rules.rule_file import shipped_rules
from profkit.rules.samples import LONG_CODE, NO_CODE
from tests.conftest import CORPUS, Cli, h200, needs_corpus, needs_truth, recorded_report
from tests.rules.test_bounds import others_report
from tests.rules.test_engine import report

RULES = {rule.name: rule for rule in shipped_rules()}
LOADED = {"dram_busy": 0.1, "l2_busy": 0.1, "l1_busy": 0.1, "issue_busy": 0.1, "issue_rate": 0.1}
WAITING = {"stall_wait": 4.0, "stall_selected": 1.0, "warp_latency": 5.0}
FULL = {"grid_size": 1e4, "block_size": 256.0, "sm_count": 132.0}
KERNEL = {"duration": 1e-3, "wait_exposure": 0.9, **LOADED, **WAITING, **FULL}


def listed(*kernels: Mapping[str, float]) -> Checklist:
    return checklist(report([{**KERNEL, **kernel} for kernel in kernels]), list(RULES.values()))


@pytest.mark.parametrize(
    ("values", "first"),
    [
        # a launch of 4 blocks of a warp, where 132 SMs have 528 schedulers; then two thirds of them
        ({"grid_size": 4.0, "block_size": 32.0}, "few_threads"),
        ({"grid_size": 352.0, "block_size": 32.0}, None),
        # a lane, and 31 lanes, of each warp
        ({"block_size": 1.0}, "few_lanes"),
        ({"grid_size": 100.0, "block_size": 1.0}, "few_threads"),
        ({"block_size": 31.0}, None),
        ({"duration": 4.9e-6}, "short_launch"),
        ({"duration": 5.1e-6}, None),
        ({"debug_information": 1.0, "stall_wait": 13.8}, "debug_code"),
        ({"debug_information": 0.0, "stall_wait": 13.8}, None),
        # linked with code that has it
        ({"debug_information": 1.0, "stall_wait": 4.0}, None),
    ],
)
def test_what_makes_the_rest_void_is_at_the_head(
    values: Mapping[str, float], first: str | None
) -> None:
    found = listed(values)
    names = [group.rule.name for group in found.rule_items if group.comes_first]
    assert names == ([first] if first else [])
    if first:
        assert found.rule_items[0].rule.name == found.findings[0].rule.name == first
        others = [item for item in found.items if item.rule.category != RULES[first].category]
        assert others
        assert all(item.void_until == (first,) for item in others)
    else:
        assert not any(item.void_until for item in found.items)


def test_a_kernel_of_few_threads_has_one_finding_with_the_estimate() -> None:
    launch = {"grid_size": 4.0, "block_size": 32.0, "issue_rate": 0.1, "waves": 0.01}
    warps = {"warps_active_per_scheduler": 1.0, "occupancy_limit_registers": 8.0}
    limits = dict.fromkeys(("shared", "warps", "blocks"), 8.0)
    found = listed({**launch, **warps, **{f"occupancy_limit_{n}": v for n, v in limits.items()}})
    (item,) = [each for each in found.findings if each.rule.category == "grid_too_small"]
    assert item.rule.name == "few_threads"
    assert item.estimate
    assert [group.rule.name for group in found.rule_items if group.comes_first] == ["few_threads"]


@needs_corpus
def test_an_estimate_of_a_debug_build_stands_below_it() -> None:
    found = profkit.load(CORPUS / "seq_align__profile.ncu-repz").checklist(blamed=0)
    assert [group.rule.name for group in found.rule_items][:2] == ["debug_code", "few_threads"]
    assert found.rule_items[1].best.void_until == ("debug_code",)


def test_advice_on_a_void_kernel_comes_after_that_on_others() -> None:
    debugged = {"debug_information": 1.0, "stall_wait": 14.0, "warp_latency": 15.0}
    found = listed({**debugged, "duration": 5e-3}, {})
    (item,) = [item for item in found.rule_items if item.rule.name == "instruction_dependency"]
    assert [finding.kernel for finding in item.findings] == ["kernel_1", "kernel_0"]
    assert [bool(finding.void_until) for finding in item.findings] == [False, True]


def test_a_short_kernel_of_a_long_report_is_not_at_its_head() -> None:
    found = listed({"duration": 3e-6}, {})
    assert not any(group.comes_first for group in found.rule_items)


@pytest.mark.parametrize("name", ["sdpa_s512_flash", "sdpa_s512_cudnn", "sdpa_s512_efficient"])
def test_no_tuned_kernel_is_void(name: str) -> None:
    assert not any(item.rule.first for item in h200(name).checklist(blamed=0).findings)


@needs_corpus
def test_debug_builds_are_known_by_their_program() -> None:
    for name, expected in {
        "mixes-reconstruction__version2.ncu-rep": 1,
        "seq_align__profile.ncu-repz": 1,
        "IndexSpaces.jl__profile_3176628c.ncu-rep": 0,  # Julia writes .debug_info, but is optimized
        "cs599k__silu_77_06.ncu-repz": 0,
    }.items():
        launch = profkit.load(CORPUS / name).summary.launches[0]
        assert launch.get("debug_information") == expected, name


@needs_truth
def test_a_debug_build_says_so_before_all_else(profkit_cli: Cli) -> None:
    shown = profkit_cli("analyze", others_report("suhithr_coalescing")).stdout
    head = shown.partition("Bottlenecks")[2].splitlines()
    assert "compiled for debugging  (fix first)" in head[1]
    assert "local_memory_instructions" not in shown


def basic_set(l1_busy: float = 1.0) -> ReportSummary:
    """64 blocks on 148 SMs with what ncu's default set has, and by default L1 at its limit."""
    values = {"duration": 5e-5, "grid_size": 64.0, "block_size": 256.0, "sm_count": 148.0}
    busy = {"l1_busy": l1_busy, "l2_busy": 0.1, "dram_busy": 0.1}
    limits = [f"occupancy_limit_{name}" for name in ("registers", "shared", "warps", "blocks")]
    without = ["issue_busy", "issue_rate", "warps_active_per_scheduler", *limits]
    return report([{**values, **busy}], dict.fromkeys(without, NOT_COLLECTED))


def test_what_lacks_quantities_is_bounded_by_what_the_launch_allows() -> None:
    found = checklist(basic_set(0.3), list(RULES.values()))
    (item,) = [item for item in found.items if item.rule.name == "grid_too_small"]
    assert item.bound == pytest.approx(148 / 64 * 8)  # 64 warps an SM, in blocks of 8
    assert "issue_rate" in item.lacking
    # likely the root of that; L1, which more blocks don't relieve, allows 1 / 0.3, DRAM 0.95 / 0.1
    assert item.speedup == pytest.approx(1 / 0.3)
    assert item.range == pytest.approx((1.0, 9.5))
    (trial,) = explain(basic_set(0.3), RULES["grid_too_small"])
    assert trial.finding
    assert trial.finding.bound == item.bound


def test_no_estimate_passes_a_limit_that_is_known() -> None:
    """More SMs are of no use to L1 at its limit."""
    found = checklist(basic_set(), list(RULES.values()))
    assert "grid_too_small" not in {item.rule.name for item in found.items}
    assert "grid_too_small" in {row.rule for row in found.unevaluated}
    assert [group.name for group in found.roofs] == ["kernel_0"]


def test_a_rule_that_looks_for_what_was_not_recorded_claims_nothing() -> None:
    """Stalls and instructions are not in the default set: neither is said to be there."""
    found = checklist(basic_set(), list(RULES.values()))
    listed = {row.rule for row in found.unevaluated}
    assert listed >= {"barrier_stalls", "memory_latency", "instruction_overhead"}
    certain = {item.rule.name for item in found.findings if not item.lacking}
    assert not listed & certain
    for item in found.items:
        assert item.title.startswith("Possibly: ") == bool(item.lacking)
        assert item.range[0] == 1.0 or not item.lacking


@needs_truth
def test_ncus_own_results_stand_beside_rules_that_lack_data(profkit_cli: Cli) -> None:
    path = others_report("accelsim_algorithm")
    shown = " ".join(profkit_cli("analyze", path).stdout.split())
    assert "64 blocks, 148 SMs; work divided: 2.3x by SMs alone" in shown
    assert re.search(r"ncu's rules Kernel2.*: - Small Grid \(est\. speedup 56\.8%\)", shown)
    explained = profkit_cli("rules", "explain", "grid_too_small", "--on", path).stdout
    assert "Fires on" in explained
    assert "this alone allows 18x" in explained  # 148 SMs of 8 such blocks


@pytest.mark.parametrize("reason", [LONG_CODE, NO_CODE])
def test_samples_that_were_not_read_have_their_reason(reason: str) -> None:
    (trial,) = explain(report([KERNEL]), RULES["division_sequences"], lambda _: reason)
    assert trial.conditions[0].missing["division_share"] == reason


@needs_truth
def test_a_kernel_without_machine_code_is_not_called_short(profkit_cli: Cli) -> None:
    path = others_report("ncar_division", "after")
    shown = profkit_cli("rules", "explain", "division_sequences", "--on", path).stdout
    assert "machine code" in shown
    assert "15" not in shown.partition("Does not fire")[2]


@needs_truth
def test_divisions_of_doubles_are_found_without_machine_code() -> None:
    found = profkit.load(others_report("ncar_division")).checklist(blamed=0).items
    assert "division_sequences" in {item.rule.name for item in found}


def test_a_product_without_shared_memory_fits_tensor_cores() -> None:
    """2048 x 2048 x 2048 of a thread a value: two loads for each multiply-add of a warp."""
    fused = 2 * 2048.0**3
    counted = {"fp32_fused": fused, "fp32_added": 0.0, "fp32_multiplied": 0.0, "flop_fp32": fused}
    loads = {"shared_memory_instructions": 0.0, "global_memory_instructions": fused / 32}
    others = {"tensor_instructions": 0.0, "special_instructions": 0.0, "dram_bytes": 5e7}
    work = {"instructions_executed": fused / 16, "peak_rate_fp32": 6e13, "fma_busy": 0.1}
    found = listed({**counted, **loads, **others, **work, "l1_busy": 0.9, "duration": 5e-3})
    (item,) = [item for item in found.items if item.rule.name == "tensor_cores_unused"]
    assert item.rule.numerics
    assert item.rank == max(other.rank for other in found.items)


QUEUES = {"stall_mio_throttle": 0.0, "stall_tex_throttle": 0.0, "warp_latency": 6.24}
PIPES = {"lsu_busy": 0.5, "lsu_data_busy": 0.9, "l1_busy": 0.9}


@pytest.mark.parametrize(("stall", "fires"), [(0.70, False), (3.0, True)])
def test_queues_are_full_where_warps_wait_for_them(stall: float, fires: bool) -> None:
    trial = explain(
        report([{**KERNEL, **QUEUES, **PIPES, "stall_lg_throttle": stall}]), RULES["queue_full"]
    )[0]
    assert bool(trial.finding) == fires


@pytest.mark.parametrize(
    ("wavefronts", "products", "missing"),
    [(1.0, 0.5, set()), (3.0, 0.5, {"16 bytes"}), (1.0, 12.0, {"tile of results"})],
)
def test_no_action_is_one_that_the_kernel_has_taken(
    wavefronts: float, products: float, missing: set[str]
) -> None:
    loads = {"shared_load_requests": 1e6, "shared_ideal_load": wavefronts * 1e6}
    work = {"shared_memory_instructions": 1e6, "global_memory_instructions": 0.0}
    values = {**loads, **work, "fp32_fused": products * 64e6, "global_load_requests": 0.0}
    actions = " ".join(RULES["queue_full"].actions_on((9, 0), values))
    shared = " ".join(RULES["l1_throughput"].actions_on((9, 0), values))
    for text in (actions, shared):
        assert {word for word in ("16 bytes", "tile of results") if word not in text} == missing


def test_an_instruction_before_the_kernel_is_of_a_function_that_it_calls() -> None:
    place = Place("", 0, "", 0.05, offset="-0xf490")
    assert place_name(place) == "-0xf490 (outside of the kernel's code)"
    own = Place("", 0, "DADD R2, R4, R6", 0.05, offset="+0x0bc0")
    assert place_name(own) == "+0x0bc0 `DADD R2, R4, R6`"


def test_an_explained_share_of_the_time_does_not_contradict_the_estimate(profkit_cli: Cli) -> None:
    known = recorded_report("known")
    shown = profkit_cli("rules", "explain", "shared_bank_conflicts", "--on", known).stdout
    conflicts = " ".join(shown.partition("Fires on transpose_conflict")[2].split())
    # of a fix that leaves 1 - 0.94 of both: 0.513 of the latency goes, and nothing
    # issues in 0.925 of it; by the L1 data stage and L2 47% is left (docs/reference/methods)
    assert "mio throttle 44.0% to 2.6%" in conflicts
    assert "short scoreboard 10.6% to 0.6%" in conflicts
    assert "52.5% remains by the stalls alone; the lower bounds leave less" in conflicts


@needs_corpus
@pytest.mark.parametrize("verb", ["analyze", "checklist"])
def test_ncus_own_results_are_under_the_name_of_their_kernel(profkit_cli: Cli, verb: str) -> None:
    shown = profkit_cli(verb, CORPUS / "HomCmprsr__report.ncu-repz").stdout
    _, _, text = shown.partition("ncu's rules")
    lines = [line.strip() for line in text.partition("lacking data")[0].splitlines()]
    heads = [line.partition("(")[0] for line in lines if re.match(r"GSZ_|- ", line)]
    advice = [f"- {part} Workload Imbalance " for part in ("SMSPs", "SMs", "L1 Slices")]
    kernels = ["GSZ_compress_kernel_outlier_vec", "GSZ_compress_kernel_outlier"]
    assert heads == [line for kernel in kernels for line in (kernel, *advice)]


@pytest.mark.parametrize("style", ["terminal", "markdown"])
def test_a_possible_finding_has_its_range_in_one_form(profkit_cli: Cli, style: str) -> None:
    path = h200("sdpa_s512_flash_set_basic").path
    items = profkit.load(path).checklist().findings
    assert any(item.possible for item in items)
    shown = profkit_cli("analyze", path, "--format", style).stdout
    assert "Possibly" in shown
    assert not re.search(r"up to \d[\d.]*x", shown)


def test_a_range_beyond_the_next_limit_says_what_that_takes() -> None:
    limited = [
        item
        for item in h200("known").checklist().findings
        if item.group and item.estimate and item.estimate.bounded_by
    ]
    beyond = {item.estimate.high > item.estimate.limit for item in limited if item.estimate}
    assert True in beyond
    for item in limited:
        assert item.estimate
        says = "more only with less work" in prospects(item)
        assert says == (item.range[1] > item.estimate.limit)
