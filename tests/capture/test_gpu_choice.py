"""Which GPU is meant, against a stand-in for NVML: two GPUs, the second with a MIG instance."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

from profkit.capture import doctor
from profkit.capture.environment import digest, fingerprint_without_torch
from profkit.capture.gpu import VISIBLE, NoDriver, Selection, select, states
from profkit.core.errors import EnvironmentProblem
from profkit.core.fingerprint import Device
from tests.conftest import ROOT

FIRST, SECOND, MIG = "GPU-aaaa-0", "GPU-bbbb-1", "MIG-cccc-5"


@pytest.fixture(autouse=True)
def nvml(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    file = ROOT / "tests" / "stand_in" / "nvml" / "pynvml.py"
    spec = importlib.util.spec_from_file_location("pynvml", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return module


def selected(index: int | None, visible: str | None) -> Selection:
    return select(index, {} if visible is None else {VISIBLE: visible})


@pytest.mark.parametrize(
    ("index", "visible", "uuid", "exported"),
    [
        (None, None, FIRST, FIRST),
        (None, "1", SECOND, SECOND),
        (None, "1,0", SECOND, SECOND),
        (None, " GPU-bbbb ", SECOND, SECOND),
        (None, MIG, SECOND, MIG),
        (None, "MIG-GPU-bbbb-1/3/0", SECOND, "MIG-GPU-bbbb-1/3/0"),
        (0, "1", FIRST, FIRST),
        (1, None, SECOND, SECOND),
    ],
)
def test_the_gpu_that_is_looked_at_is_the_one_that_the_program_sees(
    index: int | None, visible: str | None, uuid: str, exported: str
) -> None:
    selection = selected(index, visible)
    assert selection.gpu is not None
    assert selection.gpu.uuid == uuid == selection.lock
    assert selection.variables == {"CUDA_VISIBLE_DEVICES": exported}


@pytest.mark.parametrize("visible", ["", "-1"])
def test_no_gpu_is_none(visible: str) -> None:
    selection = selected(None, visible)
    assert (selection.gpu, selection.variables) == (None, {})


def test_a_silent_driver_leaves_the_numbering_to_pci() -> None:
    assert Selection(1, None).variables == {
        "CUDA_VISIBLE_DEVICES": "1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
    assert Selection(None, "1").variables == {}
    assert [Selection(*given).lock for given in ((1, None), (None, "3,4"), (None, None))] == [
        "1",
        "3",
        "0",
    ]


@pytest.mark.parametrize(
    ("index", "visible"), [(2, None), (None, "2"), (None, "GPU-dddd"), (None, "MIG-dddd")]
)
def test_a_gpu_that_is_not_there_is_refused(index: int | None, visible: str | None) -> None:
    with pytest.raises(EnvironmentProblem, match=r"no(t a)? GPU"):
        selected(index, visible)


def test_one_lost_gpu_is_a_check_that_fails_and_the_other_can_be_used(
    nvml: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml, "LOST", "1")
    (lost,) = [check for check in doctor.diagnose(ROOT).checks if check.name == "GPU 1"]
    assert (lost.status, lost.state) == (doctor.FAILS, "GPU is lost")
    assert doctor.diagnose(ROOT).has_gpu
    assert selected(0, None).gpu is not None
    with pytest.raises(EnvironmentProblem, match=r"GPU 1 can't be reached \(GPU is lost\)"):
        selected(1, None)


def test_a_driver_that_stops_answering_is_no_driver(
    nvml: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml, "LOST", "all")
    with pytest.raises(NoDriver, match="does not answer"):
        states()
    assert not doctor.diagnose(ROOT).has_gpu


def test_a_fingerprint_without_torch_depends_on_gpu_tools_and_variables() -> None:
    tools = {"ncu": "2025.3.1"}
    base = fingerprint_without_torch(FIRST, tools, {"CUDA_LAUNCH_BLOCKING": "1", "HOME": "/x"})
    assert (base.gpu or Device()).driver == "580.1"
    assert base.variables == {"CUDA_LAUNCH_BLOCKING": "1"}
    others = [
        fingerprint_without_torch(SECOND, tools, {"CUDA_LAUNCH_BLOCKING": "1"}),
        fingerprint_without_torch(FIRST, {"ncu": "2026.1.0"}, {"CUDA_LAUNCH_BLOCKING": "1"}),
        fingerprint_without_torch(FIRST, tools, {}),
        fingerprint_without_torch(None, tools, {"CUDA_LAUNCH_BLOCKING": "1"}),
    ]
    assert len({digest(one) for one in (base, *others)}) == 5
