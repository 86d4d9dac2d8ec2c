"""The workflows in docs/guides: they parse, their commands exist."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import typer
import yaml
from typer.core import TyperGroup

from profkit.commands.cli import app
from profkit.commands.diff import ComparisonFormat
from profkit.comparison.gates import GateKind, parse_gates
from profkit.comparison.view import MARKER
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "guides" / "continuous-integration.md").read_text(encoding="utf-8")
GUIDES = ROOT / "docs" / "guides"
JOBS = [
    yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(GUIDES.glob("ci-*.yaml"))
]
CONSOLE = re.findall(r"^\$ (profkit .*)$", PAGE, re.MULTILINE)


def steps() -> Iterator[dict[str, Any]]:
    for workflow in JOBS:
        for job in workflow["jobs"].values():
            yield from job["steps"]


def scripts() -> list[str]:
    return [step["run"] for step in steps() if "run" in step]


def commands() -> list[list[str]]:
    """The words of every profkit command of the page, variables of a step filled in."""
    found = [shlex.split(line) for line in CONSOLE]
    for step in steps():
        for line in step.get("run", "").splitlines():
            if line.strip().startswith("profkit "):
                words = shlex.split(line.removesuffix("|| true"))
                values = step.get("env", {})
                found.append([values.get(word.removeprefix("$"), word) for word in words])
    return found


def test_there_are_three_whole_workflows() -> None:
    assert len(JOBS) == 3
    for workflow in JOBS:
        # YAML 1.1 reads the key `on` as true.
        assert set(workflow) - {"concurrency"} == {"name", True, "permissions", "jobs"}
        for job in workflow["jobs"].values():
            assert {"runs-on", "timeout-minutes", "steps"} <= set(job)
    for step in steps():
        assert ("run" in step) != ("uses" in step)
        if "uses" in step:
            assert re.fullmatch(r"[a-z]+(/[a-z-]+){1,2}@v\d+", step["uses"])


def test_profkit_is_installed_from_where_it_is() -> None:
    """No package index has it: whatever is called so there is something else."""
    installs = [line for script in scripts() for line in script.splitlines() if "install" in line]
    assert len(installs) == len(JOBS)
    for line in installs:
        assert re.search(r'"profkit(\[gpu\])? @ git\+\$PROFKIT"', line), line


def test_no_script_holds_what_others_write() -> None:
    assert not [script for script in scripts() if "${{" in script]


@pytest.mark.parametrize("script", scripts())
def test_scripts_are_scripts(script: str) -> None:
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_commands_and_their_options_exist(words: list[str]) -> None:
    verbs = typer.main.get_command(app)
    assert isinstance(verbs, TyperGroup)
    verb, rest = verbs.commands[words[1]], words[2:]
    if isinstance(verb, TyperGroup):
        verb, rest = verb.commands[rest[0]], rest[1:]
    context = verb.make_context(words[1], rest)
    if "fail_on" in context.params:
        asked = context.params["fail_on"]
        gates = parse_gates([asked] if isinstance(asked, str) else asked or [])
        assert bool(gates) == bool(asked)
    assert context.params


def test_the_page_names_every_gate_and_format() -> None:
    for kind in GateKind:
        assert f"| `{kind}" in PAGE
    for written in get_args(ComparisonFormat)[1:]:
        assert f"| `{written}` |" in PAGE
    assert MARKER in PAGE
