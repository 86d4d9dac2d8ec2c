"""What README and the pages show is what the commands print, and their examples run."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import jsonschema
import pytest
import typer
import yaml
from typer.testing import Result

from profkit.capture.cuda_source import compile_kernel
from profkit.capture.target import load_target
from profkit.commands.cli import app
from profkit.core.errors import TargetFailed
from tests.capture.test_cuda_source import needs_nvrtc
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
TARGETS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "profile.md").read_text(encoding="utf-8"), re.DOTALL
)
PAGES = {page.name: page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md")}
SAMPLE = re.compile(
    r"`profkit ((?:analyze|diff|source) [^`]*)`\s\(parts of it(?:(?!```).)*?\n\n```text\n(.*?)```",
    re.S,
)
SAMPLES = [sample for text in (README, PAGES["source.md"]) for sample in SAMPLE.findall(text)]
LEFT_OUT = "\n...\n"


@cache
def commands() -> Any:
    return typer.main.get_command(app)


def test_there_are_samples() -> None:
    assert (README + PAGES["source.md"]).count("```text") == len(SAMPLES) > 3
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


def command_lines() -> list[str]:
    """Every profkit command that the pages and the verbs' help show, without what a shell does."""
    shown = [
        line
        for text in (README, *PAGES.values())
        for block in re.findall(r"```console\n(.*?)```", text, re.S)
        for line in re.findall(r"^\$ (profkit .*)$", block, re.M)
    ]
    for verb in verbs_below(commands()).values():
        shown += re.findall(r"^\s*(profkit .*)$", verb.help or "", re.M)
    return sorted({shlex.join(words_typed(line)) for line in shown})


def words_typed(line: str) -> list[str]:
    """The words of the first command of a line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    return list(itertools.takewhile(lambda word: not set(word) <= set("|&;<>"), lexer))


def verbs_below(group: Any, name: str = "") -> dict[str, Any]:
    """The verbs of a group, and those of its groups, by what is typed for them."""
    found: dict[str, Any] = {}
    for word, verb in group.commands.items():
        if hasattr(verb, "commands"):
            found |= verbs_below(verb, f"{name}{word} ")
        else:
            found[f"{name}{word}"] = verb
    return found


def test_commands_are_shown() -> None:
    assert len(command_lines()) > 60


@pytest.mark.parametrize("line", command_lines())
def test_a_command_that_is_shown_can_be_typed(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where it would write
    verb: Any = commands()
    words = shlex.split(line)[1:]
    while hasattr(verb, "commands") and words and words[0] in verb.commands:
        verb = verb.commands[words.pop(0)]
    if words in (["--install-completion"], ["--help"]):
        return
    assert verb.make_context(line, words).params


def test_the_verbs_without_json_are_those_that_the_readme_names() -> None:
    (sentence,) = re.findall(r"^All but (.*?) take `--format json`", README, re.M | re.S)
    verbs = verbs_below(commands())
    without = {name for name, verb in verbs.items() if "json" not in formats_of(verb)}
    named = set(re.findall(r"`([a-z ]+)`", sentence)) - {"rules score"}
    named = (named - {"rules"}) | {name for name in verbs if name.startswith("rules ")}
    assert without == named - {"rules score"}


def formats_of(verb: Any) -> tuple[object, ...]:
    hint = get_type_hints(verb.callback).get("format")
    return tuple(word for kind in (hint, *get_args(hint)) for word in (kind, *get_args(kind)))


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
