"""What a trial proved, in the checklist of the kernel that it was proven on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Cli

REPORT = Path(__file__).parent.parent.parent / "reports/h200/pairs/tail_effect/before.ncu-repz"
GAIN = {"speedup": 3.91, "low": 3.9, "high": 3.92, "verdict": "improved"}
TRIAL = {
    "schema": "profkit.try_kernels/1",
    "profkit": "1",
    "target": {"name": "x", "dtype": "float32", "shapes": {}, "work": None, "variants": ["before"]},
    "variant": "before",
    "seconds": 30.0,
    "median": 1e-3,
    "best": None,
    "rounding": None,
    "proven": [
        {
            "switches": ["blocks-per-sm-4"],
            "changes": "nothing",
            "keep": ["x"],
            "seconds": 3e-4,
            **GAIN,
        }
    ],
    "idle": [],
    "slower": [],
    "failed": {},
    "budget": 60.0,
    "fingerprint": {},
}


@pytest.fixture
def tried(tmp_path: Path) -> Path:
    file = tmp_path / "tried.json"
    file.write_text(json.dumps(TRIAL))
    return file


def test_a_proven_cause_stands_before_every_estimate(profkit_cli: Cli, tried: Path) -> None:
    def checklist(*words: object) -> str:
        return profkit_cli("checklist", REPORT, *words).stdout

    estimated = json.loads(checklist("--format", "json"))["checklist"]
    items = json.loads(checklist("--format", "json", "--tried", tried))["checklist"]
    assert estimated[0]["category"] == "tail_effect"
    assert items[0]["category"] == "occupancy_registers"
    assert items[0]["tried"] == {
        "verdict": "proven", "switches": ["blocks-per-sm-4"], "speedup": 3.91, "low": 3.9,
        "high": 3.92, "reason": "", "keep": ["x"],
    }  # fmt: skip
    assert items[0]["estimated_speedup"] in {item["estimated_speedup"] for item in estimated}
    assert "proven 3.91x [3.90, 3.92] with blocks-per-sm-4" in checklist("--tried", tried)


def test_a_timeline_takes_no_trial_of_kernels(profkit_cli: Cli, tried: Path) -> None:
    timeline = REPORT.parents[2] / "sdpa_s512_flash.sqlite"
    done = profkit_cli("checklist", timeline, "--tried", tried, status=5)
    assert "expected profkit.try/1; try again: profkit try -o FILE -- PROGRAM" in done.output


def test_the_page_leads_with_what_is_proven(profkit_cli: Cli, tried: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    profkit_cli("report", REPORT, "--tried", tried, "-o", page)
    text = page.read_text()
    lead, _, rest = text.partition('<p class="lead-estimate">')[2].partition("</p>")
    assert lead == "proven 3.91x [3.90, 3.92] with blocks-per-sm-4"
    assert "Tried on x:before: 1 proven gain" in text
    assert rest.count("proven 3.91x [3.90, 3.92] with blocks-per-sm-4") == 2


def test_the_trial_of_another_variant_is_left_out(profkit_cli: Cli, tmp_path: Path) -> None:
    run = next((REPORT.parents[2] / "sdpa_s512").iterdir())
    (report,) = run.glob("*.ncu-repz")
    target = {**TRIAL["target"], "variants": ["before", "custom"]}  # type: ignore[dict-item]
    file = tmp_path / "other.json"
    file.write_text(json.dumps({**TRIAL, "target": {**target, "name": "sdpa_s512"}}))
    done = profkit_cli("checklist", report, "--tried", file, status=2)
    assert "a trial of before, not of custom" in done.output
