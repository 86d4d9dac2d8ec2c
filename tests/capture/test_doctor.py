"""`profkit doctor` on a machine without a GPU."""

from __future__ import annotations

import json
import sys

import pytest

from profkit.capture.gpu import NoDriver, states
from profkit.capture.tools import Tool
from tests.analysis.test_views import schema
from tests.conftest import Cli


@pytest.fixture(autouse=True)
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("profkit.capture.doctor._devices", list)
    try:
        found = states()
    except NoDriver:
        return
    if found:
        pytest.skip("this machine has a GPU")


def test_what_still_works_is_said(profkit_cli: Cli) -> None:
    result = profkit_cli("doctor")
    assert "profkit analyze" in result.stdout
    assert "fails   GPU" in result.stdout
    assert "Can't profile: no usable GPU" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_a_required_gpu_ends_with_4(profkit_cli: Cli) -> None:
    result = profkit_cli("doctor", "--require-gpu", status=4)
    assert "no GPU can be profiled here" in result.stderr


def test_checks_as_json(profkit_cli: Cli) -> None:
    data = json.loads(profkit_cli("doctor", "--format", "json").stdout)
    schema("doctor").validate(data)
    assert data["schema"] == "profkit.doctor/1"
    assert data["has_gpu"] is False
    assert data["can_profile"] is False
    checks = {check["name"]: check for check in data["checks"]}
    assert {"GPU", "ncu", "ncu-report", "nsys", "counters", "DCGM", "python", "disk"} <= set(checks)
    assert checks["GPU"]["remedy"]


def test_what_a_missing_tool_costs_is_reported_on_every_line(profkit_cli: Cli) -> None:
    shown = profkit_cli("doctor").stdout
    data = json.loads(profkit_cli("doctor", "--format", "json").stdout)
    flat = " ".join(shown.split())
    for check in data["checks"]:
        if check["status"] != "ok":
            assert check["remedy"] in flat


@pytest.mark.parametrize("devices", [[], ["/dev/nvidia0"]])
def test_without_ncu_nothing_can_be_profiled(
    profkit_cli: Cli, monkeypatch: pytest.MonkeyPatch, devices: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr("profkit.capture.doctor.find_spec", lambda _: None)
    monkeypatch.setattr("profkit.capture.doctor._devices", lambda: devices)
    monkeypatch.setattr("profkit.capture.doctor.find", lambda _: None)
    assert "Can't profile: ncu not found" in profkit_cli("doctor").stdout
    data = json.loads(profkit_cli("doctor", "--format", "json").stdout)
    assert (data["has_gpu"], data["can_profile"]) == (None, False)


@pytest.mark.parametrize("devices", [[], ["/dev/nvidia0"]])
def test_without_the_package_that_asks_nothing_is_concluded(
    profkit_cli: Cli, monkeypatch: pytest.MonkeyPatch, devices: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr("profkit.capture.doctor.find_spec", lambda _: None)
    monkeypatch.setattr("profkit.capture.doctor._devices", lambda: devices)
    monkeypatch.setattr("profkit.capture.doctor.find", lambda name: Tool(f"/x/{name}", (2025, 3)))
    data = json.loads(profkit_cli("doctor", "--format", "json").stdout)
    schema("doctor").validate(data)
    assert data["has_gpu"] is None
    gpu = data["checks"][0]
    assert gpu["state"].startswith("unknown: nvidia-ml-py is not installed")
    assert gpu["remedy"] == "pip install nvidia-ml-py"
    assert ("/dev/nvidia0" in gpu["state"]) or not devices
    assert "No GPU here" not in profkit_cli("doctor").stdout
    profkit_cli("doctor", "--require-gpu", status=4)
