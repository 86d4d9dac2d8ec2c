"""Values that no counter and no device has are missing, never 0 and never shown as they are."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from tests.conftest import H200, Cli
from tests.report.edited import edited, instance, valued

REPORT = H200 / "sdpa_s512_flash.ncu-repz"
DURATION = "gpu__time_duration.sum"
IMPOSSIBLE = (math.nan, math.inf, -1.0, 0.0, 1e300, "text")


@pytest.mark.parametrize("value", IMPOSSIBLE)
def test_a_launch_of_an_impossible_duration_has_none(
    value: float | str, tmp_path: Path, profkit_cli: Cli
) -> None:
    path = edited(REPORT, tmp_path / "x.ncu-rep", {DURATION: valued(value)})
    text = profkit_cli("analyze", path)
    assert "no valid GPU time" in text.stdout
    assert "1 of 1 launches have no duration" in text.stdout
    assert not re.search(r"\b0 ns|-1\.000|\bnan\b|\binf\b", text.stdout)
    document = json.loads(profkit_cli("analyze", path, "--format", "json").stdout)
    assert document["report"]["total_s"] is None
    assert document["groups"][0]["total_s"] is None
    checklist = json.loads(profkit_cli("checklist", path, "--format", "json").stdout)
    assert checklist["report"]["total_s"] is None


ATTRIBUTES = {
    "multiprocessor_count": "sm_count",
    "clock_rate": "clock_hz",
    "total_memory": "memory_bytes",
    "l2_cache_size": "l2_bytes",
    "compute_capability_major": "compute_capability",
}


@pytest.mark.parametrize("value", IMPOSSIBLE)
def test_impossible_device_attributes_are_missing(
    value: float | str, tmp_path: Path, profkit_cli: Cli
) -> None:
    changes = {f"device__attribute_{name}": valued(value) for name in ATTRIBUTES}
    path = edited(REPORT, tmp_path / "x.ncu-rep", changes)
    gpu = json.loads(profkit_cli("analyze", path, "--format", "json").stdout)["gpu"]
    assert [gpu[field] for field in ATTRIBUTES.values()] == [None] * len(ATTRIBUTES)
    assert gpu["datasheet"] is None
    assert "no valid SM count or compute capability" in profkit_cli("analyze", path).stdout


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_an_impossible_instance_refuses_the_report(
    value: float, tmp_path: Path, profkit_cli: Cli
) -> None:
    path = edited(REPORT, tmp_path / "x.ncu-rep", {"inst_executed": instance(value)})
    result = profkit_cli("report", path, "-o", tmp_path / "page.html", status=5)
    assert result.stderr.count("\n") == 1
    assert "an instance of a metric that is not a valid number" in result.stderr
    assert not (tmp_path / "page.html").exists()
