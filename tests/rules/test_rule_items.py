"""Findings of one rule as one item of the checklist."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import pytest
from msgspec import structs

import profkit
from profkit.report.summary import groups
from profkit.rules.checklist import WORTH_ACTING, Checklist, checklist
from profkit.rules.finding import PROMISED, Evidence
from profkit.rules.finding_text import certainty, measured, verify
from profkit.rules.memory import Similar
from profkit.rules.rule_file import shipped_rules
from profkit.ui.text import factor
from tests.conftest import Cli, h200, pair_report
from tests.rules.test_engine import own, report


def halving(tmp_path: Path, *milliseconds: float, other: float = 0.0) -> Checklist:
    """A rule that halves the time of each kernel, beside a kernel that it does not concern."""
    rule = own(tmp_path, when="stall_wait > 1")
    kernels = [{"duration": time * 1e-3, "stall_wait": 2.0} for time in milliseconds]
    return checklist(report([*kernels, {"duration": other * 1e-3, "stall_wait": 0.0}]), [rule])


def test_a_rule_on_several_kernels_is_one_item(tmp_path: Path) -> None:
    found = halving(tmp_path, 10, 60, other=30)
    (item,) = found.rule_items
    assert [own.group.name for own in item.findings if own.group] == ["kernel_1", "kernel_0"]
    assert [own.rank for own in found.items] == [item.rank] * 2 == [1, 1]
    assert item.best is found.items[0]
    assert item.speedup == pytest.approx(100 / (100 - 30 - 5))


def test_items_are_in_the_order_of_the_speedup_that_is_shown(tmp_path: Path) -> None:
    rules = [
        own(tmp_path, "wait", when="stall_wait > 1"),
        own(tmp_path, "barrier", when="stall_barrier > 1", category="barrier_stalls"),
    ]
    kernels = [
        {"duration": time, "stall_wait": wait, "stall_barrier": 2.5 - wait}
        for time, wait in [(3e-5, 2.0), (5e-5, 0.0), (2.9e-5, 2.0)]
    ]
    found = checklist(report(kernels), rules)
    assert [item.rule.name for item in found.rule_items] == ["wait", "barrier"]
    assert [item.rank for item in found.rule_items] == [1, 2]
    assert [item.rank for item in found.items] == [1, 1, 2]
    assert found.rule_items[0].speedup > found.rule_items[1].speedup


@pytest.mark.parametrize(
    ("share", "minor"), [(WORTH_ACTING * 1.01, False), (WORTH_ACTING * 0.99, True)]
)
def test_an_item_below_the_minimum_is_minor(tmp_path: Path, share: float, *, minor: bool) -> None:
    found = halving(tmp_path, 200 * share, other=100 - 200 * share)
    (item,) = found.rule_items
    assert item.minor == minor
    assert (found.minor, found.major) == (((item,), ()) if minor else ((), (item,)))


def test_a_gain_is_of_the_variant_that_its_kernel_belongs_to(tmp_path: Path) -> None:
    rules = [
        own(tmp_path, "wait", when="stall_wait > 1"),
        own(tmp_path, "barrier", when="stall_barrier > 1", category="barrier_stalls"),
    ]
    kernels = [
        {"duration": 9e-3, "stall_wait": 2.0, "stall_barrier": 0.0},
        {"duration": 9e-3, "stall_wait": 0.0, "stall_barrier": 0.0},
        {"duration": 1e-3, "stall_wait": 0.0, "stall_barrier": 2.0},
    ]
    plain = report(kernels)
    launches = tuple(
        dataclasses.replace(launch, launch=dataclasses.replace(launch.launch, nvtx=(name,)))
        for launch, name in zip(plain.launches, ("slow", "slow", "fast"), strict=True)
    )
    marked = structs.replace(plain, launches=launches, groups=groups(launches))
    found = checklist(marked, rules, variants=("slow", "fast"))
    shown = [(item.rule.name, item.variant) for item in found.rule_items]
    assert shown == [("barrier", "fast"), ("wait", "slow")]
    gains = [item.speedup for item in found.rule_items]
    assert gains == pytest.approx([2, 18 / 13.5])
    assert [item.estimate.run for item in found.items if item.estimate] == [
        pytest.approx(2),
        pytest.approx(18 / 13.5),
    ]
    (first, _) = checklist(marked, rules, variants=("slow",)).rule_items
    assert (first.rule.name, first.variant) == ("wait", "")


def test_what_has_no_estimate_is_minor_on_a_short_kernel(tmp_path: Path) -> None:
    rule = own(tmp_path, when="stall_wait > 1", gives="")
    for share in (0.5, WORTH_ACTING / 2):
        kernels = [{"duration": share, "stall_wait": 2.0}, {"duration": 1 - share}]
        (item,) = checklist(report(kernels), [rule]).rule_items
        assert item.rank == 0
        assert math.isnan(item.speedup)
        assert item.minor == (share < WORTH_ACTING)


def test_the_repr_of_a_checklist_is_sorted_by_what_it_shows() -> None:
    """A kernel's own speedup is no order: the report gains more of a slower kernel's small one."""
    text = repr(h200("known").checklist())
    gains = re.findall(r"^ +\d+  (\d[\d.,]*)x", text, re.M)
    assert len(gains) > 3
    values = [float(gain.replace(",", "")) for gain in gains]
    assert values == sorted(values, reverse=True)
    assert "by speedup of the whole" in text


def test_a_pipe_is_named_and_a_finding_alone_has_no_margin() -> None:
    base = {"duration": 1e-3, "sm_count": 132.0, "grid_size": 1e4, "block_size": 256.0}
    busy = dict.fromkeys(("dram_busy", "l2_busy", "l1_busy", "issue_busy", "fma_busy"), 0.1)
    pipes = dict.fromkeys(
        ("fp64_busy", "xu_busy", "lsu_busy", "branch_unit_busy", "adu_busy", "texture_busy"), 0.1
    )
    kernel = {**base, **busy, **pipes, "uniform_busy": 0.1, "alu_busy": 0.9}
    found = checklist(report([kernel]), shipped_rules())
    (item,) = [each for each in found.findings if each.rule.name == "pipe_saturated"]
    assert verify(item) == ("alu_busy falls for the same work",)
    flag = Evidence("debug_information", 1.0, "flag", None, None)
    assert measured(flag) == "debug_information yes"
    sure = dataclasses.replace(item, similar=Similar(5, (), 0.5, "likely"))
    assert certainty(sure, item).startswith("likely: ")
    assert certainty(sure, None).startswith("likely, the only cause with an estimate")


@pytest.mark.parametrize("verb", ["analyze", "checklist"])
def test_a_gain_that_is_not_promised_is_a_range_alone(profkit_cli: Cli, verb: str) -> None:
    path = pair_report("ffma_gemm", "before")
    item = next(each for each in profkit.load(path).checklist().causes if each.range[0] < PROMISED)
    low, high = item.range
    assert item.gain.startswith("1.0")
    assert item.gain.endswith(f" to {factor(high)}")
    assert low <= item.speedup <= high
    shown = profkit_cli(verb, path).stdout
    assert re.search(rf"1[ .] +{re.escape(item.gain)}  ", shown)
    assert f"{factor(item.speedup)} [" not in shown
