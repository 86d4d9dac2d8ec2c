"""`profkit next` and `profkit log`: predictions, their outcomes on recorded fixes, the chain."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import profkit
from profkit.experiment.prediction import next_experiments
from tests.analysis.test_views import schema
from tests.conftest import (
    CORPUS,
    H200,
    TRACKED,
    Cli,
    needs_corpus,
    needs_reader,
    pair_report,
    recorded_report,
)


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """The runs before and after a fix, with their latencies."""
    folders = tmp_path / "before", tmp_path / "after"
    for folder in folders:
        folder.mkdir()
        report = pair_report("accurate_transcendentals", folder.name)
        shutil.copy2(report, folder / report.name)
    return folders


def outcome(cli: Cli, before: Path, after: Path) -> dict[str, Any]:
    result = cli("next", before, after, "--format", "json")
    document = json.loads(result.stdout)
    schema("experiment").validate(document)
    return dict(document["test"])


@needs_reader
def test_the_experiment_is_the_first_finding_with_what_it_moves(profkit_cli: Cli) -> None:
    before = pair_report("accurate_transcendentals", "before")
    first = json.loads(profkit_cli("next", before, "--format", "json").stdout)["proposed"][0]
    items = json.loads(profkit_cli("checklist", before, "--format", "json").stdout)
    assert first["rule"] == items["checklist"][0]["rule"]
    assert {row["quantity"]: row["rises"] for row in first["expected"]} == {
        "instructions_executed": False
    }
    text = profkit_cli("next", before).stdout
    assert "refuted if" in text
    assert "profkit next" in text


@needs_reader
def test_a_fix_that_works_holds_the_prediction_and_is_logged(
    profkit_cli: Cli, runs: tuple[Path, Path]
) -> None:
    before, after = runs
    profkit_cli("next", before)
    made = outcome(profkit_cli, before, after)
    assert made["outcome"]["verdict"] == "HELD"
    (move,) = made["outcome"]["moves"]
    assert move["before"] > 4 * move["after"]
    assert made["before"] == "../before"
    log = profkit_cli("log", after, "--format", "json")
    document = json.loads(log.stdout)
    schema("log").validate(document)
    assert [row["test"]["outcome"]["verdict"] for row in document["experiments"]] == ["HELD"]
    assert "HELD" in profkit_cli("log", after).stdout
    for view in ("terminal", "markdown"):
        assert "no experiment" in profkit_cli("log", before, "--format", view).stdout


def test_a_change_that_does_something_else_tests_nothing(
    profkit_cli: Cli, runs: tuple[Path, Path]
) -> None:
    before, _ = runs
    again = before.with_name("again")
    shutil.copytree(before, again)
    assert outcome(profkit_cli, before, again)["outcome"]["verdict"] == "NOT TESTED"


def test_a_refuted_diagnosis_is_not_proposed_of_the_renamed_kernel(
    profkit_cli: Cli, tmp_path: Path
) -> None:
    folders = tmp_path / "before", tmp_path / "after"
    for folder in folders:
        folder.mkdir()
        content = pair_report("batched_cholesky_capped", folder.name).read_bytes()
        renamed = content if folder.name == "before" else content.replace(b"cholesky", b"choleskx")
        (folder / f"{folder.name}.ncu-rep").write_bytes(renamed)
    made = outcome(profkit_cli, *folders)
    assert made["outcome"]["verdict"] == "REFUTED"
    assert made["renamed"] == {"cholesky": "choleskx"}
    for runs in (folders, folders[1:]):
        result = profkit_cli("next", *runs, "--top", 20, "--format", "json")
        rules = {row["rule"] for row in json.loads(result.stdout)["proposed"]}
        assert rules
        assert made["prediction"]["rule"] not in rules


@pytest.mark.parametrize("timed", [True, False])
def test_a_kernel_whose_work_moved_into_another_one_did_not_gain(
    profkit_cli: Cli, tmp_path: Path, timed: bool
) -> None:
    """ncu: one launch of 77.73 µs became two of 71.23 and 61.54 µs; timed, 89.2 became 135.6 µs."""
    before, after = (pair_report("bicg_two_passes", side) for side in ("after", "before"))
    if not timed:  # away from the latencies
        before, after = (Path(shutil.copy2(report, tmp_path)) for report in (before, after))
    made = outcome(profkit_cli, before, after)["outcome"]
    assert made["verdict"] == "REFUTED"
    assert made["timed"] is timed
    assert made["speedup"] == pytest.approx(
        89.2 / 135.6 if timed else 77.73 / (71.23 + 61.54), rel=0.02
    )
    assert [row["kernel"] for row in made["added"]] == ["row_products"]
    text = profkit_cli("next", before, after).stdout
    assert "became slower" in text
    assert "row_products, 61.54 µs" in text


def test_a_gain_of_a_part_of_the_call_holds(profkit_cli: Cli) -> None:
    """A kernel of a call gains 1.79x by ncu, the timed call 1.44x: what Amdahl's law leaves of the
    prediction."""
    made = outcome(
        profkit_cli, *(pair_report("neighbor_mean_features", side) for side in ("before", "after"))
    )["outcome"]
    assert (made["verdict"], made["scope"], made["timed"]) == ("HELD", "call", True)
    assert made["speedup"] == pytest.approx(1.44, rel=0.01)


@needs_reader
@pytest.mark.parametrize("name", ["known", "sdpa_s512_flash"])
def test_what_is_worth_an_experiment_is_all_there_and_nothing_else(
    profkit_cli: Cli, name: str
) -> None:
    report = recorded_report(name)
    shown = json.loads(profkit_cli("next", report, "--top", 99, "--format", "json").stdout)
    proposed = {(row["rule"], row["kernel"]): row for row in shown["proposed"]}
    untestable = {(row["rule"], row["kernel"]) for row in shown["untestable"]}
    for row in proposed.values():
        if row["likely"] is not None:
            assert min(row["likely"], row["whole"]) >= 1.02
    for finding in profkit.load(report).checklist().findings:
        gain = finding.estimate.run if finding.estimate else 1.0
        if min(gain, finding.speedup) >= 1.02 and not finding.facet_of:
            assert (finding.rule.name, finding.kernel) in {*proposed, *untestable}


@needs_reader
def test_a_finding_that_no_quantity_shows_is_listed() -> None:
    """And one of a cause whose first finding was not tried yet waits for that."""
    report = profkit.load(pair_report("reduction_conflicts", "before"))
    first = next_experiments(report, 3)
    assert [each.rule for each in first.proposed] == ["shared_bank_conflicts"]
    assert first.untestable == ()
    (kernel,) = (each.kernel for each in first.proposed)
    then = next_experiments(report, 3, {("shared_bank_conflicts", kernel)})
    assert [each.rule for each in then.untestable] == ["accumulator_in_shared_memory"]


@needs_reader
@pytest.mark.parametrize(
    ("name", "resource"), [("control_copy", "L2"), ("control_fma", "issue slots")]
)
def test_nothing_left_is_said_with_the_reason(profkit_cli: Cli, name: str, resource: str) -> None:
    """Controls: kernels at a roof without a defect."""
    report = pair_report(name, "before")
    text = " ".join(profkit_cli("next", report).stdout.split())
    assert "Stop: nothing left gains 1.02x" in text
    assert re.search(rf"at a roof .*{resource} \d\d\.\d% busy", text)
    stop = json.loads(profkit_cli("next", report, "--format", "json").stdout)["stop"]
    assert stop["roofs"][0]["busy"] > 0.9


@needs_corpus
def test_a_report_without_data_is_no_reason_to_stop(profkit_cli: Cli) -> None:
    text = profkit_cli("next", CORPUS / "MiSTIC__profileHIGGS.ncu-repz").stdout
    assert "Stop" not in text
    assert "no kernel has a duration; record with ncu --set full" in " ".join(text.split())


def test_fused_kernels_are_judged_by_the_whole_report(profkit_cli: Cli) -> None:
    before, after = (pair_report("focal_loss_eager", side) for side in ("before", "after"))
    made = outcome(profkit_cli, before, after)
    assert made["prediction"]["chain"]
    assert made["outcome"]["verdict"] == "HELD"
    launches = profkit.load(before).summary.launches
    traffic = sum(launch.get("dram_bytes") for launch in launches)
    assert len(launches) > 1
    assert made["prediction"]["expected"][0]["now"] == pytest.approx(traffic)
    assert made["outcome"]["moves"][0]["before"] == pytest.approx(traffic)


def test_a_chain_of_one_variant_makes_the_whole_report_faster_by_less() -> None:
    report = profkit.load(H200 / "sdpa_s512")
    (first, *_) = next_experiments(report, 1).proposed
    launches = report.summary.launches
    (chain,) = (
        item
        for item in report.checklist().items
        if (item.rule.name, item.kernel) == (first.rule, first.kernel)
    )
    assert chain.variant == "math"
    assert chain.estimate is not None
    total = sum(launch.duration for launch in launches)
    chained = sum(launch.duration for launch in chain.estimate.launches)
    assert first.likely == pytest.approx(
        total / (total - chained + chained / chain.estimate.likely)
    )


def test_what_is_no_run_has_no_log(profkit_cli: Cli, tmp_path: Path) -> None:
    for path in (pair_report("focal_loss_eager", "before"), tmp_path):
        result = profkit_cli("log", path, status=None)
        assert result.exit_code != 0
        assert "not a run's folder" in result.output


def test_a_run_compared_again_is_listed_once(profkit_cli: Cli, runs: tuple[Path, Path]) -> None:
    before, after = runs
    for pair, count in (((before, before), 1), ((before, after), 2), ((after, before), 2)):
        profkit_cli("next", *pair)
        result = profkit_cli("log", pair[1], "--format", "json")
        assert len(json.loads(result.stdout)["experiments"]) == count


def test_a_log_says_that_an_earlier_run_is_gone(profkit_cli: Cli, runs: tuple[Path, Path]) -> None:
    before, after = runs
    profkit_cli("next", before, after)
    before.rename(before.with_name("elsewhere"))
    document = json.loads(profkit_cli("log", after, "--format", "json").stdout)
    schema("log").validate(document)
    assert document["missing"] == str(before)
    for view in ("terminal", "markdown"):
        assert "moved or removed" in profkit_cli("log", after, "--format", view).stdout


def test_a_run_is_measured_again_as_it_was_recorded(
    profkit_cli: Cli, runs: tuple[Path, Path]
) -> None:
    before, _ = runs
    assert "measure     ncu --set full -o NEW PROGRAM" in profkit_cli("next", before).stdout
    (recorded,) = TRACKED.glob("sdpa_s512/*/manifest.json")
    manifest = json.loads(recorded.read_text(encoding="utf-8"))
    command = manifest["command"].replace("--cache-control all", "--cache-control none")
    text = json.dumps(manifest | {"command": command, "files": {}})
    (before / "manifest.json").write_text(text, encoding="utf-8")
    again = f"then profkit next {before} NEW"
    lines = " ".join(profkit_cli("next", before).stdout.split())
    assert f"measure profkit profile --cache-control none -- PROGRAM, {again}" in lines
    shutil.copy2(recorded.with_name("check.json"), before)
    lines = " ".join(profkit_cli("next", before).stdout.split())
    assert f"measure profkit profile --cache-control none TARGET, {again}" in lines
