"""What the outputs say of estimates: headroom, assumptions, and caches flushed by ncu."""

from __future__ import annotations

import json
import math
import re

import pytest

import profkit
from profkit.report.checks import FITS_IN_L2, cache_note
from profkit.rules.rule_file import shipped_rules
from tests.conftest import H200, Cli, h200

KNOWN, MATH = H200 / "known.ncu-repz", H200 / "sdpa_s512_math.ncu-repz"
FEW_METRICS = H200 / "sdpa_s512_flash_two_metrics.ncu-repz"
CHAIN = "intermediate_through_dram"
ROUNDED = 1.05  # a factor in two digits
RANGE = re.compile(r"est\. speedup\s+(?:[\d.]+x \[[\d.]+, |[\d.]+ to )?([\d.,]+)")


@pytest.mark.parametrize("path", [KNOWN, MATH, H200 / "sdpa_s512"])
def test_no_estimate_exceeds_the_headroom_of_its_kernel(profkit_cli: Cli, path: str) -> None:
    document = json.loads(profkit_cli("analyze", path, "--format", "json").stdout)
    rows = [row for row in document["checklist"] if row["headroom"] and row["rule"] != CHAIN]
    assert rows
    by_bytes = {rule.name for rule in shipped_rules() if "dram_busy" in rule.relieves}
    for row in rows:
        low, high = row["range"]
        most = row["headroom"]["factor"] + 1e-9
        assert 1 <= low <= row["estimated_speedup"] <= min(high, most)
        assert high <= most or row["rule"] in by_bytes  # the headroom keeps the recorded bytes
    headrooms = {row["name"]: row["headroom"] for row in document["groups"]}
    assert all(row["headroom"] for row in document["kernels"] if headrooms[row["name"]])
    for row in document["groups"]:
        assert row["headroom"]["seconds"] <= row["max_s"]


def test_an_explained_rule_stays_within_the_headroom(profkit_cli: Cli) -> None:
    text = profkit_cli("rules", "explain", "shared_bank_conflicts", "--on", KNOWN).stdout
    for part in text.split("Fires on ")[1:]:
        (high,), (most,) = RANGE.findall(part), re.findall(r"([\d.]+)x above what", part)
        assert float(high) <= float(most) * ROUNDED


def test_a_kernel_and_its_findings_have_one_headroom() -> None:
    report = profkit.load(KNOWN)
    kernel = report.kernel("transpose_conflict")
    headroom = kernel.headroom
    assert headroom is not None
    assert headroom.floor == "DRAM"
    assert headroom.seconds * headroom.factor == pytest.approx(kernel.duration)
    items = [item for item in report.checklist(blamed=0).items if item.launch == 2]
    assert items
    assert all(item.headroom == headroom for item in items)


def test_without_its_dram_traffic_a_kernel_has_no_headroom(profkit_cli: Cli) -> None:
    assert profkit.load(FEW_METRICS).kernel(0).headroom is None
    assert "Headroom" not in profkit_cli("analyze", FEW_METRICS).stdout


def test_the_headroom_is_shown_once_for_each_kernel(profkit_cli: Cli) -> None:
    text = profkit_cli("checklist", KNOWN, "--kernel", "transpose_conflict", "--all").stdout
    assert text.count("2.9x above what needed DRAM traffic and FLOP take") == 1
    assert text.count("Headroom keeps ") == 1


@pytest.mark.parametrize("form", ["terminal", "markdown", "html"])
def test_an_estimate_tells_what_it_assumes(profkit_cli: Cli, form: str) -> None:
    arguments = ("analyze", KNOWN, "--kernel", "copy_strided", "--format", form)
    assert "all accesses can be made contiguous" in profkit_cli(*arguments).stdout


def test_confidence_is_the_width_of_the_range() -> None:
    """Low too where the range has gains that are too small to report."""
    for item in h200("known").checklist(blamed=0).items:
        low, high = item.range
        width = high / low if low >= 1.02 else math.inf
        assert item.confidence == ("high" if width <= 1.3 else "medium" if width <= 2 else "low")


def test_a_note_tells_where_ncu_flushed_data_that_fits_in_l2(profkit_cli: Cli) -> None:
    noted = [launch for launch in h200("sdpa_s512_math").summary.launches if launch.notes]
    assert noted
    for launch in noted:
        assert launch.get("dram_bytes") < launch.gpu.l2_bytes
    assert f"#7, #9 {FITS_IN_L2}"[:60] in profkit_cli("analyze", MATH).stdout
    document = json.loads(profkit_cli("analyze", MATH, "--format", "json").stdout)
    assert [FITS_IN_L2] in [kernel["notes"] for kernel in document["kernels"]]


def test_the_note_needs_small_traffic_that_matters_and_a_flush() -> None:
    gpu = h200("known").gpu
    small = {"dram_bytes": 0.5 * gpu.l2_bytes, "dram_busy": 0.4}
    stalled = {**small, "dram_busy": 0.1, "stall_long_scoreboard": 4.0, "warp_latency": 10.0}
    assert cache_note(small, gpu, "all") == cache_note(stalled, gpu, "") == FITS_IN_L2
    assert not cache_note(small, gpu, "none")
    assert not cache_note({**small, "dram_bytes": 2.0 * gpu.l2_bytes}, gpu, "all")
    assert not cache_note({**small, "dram_busy": 0.1}, gpu, "all")
