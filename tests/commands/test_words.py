"""What verbs print is in the field's own terms: phrases that readers could not explain are gone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from profkit.commands.cli import app
from tests.conftest import h200, recorded_report

GOLDEN = Path(__file__).parents[1] / "data" / "golden"


@pytest.mark.parametrize("phrase", ["classic rule", "equal ones", "of gathers half"])
def test_no_output_has_words_that_readers_could_not_explain(phrase: str) -> None:
    files = sorted(GOLDEN.glob("*.txt"))
    assert files
    having = [path.name for path in files if phrase in path.read_text(encoding="utf-8")]
    assert not having


def test_each_rule_has_one_heading_and_its_details_are_folded() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "rules.md").read_text("utf-8")
    headings = re.findall(r"^#+ (.*)$", page, re.M)
    assert len(headings) == len(set(headings)) > 40
    assert page.count("<details>") == len(headings) - 1


@pytest.mark.parametrize("columns", ["80", "100"])
def test_ncus_own_rules_are_folded_and_not_cut(columns: str) -> None:
    runner = CliRunner(env={"COLUMNS": columns})
    report = str(recorded_report("known"))
    text = " ".join(runner.invoke(app, ["analyze", report, "--top", "1"]).stdout.split())
    launch = h200("known").summary.groups[0].typical
    messages = [rule.message for rule in launch.rules if rule.kind == "optimization"]
    assert messages
    for message in messages:
        assert " ".join(message.split()) in text


def test_lists_and_times_fit_80_columns() -> None:
    runner = CliRunner(env={"COLUMNS": "80"})
    listed = runner.invoke(app, ["rules", "list"]).stdout.splitlines()
    folded = [line for line in listed[1:] if line.startswith(" ")]
    assert len(folded) < len(listed) / 4
    kernels = runner.invoke(app, ["analyze", str(recorded_report("known"))]).stdout
    assert "710.0 µs" in kernels
