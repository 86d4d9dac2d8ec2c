"""The defect/fix pairs on a GPU: both sides right, and one recorded as `make record` does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import profkit
from kernels import pair
from profkit.capture.correctness import Status
from profkit.capture.tools import find
from profkit.core.regular_file import digest
from profkit.timing.latency_file import read_latencies

torch = pytest.importorskip("torch", reason="pairs run on torch's tensors")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.mark.parametrize("name", pair.names())
def test_both_sides_give_what_the_definition_gives(name: str) -> None:
    one = pair.read(name)
    major, minor = torch.cuda.get_device_capability()
    arch = f"sm_{major}{minor}" + ("a" if major >= 9 else "")
    for verdict in one.target().check("cuda", 7):
        if arch in one.architectures[verdict.name]:
            assert verdict.status is Status.passed, verdict


@pytest.mark.skipif(find("ncu") is None, reason="ncu is not installed")
def test_a_pair_is_recorded_by_side(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kernels.record", "one_accumulator", "--out", str(tmp_path)]
    subprocess.run(command, check=True, timeout=300)
    (folder,) = tmp_path.glob("*/pairs/one_accumulator")
    files = json.loads((folder / "manifest.json").read_text())["files"]
    assert set(files) == {"before.ncu-repz", "after.ncu-repz", "latency.json", "pair.yaml"}
    assert all(digest(folder / name) == entry["sha256"] for name, entry in files.items())
    for side in pair.SIDES:
        kernels = profkit.load(folder / f"{side}.ncu-repz").kernels
        assert list(kernels["nvtx"]) == [f"one_accumulator/{side}"]
    assert [one.label for one in read_latencies(folder / "latency.json").latencies] == [*pair.SIDES]
