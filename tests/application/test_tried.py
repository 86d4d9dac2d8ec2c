"""A program's trial in the views of its run: causes carry what was measured of their switches."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner, Result

from profkit.application.picks_file import PICKS, PicksFile
from profkit.commands.cli import app
from profkit.core.typed_file import encode
from profkit.runs.manifest import Manifest
from profkit.trial.trial_file import TRIAL, TrialFile
from tests.application.export import write_export
from tests.application.test_answer import program
from tests.conftest import scratch, written_once
from tests.trial.simulated_program import SimulatedProgram

PROVEN = "proven 1."
TF32 = 'torch.set_float32_matmul_precision("high")'


def trial(**facts: Any) -> TrialFile:
    """One of train.py: TF32 is faster, BF16 wrong, a CUDA graph fails."""
    simulated = SimulatedProgram(
        gains={"tf32": 1.4, "bf16": 1.8},
        moved={"bf16": 0.5},
        failing={"cuda-graph": "RuntimeError: not permitted when stream is capturing"},
    )
    made = simulated.trial("tf32", "bf16", "cuda-graph", "compile")
    return replace(made, **{"gpu": "NVIDIA H200", **facts})


def _write(part: Path) -> None:
    part.mkdir()
    write_export(program(), part / "timeline.sqlite")
    (part / PICKS).write_text(encode(PicksFile(explain=0.9)))
    (part / "manifest.json").write_text(encode(Manifest(target="train", command="python")))
    (part / TRIAL).write_text(encode(trial()))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of train.py with its trial."""
    shutil.copytree(written_once(scratch() / "tried_program", _write), tmp_path / "run")
    return tmp_path / "run"


def invoke(*words: object) -> Result:
    return CliRunner().invoke(app, list(map(str, words)))


def output(*words: object) -> str:
    done = invoke(*words)
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("verb", ["timeline", "checklist", "analyze"])
def test_a_proven_cause_leads_with_what_to_write(verb: str, run: Path) -> None:
    result = json.loads(output(verb, run, "--format", "json"))
    first, *_, last = result["checklist"]
    assert first["tried"]["switches"] == ["tf32"]
    assert first["tried"]["speedup"] == pytest.approx(1.4, rel=0.02)
    assert first["actions"][0] == f"Proven, to keep it: {TF32} (lower precision)"
    assert last["tried"]["verdict"] == "changes results"
    verdicts = {" ".join(row["switches"]): row["verdict"] for row in result["tried"]}
    assert verdicts["cuda-graph"] == "failed"
    for layout in ("terminal", "markdown"):
        text = output(verb, run, "--format", layout).replace("\\_", "_")
        assert text.index(PROVEN) < text.index("Attention in several kernels")
        assert "tried: changes results" in text
        assert TF32 in text
        assert "1.8" not in text.partition("Tried on")[2].partition("cuda-graph")[0]


@pytest.mark.parametrize("verb", ["timeline", "report"])
def test_the_page_has_the_table(verb: str, run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ["--format", "html"] if verb == "timeline" else []
    output(verb, run, *words, "-o", page)
    text = page.read_text()
    assert PROVEN in text
    assert "RuntimeError: not permitted when stream is capturing" in text
    assert "python train.py" in text


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"command": ("python", "eval.py")}, "a trial of eval, not of train"),
        ({"gpu": "NVIDIA L4"}, "a trial on NVIDIA L4, not on NVIDIA H200"),
        ({"gpu": None}, "a trial on the CPU, not on NVIDIA H200"),
    ],
)
def test_the_trial_of_another_program_is_not_applied(
    facts: dict[str, Any], why: str, run: Path, tmp_path: Path
) -> None:
    (tmp_path / "other.json").write_text(encode(trial(**facts)))
    refused = invoke("timeline", run, "--tried", tmp_path / "other.json")
    assert refused.exit_code == 2
    assert f"{why}; give one of this program and GPU" in " ".join(refused.stderr.split())
    shutil.copy(tmp_path / "other.json", run / TRIAL)
    text = output("checklist", run)
    assert f"try.json is left out: {why}" in text
    assert "proven" not in text


def test_a_switch_in_vain_says_nothing_against_a_cause_with_others(run: Path) -> None:
    def causes() -> dict[str, Any]:
        rows = json.loads(output("timeline", run, "--format", "json"))["checklist"]
        return {row["rule"]: row for row in rows}

    made = trial()
    (run / TRIAL).unlink()
    untried = causes()
    rule = next(name for name, row in untried.items() if "--switch compile" in row["actions"][-1])
    (vain,) = (row for row in made.rows if row.switches == ("compile",))
    vain = replace(vain, status="changes results")
    (run / TRIAL).write_text(encode(replace(made, rows=(vain,), best=(), lower=())))
    tried = causes()[rule]
    assert tried["rank"] == untried[rule]["rank"]
    assert tried["tried"] is None
    assert tried["actions"][0].startswith("Tried compile:")
    assert "Measure it: profkit try --switch" in tried["actions"][-1]


def test_where_the_program_is_not_recorded_that_is_said(run: Path, tmp_path: Path) -> None:
    shutil.copy(run / "timeline.sqlite", tmp_path / "alone.sqlite")
    text = output("timeline", tmp_path / "alone.sqlite", "--tried", run / TRIAL)
    assert PROVEN in text
    assert "Tried on python train.py: whether alone.sqlite is of it is not recorded" in text


def test_the_next_experiment_is_to_write_what_is_proven_then_what_was_not_tried(run: Path) -> None:
    made = json.loads(output("next", run, "--format", "json"))["switches"]
    assert made["edit"]["keep"] == [TF32]
    left = [cause["title"] for cause in made["causes"]]
    assert left[0] == "Attention in several kernels"
    text = output("next", run)
    assert "Next: write 1 line, proven 1." in text
    assert TF32 in text
    assert "-- PROGRAM answers" in text
    assert "bf16: changes results" in text


def test_the_run_after_it_proposes_nothing_that_was_decided(run: Path, tmp_path: Path) -> None:
    after = tmp_path / "after"
    shutil.copytree(run, after)
    (after / TRIAL).unlink()
    made = json.loads(output("next", run, after, "--format", "json"))["switches"]
    assert made["edit"] is None
    left = {name for cause in made["causes"] for name in cause["switches"]}
    assert "sdpa-flash" in left
    assert not left & {"tf32", "bf16", "cuda-graph"}
    assert "Next experiment: profkit try --from" in output("next", run, after)
    (entry,) = json.loads(output("log", after, "--format", "json"))["experiments"]
    assert entry["subject"] == "python train.py"
    text = output("log", after)
    assert "1. TRIED: switches of python train.py" in text
    assert "with tf32" in text
    assert "changes results bf16" in text


def test_lines_to_keep_stand_once_below_the_table(run: Path) -> None:
    file = run / TRIAL
    result = json.loads(file.read_text())
    faster = next(row for row in result["rows"] if row["switches"] == ["tf32"])
    slower = {**faster, "switches": ["gc-frozen", "tf32"], "speedup": 1.2}
    file.write_text(json.dumps({**result, "rows": [slower, *result["rows"]]}))
    lines = invoke("timeline", run).stdout.splitlines()
    place = next(n for n, line in enumerate(lines) if line.split() == ["#", "tf32"])
    assert lines[place + 1].strip() == TF32
    assert sum(line.strip() == TF32 for line in lines) == 1
