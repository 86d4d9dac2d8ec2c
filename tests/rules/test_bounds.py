"""No output claims a bound that a fix was measured to pass."""

from __future__ import annotations

import json
import math
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest

import profkit
from profkit.rules.finding import Finding
from profkit.score.score import definitions_of, read_pair
from tests.conftest import (
    CORPUS,
    TRUTH,
    Cli,
    by_day,
    h200,
    needs_corpus,
    needs_truth,
    pair_report,
    scratch,
    written_once,
)
from tests.examined_pairs import PAIRS
from tests.rules.test_shipped_rules import RULES, finding

BOUND = re.compile(r"(?:at most|≤|no more than|up to) ?([\d.,]+)x")
_PAST = ("adam_eager", "bicg_two_passes", "fuse_passes", "loop_order", "srad_stored_derivatives")
"""Recorded pairs whose fix gained more than the present traffic and FLOP allow."""
_DIVIDED = (
    "autoencoder_group_norm", "cache_scores", "decode_without_split", "energy_per_channel",
    "grid_too_small", "sentence_pooling_long_rows",
)  # fmt: skip
"""Recorded pairs whose fix divided the work of fewer blocks than SMs."""


def bounds(profkit_cli: Cli, report: Path) -> list[float]:
    """The factors that the report's outputs call the most that can be gained."""
    pages = [("analyze", report), ("checklist", report, "--top", "0", "--all")]
    pages.append(("analyze", report, "--format", "html"))
    text = "\n".join(profkit_cli(*page).stdout for page in pages)
    assert "present DRAM traffic" in text or "recorded DRAM bytes" in text
    return [float(each.replace(",", "")) for each in BOUND.findall(text)]


@pytest.mark.parametrize("name", _PAST)
def test_no_bound_is_passed_by_a_recorded_fix(profkit_cli: Cli, name: str) -> None:
    report = pair_report(name, "before")
    gain = read_pair(report.parent, definitions_of(PAIRS)).achieved
    assert all(gain <= bound for bound in bounds(profkit_cli, report))


def found(rule: str, **values: float) -> Finding:
    """What a rule must find on a launch with these quantities."""
    shown = finding(rule, **values)
    assert shown
    return shown


def others_report(pair: str, side: str = "before") -> Path:
    """A report of a pair that others published."""

    def unpack(part: Path) -> None:
        with tarfile.open(TRUTH / "recordings.tar.xz") as recordings:
            recordings.extractall(part, filter="data")

    return written_once(scratch() / "truth", unpack) / "pairs" / pair / f"{side}.ncu-rep"


@needs_truth
def test_no_bound_is_passed_by_others_fixes(profkit_cli: Cli) -> None:
    gains = {
        each["name"]: each["speedup"]
        for each in json.loads((TRUTH / "pairs.json").read_text())["pairs"]
        if each.get("speedup")
    }
    assert len(gains) > 50
    for name, gain in by_day(gains.items(), 4):
        text = profkit_cli("analyze", others_report(name)).stdout
        passed = [bound for bound in BOUND.findall(text) if float(bound.replace(",", "")) < gain]
        assert not passed, (name, gain, passed)


@pytest.mark.parametrize("name", ["known", "sdpa_s512_flash", "sdpa_s512_flash_set_basic"])
def test_more_warps_and_full_waves_gain_no_more_than_is_idle(name: str) -> None:
    """Twice the warps issue twice as much at most; SMs that are idle for 7% can't gain 2x."""
    seen = 0
    for item in h200(name).checklist().findings:
        if not (item.group and item.estimate):
            continue
        launch = item.group.typical
        if item.rule.name == "tail_effect":
            waves, active = launch.get("waves"), launch.get("sm_active_share")
            most = max(math.ceil(waves) / waves, 1 / active)
        elif item.rule.name.startswith("occupancy_"):
            most = 1 / launch.get("occupancy_theoretical")
        else:
            continue
        seen += 1
        assert item.range[1] <= max(most, item.speedup) * 1.0001
    assert seen


def test_full_warps_gain_no_more_than_idle_lanes_and_branches() -> None:
    """30 of 32 lanes at work and 1 instruction of 16 a branch: 16/15 x 16/15."""
    made = {"threads_per_instruction": 30.5, "threads_per_instruction_predicated": 30.0}
    shown = found("thread_divergence", **made, control_instructions=1e8 / 16, issue_busy=0.9)
    assert shown.bound == pytest.approx(256 / 225)
    assert shown.estimate
    assert shown.estimate.high <= 256 / 225 * 1.0001


def test_fused_pairs_gain_no_more_than_half_of_what_waits_for_arithmetic() -> None:
    """A third of 3e9 operations goes, of the 60% of the time in the pipe, its waits and issue."""
    made = {"fp32_added": 1e9, "fp32_multiplied": 2e9, "fp32_fused": 0.0, "fma_busy": 0.4}
    stalls = {"stall_wait": 10.0, "stall_math_pipe_throttle": 5.0, "stall_not_selected": 2.0}
    shown = found("non_fused_arithmetic", **made, **stalls, stall_selected=3.0, issue_busy=0.3)
    assert shown.bound == pytest.approx(1 / (1 - 0.6 / 3))
    assert shown.estimate
    assert shown.estimate.high <= 1.25 * 1.0001
    unknown = found("non_fused_arithmetic", **made, issue_busy=0.9)
    assert unknown.bound == pytest.approx(1.5)


@pytest.mark.parametrize("name", _DIVIDED)
def test_no_recorded_division_gains_more_than_all_warp_slots(name: str) -> None:
    """Four of the six gained more than SMs per block."""
    report = pair_report(name, "before")
    launch = profkit.load(report).summary.groups[0].typical
    warps = math.ceil(launch.get("block_size") / 32)
    slots = 64 * launch.get("sm_count") / (warps * launch.get("grid_size"))
    bound = RULES["grid_too_small"].bound
    assert bound
    most = float(bound({each: np.array(launch.get(each)) for each in bound.names}))
    assert read_pair(report.parent, definitions_of(PAIRS)).achieved <= most
    assert most == pytest.approx(slots, rel=0.35)  # of 64 slots, whole blocks


@needs_corpus
def test_a_range_does_not_end_where_dividing_the_work_begins(profkit_cli: Cli) -> None:
    """31 blocks of a warp on 34 SMs: 1.10x by blocks alone, and 31 of 32 warp slots are empty."""
    shown = profkit_cli("checklist", CORPUS / "HomCmprsr__report.ncu-repz").stdout
    assert "31 blocks, 34 SMs; work divided: 1.10x by SMs alone" in shown
    ends = re.findall(r"speedup +1\.0+ to ([\d.]+)x", shown)
    assert ends
    assert all(float(end) > 1.1 for end in ends)
