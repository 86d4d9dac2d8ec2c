"""What README and the pages show is what the commands print, and their examples run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml
from typer.testing import Result

from profkit.capture.cuda_source import compile_kernel
from profkit.capture.target import load_target
from profkit.errors import TargetFailed
from tests.conftest import ROOT
from tests.integration.test_cuda_source import needs_nvrtc

README = (ROOT / "README.md").read_text(encoding="utf-8")
TARGETS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "profile.md").read_text(encoding="utf-8"), re.DOTALL
)
SAMPLES = re.findall(
    r"`profkit ((?:analyze|diff) [^`]*)`\s\(parts of it[^\n]*\n\n```text\n(.*?)```", README, re.S
)
LEFT_OUT = "\n...\n"


def test_there_are_samples() -> None:
    assert README.count("```text") == len(SAMPLES) > 0
    assert len(TARGETS) == 2


@pytest.mark.parametrize(("command", "sample"), SAMPLES)
def test_a_sample_is_what_the_command_prints(
    profkit_cli: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    sample: str,
) -> None:
    monkeypatch.chdir(ROOT)
    shown = profkit_cli(*command.split()).stdout
    at = 0
    for part in sample.split(LEFT_OUT):
        at = shown.find(part.rstrip("\n") + "\n", at)
        assert at >= 0, part


@pytest.mark.parametrize("source", TARGETS, ids=["first", "generic"])
def test_the_targets_of_the_page_pass_their_check_without_a_gpu(
    tmp_path: Path, source: str
) -> None:
    pytest.importorskip("torch", reason="targets need torch")
    script = tmp_path / "example.py"
    script.write_text(source, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), "--check", "--device", "cpu"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert " passed " in done.stdout


def test_the_verdict_shown_is_that_of_the_recorded_timing(
    profkit_cli: Callable[..., Result],
) -> None:
    page = (ROOT / "docs" / "time.md").read_text(encoding="utf-8")
    (sample,) = re.findall(r"```text\n(.*?)```", page, re.S)
    recorded = ROOT / "reports" / "h200" / "timing" / "flash_cudnn.json"
    shown = profkit_cli("time", "--from", recorded, "--compare", "flash,cudnn").stdout
    assert sample in shown


@needs_nvrtc
def test_the_kernel_of_the_page_compiles_and_its_error_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = tmp_path / "scale.cu"
    source.write_text(recording_block("cuda"), encoding="utf-8")
    assert compile_kernel(source, "scale", arch="sm_80", defines={"FACTOR": 2}).cubin
    with pytest.raises(TargetFailed) as error:
        compile_kernel(source, "scale", arch="sm_90a")
    assert str(error.value) == recording_block("text").rstrip("\n")


def test_the_target_of_the_page_declares_itself(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="targets need torch")
    script = tmp_path / "scale.py"
    script.write_text(recording_block("python"), encoding="utf-8")
    assert [variant.name for variant in load_target(script).variants] == ["torch", "mine"]


def test_the_pair_of_the_page_is_of_the_form_that_pairs_have() -> None:
    form = json.loads((ROOT / "kernels/pairs/pair.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(yaml.safe_load(recording_block("yaml")), form)
    page = (ROOT / "docs" / "recording.md").read_text(encoding="utf-8")
    for key in form["properties"]:
        assert f"`{key}`" in page


def recording_block(language: str) -> str:
    """The only block of a language in docs/recording.md."""
    page = (ROOT / "docs" / "recording.md").read_text(encoding="utf-8")
    (block,) = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    return str(block)
