"""Accuracy of findings on the recorded pairs, and pairs from elsewhere."""

from __future__ import annotations

import json
import math
import re
import shutil
from dataclasses import fields as dc_fields
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from msgspec import structs
from typer.testing import Result

import profkit
from kernels.accuracy_page import accuracy_page
from kernels.pack import pack
from profkit.commands.groups import Advice
from profkit.commands.reading import judge_pairs
from profkit.core.typed_file import encode
from profkit.rules.calibration import Calibration
from profkit.rules.checklist import Checklist
from profkit.rules.memory import Memory, shipped_memory
from profkit.rules.samples import CATEGORIES
from profkit.score.score import (
    PairScore,
    judge,
    ncu_categories,
    read_pair,
    score,
    withheld,
)
from profkit.score.view import score_document
from profkit.ui.markdown import document_markdown
from tests.analysis.test_views import schema
from tests.conftest import NIGHTLY, ROOT, Cli
from tests.examined_pairs import JUDGED, PAIRS, examined, examined_applications

JUDGES = ("ncu", "no_gain")


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process for pairs of their own would import all of it, and read the same report."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})


@cache
def judged() -> tuple[PairScore, ...]:
    """The recorded pairs, scored; by day a third of them."""
    scored = (examined(name).score for name in JUDGED)
    return tuple(structs.replace(each, set="h200") for each in scored if each)


@cache
def recorded() -> dict[str, Any]:
    """The score of the recorded pairs."""
    data: dict[str, Any] = json.loads(encode(score(judged()), dense=False))
    schema("score").validate(data)
    return data


def document(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.stderr
    data: dict[str, Any] = json.loads(result.stdout)
    schema("score").validate(data)
    return data


def test_the_verb_judges_recorded_pairs_as_they_were_judged_here() -> None:
    names = ("control_fma", "stray_double")  # the work of both is declared in their definition
    advice = Advice(blamed=0)
    scored, failures = judge_pairs([PAIRS / name for name in names], advice)
    assert not failures
    assert [pair.set for pair in scored] == list(names)
    alone = [structs.replace(pair, set="") for pair in scored]
    assert repr(alone) == repr([examined(name).score for name in names])  # NaN is not NaN


def test_the_analysis_without_counters_agrees_with_the_full_one_on_half_of_the_pairs() -> None:
    blind = recorded()["without_counters"]
    assert blind["pairs"] >= 0.9 * len(JUDGED)
    assert blind["agree"] >= 0.5
    assert blind["near"] >= 0.8


def test_no_fix_gained_more_than_the_headroom_by_declared_work() -> None:
    blind = recorded()["without_counters"]
    assert blind["fixes"] >= 0.9 * len(JUDGED)
    assert blind["exceeds"] == []
    assert blind["within_fixed"] >= 0.78
    assert blind["typical"] < 3


def test_declared_flop_are_those_that_fixed_kernels_do() -> None:
    """Formulas by hand against ncu's counters; off is what the functions and branches take."""
    rows = {pair["name"]: pair["without_counters"] for pair in recorded()["pairs"]}
    off = {
        name
        for name, row in rows.items()
        if row["flop"] and row["counted_flop"]
        if not 0.8 <= row["flop"] / row["counted_flop"] <= 1.25
    }
    assert sum(row["flop"] is not None for row in rows.values()) >= 0.3 * len(JUDGED)
    assert off == set(JUDGED) & {
        "centroid_atomics",  # the fix multiplies by one-hot rows
        "correlation_half_warp_rows",  # the fix computes sums of neighbors anew
        "dipole_survey_waves",  # powers and quotients
        "joint_chain",  # sines and cosines
        "potential_in_shared",  # reciprocal roots; differences anew for each point
        "rounding_by_conversion",  # the fix rounds by additions
    }


def test_the_recorded_pairs_meet_the_accuracy_goals() -> None:
    summary = recorded()["summary"]
    assert summary["defects"] >= 0.8 * len(JUDGED)
    assert summary["top1"] >= 0.65
    assert summary["top3"] >= 0.7
    for other in JUDGES:
        assert summary["mean_error"] < summary[other]["mean_error"]
        assert summary["factor"] < summary[other]["factor"]
    controls = [pair for pair in recorded()["pairs"] if pair["category"] is None]
    assert len(controls) >= 5
    assert all(pair["alarms"] == [] for pair in controls)


def test_rows_sum_up() -> None:
    data = recorded()
    defects = [pair for pair in data["pairs"] if pair["category"] and pair["kind"] != "no_gain"]
    parts = [(data["summary"], defects), (data["sets"]["h200"], defects)]
    parts += [
        (data["kinds"][kind], [pair for pair in defects if pair["kind"] == kind])
        for kind in ("defect", "several_limits")
        if kind in data["kinds"]
    ]
    for figures, rows in parts:
        assert figures["defects"] == len(rows)
        assert figures["mean_error"] == pytest.approx(mean(row["error"] for row in rows))
        logs = [abs(math.log(row["estimated"] / row["achieved"])) for row in rows]
        assert figures["factor"] == pytest.approx(math.exp(mean(logs)))
        gained = [row for row in rows if row["achieved"] >= 1.05]
        assert figures["top1"] == pytest.approx(mean(row["rank"] == 1 for row in gained))
        assert figures["related1"] == figures["top1"]  # no pair here has related categories
        alone = mean(row["by_estimates"]["rank"] == 1 for row in gained)
        assert figures["change"]["mean"] == pytest.approx(figures["top1"] - alone)
        assert figures["by_estimates"]["top1"] == pytest.approx(alone)
        ncu = [row["ncu"]["rank"] or 9 for row in gained]
        assert figures["ncu"]["top3"] == pytest.approx(mean(rank <= 3 for rank in ncu))
        spans = [row["range"] or [1, 1.02] for row in rows]  # what saves less is not reported
        held = [
            low <= row["achieved"] <= high for row, (low, high) in zip(rows, spans, strict=True)
        ]
        assert figures["coverage"] == pytest.approx(mean(held))
        assert figures["no_gain"]["top1"] == 0
    for row in defects:
        assert row["error"] == pytest.approx(abs(row["estimated"] / row["achieved"] - 1))
        assert row["measured"] == "timed"


def test_the_page_is_what_the_recorded_pairs_say() -> None:
    page = (ROOT / "docs" / "reference" / "accuracy.md").read_text(encoding="utf-8")
    result = score(judged(), examined_applications())
    shown = document_markdown(score_document(result, complete=True))
    made = accuracy_page(shown)
    if not NIGHTLY:  # the rows of those that are judged, and all applications
        rows = made[made.index("### Pairs") :].splitlines()
        assert len(rows) > len(JUDGED)
        assert set(rows) <= set(page.splitlines()), "run `make docs`"
        return
    assert made == page, "run `make docs`"


def test_ncu_rules_stand_for_categories_that_there_are() -> None:
    for told in ncu_categories().values():
        assert set(told.values() if isinstance(told, dict) else [told]) <= set(CATEGORIES)


def a_pair(folder: Path, about: str, latency: object = None, *, after: bool = True) -> Path:
    """A pair of others' making: `transpose_conflicts`, with what they say of it."""
    folder.mkdir(parents=True)
    sides = ("before", "after") if after else ("before",)
    for side in sides:
        shutil.copy(PAIRS / "transpose_conflicts" / f"{side}.ncu-repz", folder)
    (folder / "pair.yaml").write_text(about, encoding="utf-8")
    if latency is not None:
        (folder / "latency.json").write_text(json.dumps(latency), encoding="utf-8")
    return folder


def timed(**samples: list[float]) -> dict[str, object]:
    series = [
        {"label": label, "blocks": [{"samples": told, "turn": turn}]}
        for turn, (label, told) in enumerate(samples.items())
    ]
    return {"schema": "profkit.time/1", "series": series}


DEFECT = "category: shared_bank_conflicts"


@pytest.mark.usefixtures("in_this_process")
def test_pairs_of_other_forms(profkit_cli: Cli, tmp_path: Path) -> None:
    forms: dict[str, object] = {
        "numbers": {"before": 3, "after": 1.5},
        "samples": {"before": [3, 5, 4], "after": [2.0]},
        "medians": {"before": {"median": 8.0}, "after": {"median": 4}},
        "units": {"before": {"median_ms": 2}, "after": {"median_us": 1000}},
        "timed": timed(before=[2e-3, 2e-3], after=[1e-3]),
    }
    for name, latency in forms.items():
        a_pair(tmp_path / name, DEFECT, latency)
    a_pair(tmp_path / "deep" / "reports", DEFECT)
    a_pair(tmp_path / "alone", DEFECT, {"before": 2, "after": 1}, after=False)
    a_pair(tmp_path / "null", "category: null", after=False)
    a_pair(tmp_path / "absent", "what: nothing\ncontrol: true", after=False)
    a_pair(tmp_path / "control", f"{DEFECT}\ncontrol: true")
    data = document(profkit_cli("rules", "score", "--pairs", tmp_path, "--format", "json"))
    rows = {row["name"]: row for row in data["pairs"]}
    for name in (*forms, "alone"):
        assert rows[name]["achieved"] == pytest.approx(2)
        assert (rows[name]["measured"], rows[name]["rank"]) == ("timed", 1)
    assert rows["reports"]["measured"] == "profiled"
    assert rows["reports"]["achieved"] == pytest.approx(2.3, abs=0.1)
    for name in ("null", "absent", "control"):
        assert rows[name]["category"] is rows[name]["error"] is rows[name]["measured"] is None
        assert rows[name]["alarms"][0]["category"] == "shared_bank_conflicts"
        assert rows[name]["alarms"][0]["report"] == "before"
    assert set(data["kinds"]) == {"control", "defect"}
    assert data["summary"]["defects"] == 7
    assert data["summary"]["nothing_to_gain"] == 9
    assert data["summary"]["false_alarms"] == pytest.approx(3 / 9)
    assert data["summary"]["no_gain"]["false_alarms"] == 0
    shown = profkit_cli("rules", "score", "--pairs", tmp_path).stdout
    assert "~2.3x" in shown
    assert "1 pair without latency.json" in " ".join(shown.split())
    told = " ".join(shown.split())
    assert re.search(r"null: shared_bank_conflicts predicts 2\.\dx on a control", told)
    assert max(map(len, shown.splitlines())) <= 100


def test_controls_alone_have_no_errors_and_defects_alone_no_alarms(
    profkit_cli: Cli, tmp_path: Path
) -> None:
    a_pair(tmp_path / "one" / "a", "category:", after=False)
    a_pair(tmp_path / "two" / "b", DEFECT, {"before": 2, "after": 1}, after=False)
    controls = document(
        profkit_cli("rules", "score", "--pairs", tmp_path / "one", "--format", "json")
    )["summary"]
    assert controls["top1"] is controls["mean_error"] is controls["factor"] is None
    assert controls["false_alarms"] == 1
    defects = document(
        profkit_cli("rules", "score", "--pairs", tmp_path / "two", "--format", "json")
    )["summary"]
    assert defects["false_alarms"] is defects["ncu"]["false_alarms"] is None
    assert "n/a" in profkit_cli("rules", "score", "--pairs", tmp_path / "one").stdout


def test_a_fix_that_gains_nothing_is_no_defect(profkit_cli: Cli, tmp_path: Path) -> None:
    about = f"{DEFECT}\nkind: no_gain\nfamily: transpose"
    a_pair(tmp_path / "folklore", about, {"before": 1.0, "after": 1.0})
    data = document(profkit_cli("rules", "score", "--pairs", tmp_path, "--format", "json"))
    assert data["summary"]["defects"] == 0
    assert data["summary"]["false_alarms"] == 1
    (row,) = data["pairs"]
    assert row["family"] == "transpose"
    assert row["alarms"][0]["report"] == "before"
    assert "gained nothing" in profkit_cli("rules", "score", "--pairs", tmp_path).stdout


@pytest.mark.usefixtures("in_this_process")
def test_sets_are_scored_each_and_together(profkit_cli: Cli, tmp_path: Path) -> None:
    related = "category: instruction_overhead\nalso: [shared_bank_conflicts]\nsource: a/b"
    a_pair(tmp_path / "one" / "pairs" / "a", DEFECT, {"before": 2.3, "after": 1}, after=False)
    a_pair(tmp_path / "two" / "b", related, {"before": 2, "after": 1}, after=False)
    idle = f"{DEFECT}\nkind: no_gain"
    a_pair(tmp_path / "two" / "c", idle, {"before": 1, "after": 1}, after=False)
    sets = ("--sets", tmp_path / "one" / "pairs", "--sets", tmp_path / "two")
    data = document(profkit_cli("rules", "score", *sets, "--format", "json"))
    assert list(data["sets"]) == ["one", "two", "all sets"]
    assert data["partial"] == {}
    one, two, both = data["sets"].values()
    assert (one["top1"], one["related1"], one["coverage"]) == (1, 1, 1)
    assert (two["top1"], two["related1"], two["related3"]) == (0, 1, 1)
    assert (both["top1"], both["related1"]) == (0.5, 1)
    assert [part["promised"] for part in (one, two)] == [
        {"right": 0, "among": 0}, {"right": 1, "among": 1},
    ]  # fmt: skip
    assert sum(count["right"] for count in both["sure"].values()) == 2
    shown = profkit_cli("rules", "score", *sets).stdout
    assert shown.index("Sets") < shown.index("All pairs")
    assert max(map(len, shown.splitlines())) <= 100


def test_a_set_left_out_does_not_vote_for_itself() -> None:
    """Its publishers' fixes are withheld, and its families'; of pairs without a publisher their
    family alone."""
    memories: list[Memory] = []

    class Listening(Checklist):
        def remembering(self, memory: Memory, calibration: Calibration) -> Checklist:
            memories.append(memory)
            return super().remembering(memory, calibration)

    report = profkit.load(PAIRS / "transpose_conflicts" / "before.ncu-repz")
    fields = {each.name: getattr(report.checklist(), each.name) for each in dc_fields(Checklist)}
    own = read_pair(PAIRS / "transpose_conflicts")
    fixes = shipped_memory().fixes
    stranger = next(fix for fix in fixes if fix.source != "profkit")
    published = replace(own, family="x", source=stranger.source, set="strangers")
    sibling = replace(
        published, family=next(fix.family for fix in fixes if fix.source == "profkit")
    )
    for judged_pair, withheld_fixes in (
        (own, {fix for fix in fixes if fix.family == own.family}),
        (
            published,
            {fix for fix in fixes if fix.source == stranger.source or fix.family == sibling.family},
        ),
    ):
        memories.clear()
        apart = withheld(judged_pair, [own, published, sibling])
        judge(judged_pair, lambda _: (report.summary, Listening(**fields)), apart)
        assert withheld_fixes
        assert set(fixes) - set(memories[0].fixes) == withheld_fixes


@pytest.mark.usefixtures("in_this_process")
def test_pairs_in_an_archive_score_as_in_folders(profkit_cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "pairs"
    for name in ("one", "two"):
        a_pair(folder / name, DEFECT, {"before": 2, "after": 1})
    folder.rename(tmp_path / "set")
    folder = tmp_path / "set"
    plain = document(profkit_cli("rules", "score", "--pairs", folder, "--format", "json"))
    archived = tmp_path / "archived" / "set"
    archived.mkdir(parents=True)
    pack([folder / "one", folder / "two"], archived / "pairs.tar.zst")
    for place in (archived, archived / "pairs.tar.zst"):
        assert (
            document(profkit_cli("rules", "score", "--pairs", place, "--format", "json")) == plain
        )
    (archived / "pairs.tar.zst").write_bytes(b"damaged")
    damaged = profkit_cli("rules", "score", "--pairs", archived, status=5)
    assert "pairs.tar.zst: damaged" in damaged.stderr


@pytest.mark.parametrize(
    ("about", "latency", "told"),
    [
        (
            "category: bank_conflicts",
            {"before": 2, "after": 1},
            "unknown category 'bank_conflicts'; did you mean shared_bank_conflicts?",
        ),
        (
            f"{DEFECT}\nalso: [registers]",
            {"before": 2, "after": 1},
            "category 'registers'; did you",
        ),
        ("category: [a]", None, "category: expected str | null, got array"),
        ("control: perhaps", None, "control: expected bool, got str"),
        ("- category", None, "expected object, got array"),
        ("a: [", None, "not YAML"),
        (DEFECT, None, "neither after.ncu-rep(z) nor latency.json"),
        (DEFECT, [1, 2], "no latencies of before and after"),
        (DEFECT, {"before": 1}, "no latencies of before and after"),
        (DEFECT, {"before": 1, "after": 0}, "after: the median 0 is not a positive time"),
        (DEFECT, {"before": [], "after": 1}, "before has no samples"),
        (DEFECT, {"before": {"mean": 1}, "after": 1}, "before has no median"),
        (DEFECT, {"before": "fast", "after": 1}, "before"),
        (DEFECT, {"before": math.nan, "after": 1}, "contains NaN"),
        (DEFECT, timed(first=[1.0], after=[1.0]), "no latencies of before and after"),
        (DEFECT, {"schema": "profkit.time/1", "series": []}, "latency.json"),
    ],
)
def test_what_is_wrong_with_a_pair_is_reported(
    profkit_cli: Cli, tmp_path: Path, about: str, latency: object, told: str
) -> None:
    a_pair(tmp_path / "bad", about, latency, after=False)
    result = profkit_cli("rules", "score", "--pairs", tmp_path, status=5)
    assert result.stdout == ""
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.usefixtures("in_this_process")
def test_a_bad_pair_does_not_keep_the_others_from_being_scored(
    profkit_cli: Cli, tmp_path: Path
) -> None:
    a_pair(tmp_path / "good", DEFECT, {"before": 2, "after": 1})
    bad = a_pair(tmp_path / "bad", DEFECT, {"before": 2, "after": 1})
    (bad / "before.ncu-repz").write_bytes(b"damaged")
    (a_pair(tmp_path / "empty", DEFECT) / "before.ncu-repz").unlink()
    result = profkit_cli("rules", "score", "--pairs", tmp_path, "--format", "json", status=5)
    assert [row["name"] for row in json.loads(result.stdout)["pairs"]] == ["good"]
    assert result.stderr.count("\n") == 2
    assert "empty: no before.ncu-rep(z); record it" in result.stderr


def test_where_there_are_no_pairs(
    profkit_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nothing = profkit_cli("rules", "score", status=2)
    assert "--pairs DIR" in nothing.stderr
    profkit_cli("rules", "score", "--pairs", tmp_path, status=5)
    profkit_cli("rules", "score", "--pairs", tmp_path / "no", status=5)


def test_rules_can_be_left_out_of_a_score(profkit_cli: Cli, tmp_path: Path) -> None:
    a_pair(tmp_path / "pair", DEFECT, {"before": 2, "after": 1})
    data = document(
        profkit_cli(
            "rules", "score", "--pairs", tmp_path, "--format", "json",
            "--disable", "shared_bank_conflicts",
        )
    )  # fmt: skip
    (row,) = data["pairs"]
    assert (row["rank"], row["estimated"]) == (None, 1.0)
    profkit_cli("rules", "score", "--disable", "nothing", status=2)


def test_a_wrong_option_names_the_help_of_the_verb(profkit_cli: Cli) -> None:
    done = profkit_cli("rules", "score", "--format", "jsn", status=2)
    assert "see `profkit rules score --help`" in done.stderr
