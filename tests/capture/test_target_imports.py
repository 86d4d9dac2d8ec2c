"""What a target's functions import from beside the script, as it is timed and as it is loaded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from profkit.capture.target import load_target
from profkit.timing.latency_file import read_latencies
from tests.conftest import ROOT

pytest.importorskip("torch", reason="targets need torch")

SCRIPT = """
from profkit import Target, Variant, normal_inputs

def shifted(inputs):
    from offsets import OFFSET
    from parts.scales import SCALE
    return inputs["a"] * SCALE + OFFSET

def reference(inputs):
    import importlib
    return inputs["a"] * NUMBER + importlib.import_module("offsets").OFFSET

target = Target(
    name="shift", shapes={"n": 8}, dtype="float32",
    inputs=lambda device, seed: normal_inputs(device, seed, "float32", a=(8,)),
    reference=reference, variants=[Variant("shifted", shifted)],
)
if __name__ == "__main__":
    target.main()
"""


def target_in(folder: Path, number: int) -> Path:
    """A target whose functions import modules beside it, one of them in a package."""
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "__init__.py").touch()
    (folder / "parts" / "scales.py").write_text(f"SCALE = {number}\n")
    (folder / "offsets.py").write_text(f"OFFSET = {number}\n")
    script = folder / f"shift{number}.py"
    script.write_text(SCRIPT.replace("NUMBER", str(number)))
    return script


@pytest.fixture(autouse=True)
def own_imports() -> Iterator[None]:
    """What a test imports is of its targets, which are gone after it."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] in {"offsets", "parts"}:
            del sys.modules[name]


def run_profkit(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "profkit", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)


def test_functions_of_a_timed_target_import_from_beside_the_script(tmp_path: Path) -> None:
    script = target_in(tmp_path / "two", 2)
    kept = tmp_path / "kept.json"
    quick = ("--device", "cpu", "--warmup-ms", "1", "--samples", "20")
    done = run_profkit("time", script, *quick, "--out", kept)
    assert done.returncode == 0, done.stderr
    assert [latency.label for latency in read_latencies(kept).latencies] == ["shifted"]


def test_targets_of_one_process_have_modules_of_their_own(tmp_path: Path) -> None:
    targets = {number: load_target(target_in(tmp_path / str(number), number)) for number in (2, 3)}
    for number in (2, 3, 2):
        inputs = targets[number].inputs("cpu", 1)
        (verdict,) = targets[number].check("cpu", inputs=inputs)
        assert verdict.status.value == "passed", verdict
        result = targets[number].variants[0].run(inputs)
        assert result.tolist() == (inputs["a"] * number + number).tolist()


def test_loading_a_target_again_imports_its_modules_once(tmp_path: Path) -> None:
    script = target_in(tmp_path / "two", 2)
    (tmp_path / "two" / "offsets.py").write_text(
        "import pathlib\n"
        f"log = pathlib.Path({str(tmp_path / 'log')!r})\n"
        "log.write_text(log.read_text() + 'x' if log.exists() else 'x')\n"
        "OFFSET = 2\n"
    )
    for _ in range(2):
        load_target(script).check("cpu")
    assert (tmp_path / "log").read_text() == "x"
