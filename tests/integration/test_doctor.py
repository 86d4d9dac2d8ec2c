"""`profkit doctor` on a machine without a GPU."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from typer.testing import Result

from profkit.capture.gpu import NoDriver, states

Cli = Callable[..., Result]


@pytest.fixture(autouse=True)
def without_gpu() -> None:
    try:
        found = states()
    except NoDriver:
        return
    if found:
        pytest.skip("this machine has a GPU")


def test_what_still_works_is_said(profkit_cli: Cli) -> None:
    result = profkit_cli("doctor")
    assert result.exit_code == 0
    assert "No GPU here. What works: profkit analyze" in result.stdout
    assert "fails  GPU" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_a_required_gpu_ends_with_4(profkit_cli: Cli) -> None:
    result = profkit_cli("doctor", "--require-gpu")
    assert result.exit_code == 4
    assert "no GPU can be profiled here" in result.stderr


def test_checks_as_json(profkit_cli: Cli) -> None:
    data = json.loads(profkit_cli("doctor", "--format", "json").stdout)
    assert data["schema"] == "profkit.doctor/1"
    assert data["has_gpu"] is False
    assert data["can_profile"] is False
    checks = {check["name"]: check for check in data["checks"]}
    assert {"GPU", "ncu", "ncu-report", "nsys", "counters", "DCGM", "python", "disk"} <= set(checks)
    assert checks["GPU"]["remedy"]
