"""No output claims a bound that a fix was measured to pass."""

from __future__ import annotations

import json
import math
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from profkit.score.score import definitions_of, read_pair
from tests.conftest import TRUTH, by_day, h200, needs_truth, pair_report, scratch, written_once
from tests.examined_pairs import PAIRS

Cli = Callable[..., Result]
BOUND = re.compile(r"(?:at most|≤|no more than|up to) ?([\d.,]+)x")
_PAST = ("adam_eager", "bicg_two_passes", "fuse_passes", "loop_order", "srad_stored_derivatives")
"""Recorded pairs whose fix gained more than the present traffic and FLOP allow."""


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
