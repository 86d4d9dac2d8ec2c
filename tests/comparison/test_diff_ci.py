"""`profkit diff` in CI: exit codes, baselines and written forms through the command."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from profkit.comparison.view import MARKER
from tests.conftest import CORPUS, H200, ROOT, Cli, needs_corpus, needs_reader

PAIR = H200 / "pairs" / "transpose_conflicts"
SLOW, FAST = PAIR / "before.ncu-repz", PAIR / "after.ncu-repz"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Baselines are of the current folder, and a test is no step of a workflow."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


def test_gates_end_with_their_code_and_are_reported(profkit_cli: Cli) -> None:
    slower = profkit_cli(
        "diff", FAST, SLOW, "--fail-on", "regression:5%", "--fail-on", "removed", status=1
    )
    (failure,) = [line for line in slower.stdout.splitlines() if line.startswith("FAILED")]
    assert failure.startswith("FAILED  regression:5%: transpose: 145.4 µs → 330.9 µs timed")
    profkit_cli("diff", SLOW, FAST, "--fail-on", "regression")
    metric = "metric:shared_conflicts > before_shared_conflicts"
    profkit_cli("diff", FAST, SLOW, "--fail-on", metric, status=1)
    wrong = profkit_cli("diff", FAST, SLOW, "--fail-on", "regresion", status=2)
    assert wrong.stdout == ""
    assert "did you mean regression?" in wrong.stderr


@pytest.mark.parametrize("gates", ["", ",", "regression:"])
def test_a_gate_that_is_not_set_is_no_gate_passed(profkit_cli: Cli, gates: str) -> None:
    done = profkit_cli("diff", FAST, SLOW, "--fail-on", gates, status=2)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "regression:5%" in line.replace("[", "").replace("]", "")


@needs_corpus
def test_failures_fit_the_terminal_and_read_as_the_body_does(profkit_cli: Cli) -> None:
    files = [
        CORPUS / f"mixes-reconstruction__{name}.ncu-rep" for name in ("full_profile", "version2")
    ]
    gates = ("--fail-on", "new-finding,removed,metric:l2_busy > 0.5")
    shown = profkit_cli("diff", *files, *gates, COLUMNS="60", status=1).stdout
    failed = shown[shown.index("FAILED") :]
    assert max(map(len, failed.splitlines())) <= 60
    told = " ".join(failed.split())
    written = json.loads(profkit_cli("diff", *files, *gates, "--format", "json", status=1).stdout)
    whys = [one["why"] for one in written["comparisons"][0]["failures"]]
    assert len(whys) == told.count("FAILED") == 5  # two have grown to findings, one is new
    for words in (
        "local_memory_instructions 8.315 G → 16.63 G",
        "1 launch before, none after, ncu duration 12.45 s",
        "condition met: l2_busy 64.9%",
    ):
        assert words in told
        assert any(why.endswith(words) for why in whys)
    for form in ("markdown", "github"):
        done = profkit_cli("diff", *files, *gates, "--format", form, status=1)
        plain = done.stdout.replace("\\u2192", "→").replace("%25", "%").replace("\\_", "_")
        for words in ("8.315 G → 16.63 G", "ncu duration 12.45 s", "l2_busy 64.9%"):
            assert words in plain, form


def test_the_name_of_a_baseline_is_checked_before_any_work(profkit_cli: Cli) -> None:
    wrong = profkit_cli("diff", SLOW, FAST, "--save-baseline", "a/b", status=2)
    assert wrong.stdout == ""
    assert "use main" in wrong.stderr


def test_a_baseline_is_kept_compared_with_and_replaced(profkit_cli: Cli, tmp_path: Path) -> None:
    absent = profkit_cli("diff", FAST, "--baseline", "main", status=5)
    assert "no baseline main" in absent.stderr
    kept = profkit_cli("diff", FAST, "--save-baseline", "main")
    assert kept.stdout == ""
    assert "baseline main of NVIDIA H200" in kept.stderr
    gates = ("--fail-on", "regression")
    worse = profkit_cli(
        "diff", SLOW, "--baseline", "main", *gates, "--save-baseline", "main", status=1
    )
    assert worse.stdout.startswith("baseline main → before.ncu-repz")
    again = profkit_cli("diff", FAST, "--baseline", "main", *gates)
    assert "SAME" in again.stdout
    (report,) = (tmp_path / ".profkit").rglob("*.ncu-repz")
    report.write_bytes(report.read_bytes()[:-1])
    damaged = profkit_cli("diff", FAST, "--baseline", "main", status=5)
    assert "changed since it was saved" in damaged.stderr


def test_one_report_alone_and_one_too_many_are_wrong_usage(profkit_cli: Cli) -> None:
    for words in ((FAST,), (FAST, SLOW, "--baseline", "main")):
        wrong = profkit_cli("diff", *words, status=2)
        assert len(wrong.stderr.splitlines()) == 1


@needs_corpus
def test_reports_of_two_gpus_exit_with_3_in_every_form(profkit_cli: Cli) -> None:
    other = CORPUS / "mixes-reconstruction__version2.ncu-rep"
    for form, said in (
        ("terminal", "INCOMPARABLE"), ("markdown", "> INCOMPARABLE"),
        ("github", "::error title=profkit%3A incomparable"), ("json", '"refused": true'),
    ):  # fmt: skip
        done = profkit_cli(
            "diff", SLOW, other, "--format", form, "--fail-on", "regression", status=3
        )
        assert said in done.stdout


@needs_reader
def test_json_of_a_folder_keeps_its_schema_with_the_blamed_lines(
    profkit_cli: Cli, tmp_path: Path
) -> None:
    for side, report in (("old", FAST), ("new", SLOW)):
        for name in ("a", "b"):
            place = tmp_path / side / name / "transpose.ncu-repz"
            place.parent.mkdir(parents=True)
            place.write_bytes(report.read_bytes())
    done = profkit_cli("diff", "old", "new", "--format", "json", "-o", "diff.json")
    assert done.stdout == ""
    data = json.loads((tmp_path / "diff.json").read_text(encoding="utf-8"))
    schema = json.loads((ROOT / "profkit/schemas/diff.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(data)
    assert [one["label"] for one in data["comparisons"]] == ["a/transpose", "b/transpose"]
    for comparison in data["comparisons"]:
        (kernel,) = comparison["kernels"]
        (new,) = [one for one in kernel["findings"] if one["category"] == "shared_bank_conflicts"]
        assert new["after"]["where"][0]["line"] == 25


@needs_reader
def test_a_step_of_a_workflow_gets_annotations_and_a_summary(
    profkit_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.chdir(ROOT)
    done = profkit_cli(
        "diff", FAST, SLOW, "--format", "github", "--fail-on", "new-finding", status=1
    )
    place = "file=kernels/pairs/transpose_conflicts/before.cu,line=25"
    assert done.stdout.startswith(f"::error {place},title=profkit%3A new-finding::")
    assert summary.read_text(encoding="utf-8").startswith(MARKER)
