"""What rules make of other people's reports: nothing false, nothing without its data."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import profkit
from profkit.report.checks import NOT_HERE
from profkit.report.floors import SHORTEST
from profkit.report.source_lines import executed_code
from profkit.report.summary import Group
from profkit.rules.checklist import Checklist
from profkit.rules.engine import explain
from profkit.rules.finding_text import evidence, roofs
from profkit.rules.rule_file import CONTEXT, Rule, shipped_rules
from profkit.rules.samples import SAMPLED
from tests.conftest import CORPUS, ROOT, Cli, needs_corpus, needs_reader

pytestmark = needs_corpus
REPORTS = sorted((*CORPUS.glob("*.ncu-rep"), *CORPUS.glob("*.ncu-repz")))


@cache
def report(name: str) -> profkit.Report:
    (path,) = (path for path in REPORTS if path.name.startswith(name))
    return profkit.load(path)


@cache
def found(name: str) -> Checklist:
    return report(name).checklist()


def names(items: Iterable[Any], kernel: str = "") -> list[str]:
    return [item.rule.name for item in items if item.group and kernel in item.group.name]


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_what_is_ranked_has_an_estimate_worth_ranking(profkit_cli: Cli, path: Path) -> None:
    done = profkit_cli("checklist", path, "--top", "0", "--format", "json")
    told = json.loads(done.stdout)
    schema = json.loads((ROOT / "profkit/schemas/checklist.json").read_text(encoding="utf-8"))
    jsonschema.validate(told, schema)
    for item in told["checklist"]:
        assert item["estimated_speedup"] >= 1.005
        assert item["range"][0] == 1.0 or not item["estimate_lacks"]
        assert item["estimate_lacks"] or not item["title"].startswith("Possibly: ")
        assert item["saved_s"] <= told["report"]["total_s"]
    for item in told["informative"]:
        assert item["rank"] is item["estimated_speedup"] is item["range"] is None
    found = [*told["checklist"], *told["informative"]]
    assert bool(found) == (told["conclusion"] == "findings") or told["conclusion"] == "can't tell"
    if any(not item["estimate_lacks"] for item in found):
        assert told["conclusion"] == "findings"


_FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "min": min,
    "max": max,
    "ceil": lambda x: math.ceil(x) if math.isfinite(x) else x,
    "sqrt": math.sqrt,
    "abs": abs,
    "otherwise": lambda value, instead: instead if math.isnan(value) else value,
    "known": lambda value: not math.isnan(value),
    "where": lambda condition, yes, no: yes if condition else no,
}


def fires(rule: Rule, values: Mapping[str, float]) -> bool:
    """A rule's conditions by Python's own rules, on values of which none is missing."""
    try:
        return all(
            eval(condition.text, {"__builtins__": {}, **_FUNCTIONS}, dict(values))
            for condition in rule.when
        )
    except (ZeroDivisionError, OverflowError, ValueError):
        return False


def uncertain(rule: Rule, group: Group) -> bool:
    """Whether filling in what is missing, once with little and once with much, makes it fire."""
    typical = group.typical
    guards = {
        node.args[0].id
        for condition in rule.when
        for node in ast.walk(ast.parse(condition.text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"known", "otherwise"}
        and isinstance(node.args[0], ast.Name)
    }
    read = {name for condition in rule.when for name in condition.names}
    missing = {name for name in read if math.isnan(typical.get(name))}
    absent = {name for name in missing if typical.why_missing(name) == NOT_HERE}
    unknown = missing - absent - guards
    if not unknown or missing & (set(SAMPLED) | set(CONTEXT)):
        return False
    given = {name: typical.get(name) for name in read} | dict.fromkeys(absent, 0.0)
    return any(fires(rule, given | dict.fromkeys(unknown, to)) for to in (1e-12, 1e12))


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_no_rule_is_silent_for_want_of_data(path: Path) -> None:
    checklist = found(path.name)
    listed = {one.rule: one for one in checklist.unevaluated}
    groups = [group for group in report(path.name).summary.groups if group.count > group.failed]
    for rule in shipped_rules():
        if rule.about == "kernel" and any(uncertain(rule, group) for group in groups):
            decided = any(trial.finding for trial in explain(report(path.name).summary, rule))
            assert rule.name in listed or decided, rule.name
    for one in listed.values():
        assert one.reasons
        assert all(one.reasons.values())


def test_most_rules_without_data_are_no_clean_bill(profkit_cli: Cli) -> None:
    path = CORPUS / "COALDA__coalesced_chart.ncu-rep"
    assert "rules: need" in profkit_cli("analyze", path).stdout
    told = json.loads(profkit_cli("checklist", path, "--format", "json").stdout)
    assert told["conclusion"] == "can't tell"
    assert all(item["title"].startswith("Possibly: ") for item in told["checklist"])
    assert len(told["not_evaluated"]) > told["rules"] / 2


def test_three_runs_of_one_kernel_hand_over_nothing() -> None:
    assert "intermediate_through_dram" not in names(found("cs599k__silu_vector_based").findings)


def test_parts_of_one_unrolled_loop_are_no_passes() -> None:
    assert "data_read_in_passes" not in names(found("cs599k__silu_77_06").findings)


@needs_reader
def test_a_full_queue_is_not_bounded_by_the_pipe_that_its_fix_relieves() -> None:
    (queue,) = (
        item
        for item in found("feather_gemm__1024_03_tiled").items
        if item.rule.name == "queue_full"
    )
    assert queue.estimate is not None
    assert queue.estimate.likely > 1.2
    assert queue.places[0].sass.startswith("LDS")


def test_blocks_of_one_thread_are_found() -> None:
    first = found("GPU_Power_Model__PS1_100").items[0]
    assert first.rule.name == "partial_warps"


def test_a_full_fp64_pipe_is_found_without_instruction_counts() -> None:
    assert names(found("NetworkSim__profile").items)[0] == "fp64_pipe"


def test_one_block_has_no_use_for_more_room_on_an_sm() -> None:
    assert "occupancy_block_size" not in names(found("seq_align__profile").findings)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("KernelBench__matmul_kernel", "l1_throughput"),
        ("NuKEXC__profile_309861cc", "l1_wavefronts"),  # 14 for an instruction
    ],
)
def test_a_full_l1_is_found(name: str, rule: str) -> None:
    certain = [item for item in found(name).items if not item.title.startswith("Possibly: ")]
    assert certain[0].rule.name == rule
    assert "at_the_roof" in names(found(name).informative)


@needs_reader
def test_what_fills_l1_is_found_by_what_l1_counts() -> None:
    first = found("feather_gemm__1024_03_tiled").items[0]
    assert first.rule.name in {"l1_throughput", "queue_full"}
    assert all(place.sass.startswith("LDS") for place in first.places)


@pytest.mark.parametrize(
    "name", ["mixes-reconstruction__full_profile", "mixes-reconstruction__version2", "seq_align"]
)
def test_a_debug_build_is_found(name: str) -> None:
    assert found(name).rule_items[0].rule.name == "debug_code"
    assert found(name).rule_items[0].comes_first


def test_no_release_build_is_taken_for_a_debug_build() -> None:
    for name in ("blackwell-kernels", "cs599k__silu_77_06", "lammps__output", "speedy_scan"):
        assert "debug_code" not in names(found(name).findings)


def test_machine_code_that_the_reader_cannot_show_is_unknown() -> None:
    volta = report("lammps__output")
    assert all(
        place.sass == "" for item in found("lammps__output").findings for place in item.places
    )
    kernel = volta.kernel(0)
    assert math.isnan(kernel.source_view().total.live)
    assert executed_code(kernel._action, "inst_executed") is None


def test_a_finding_of_unknown_size_has_what_the_launch_allows() -> None:
    items = found("HomCmprsr__report").items
    small = [item for item in items if item.rule.category == "grid_too_small"]
    slots = 34 * 32 / 31  # warps that an RTX 2060 SUPER holds, and its blocks of one
    assert {item.bound for item in small} == {slots}
    for item in small:
        assert item.headroom
        assert item.range[0] == 1.0
        assert 4 < item.range[1] <= item.headroom.factor * (1 + 1e-6)
        assert item.speedup == pytest.approx(min(slots**0.5, item.headroom.factor))
        assert item.title == "The launch has too few threads to fill the chip"  # that is known
        assert {"issue_rate", "warps_active_per_scheduler"} <= set(item.lacking)


def test_a_vector_operation_is_not_said_to_read_again() -> None:
    assert "data_read_again" not in names(found("lammps__output").findings)


def test_no_resource_is_named_for_the_time_of_a_launch() -> None:
    for item in found("seq_align__profile").findings:
        estimate = item.estimate
        if estimate and estimate.bound_seconds == pytest.approx(SHORTEST):
            assert estimate.bounded_by in {"launch overhead", ""}


@needs_reader
def test_evidence_names_samples_in_words() -> None:
    (spills,) = (
        item
        for item in found("mixes-reconstruction__version2").items
        if item.rule.name == "spills_awaited"
    )
    assert "warp samples that this rule selects 17.4%" in evidence(spills)


def test_a_roof_refers_to_a_finding_by_its_rank() -> None:
    items = found("KernelBench__matmul_kernel")
    ((_, told),) = roofs(items, items.major)
    assert told.endswith("finding 1")
