"""Findings and the checklist through the command line, on recorded reports."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

import profkit
from profkit.rules.checklist import SHOWN, WORTH_TRYING
from profkit.rules.finding import PROMISED
from profkit.rules.finding_text import HEADING, TRYING, roofs, trying
from profkit.rules.rule_file import shipped_rules
from profkit.ui.markdown import escape
from profkit.ui.text import plural
from tests.analysis.test_views import schema
from tests.conftest import CORPUS, H200, RECORDED, ROOT, Cli, by_day, needs_corpus, needs_reader

KNOWN = H200 / "known.ncu-repz"
BASIC = H200 / "sdpa_s512_flash_set_basic.ncu-repz"
TWO_METRICS = H200 / "sdpa_s512_flash_two_metrics.ncu-repz"
RUN = H200 / "sdpa_s512"
DETAILS = "\nOccupancy\n"  # a panel of each kernel that is shown in detail


def checklist(profkit_cli: Cli, *arguments: str | Path) -> dict[str, Any]:
    result = profkit_cli("checklist", *arguments, "--format", "json")
    document: dict[str, Any] = json.loads(result.stdout)
    schema("checklist").validate(document)
    return document


# The run has the kernels of the math backend, and a timeline beside them: taken without it.
REPORTS = [H200 / f"{name}.ncu-repz" for name in RECORDED if name != "sdpa_s512_math"]
REPORTS += RUN.glob("*/*.ncu-repz")


@pytest.mark.parametrize("file", REPORTS, ids=lambda file: file.stem)
def test_json_keeps_its_schema_and_analyze_says_the_same(
    profkit_cli: Cli, tmp_path: Path, file: Path
) -> None:
    copy = Path(shutil.copy(file, tmp_path))
    document = checklist(profkit_cli, copy)
    analyzed = json.loads(profkit_cli("analyze", copy, "--format", "json").stdout)
    schema("analyze").validate(analyzed)
    items = document["checklist"]
    for key in ("conclusion", "checklist", "informative", "reachable", "not_evaluated"):
        assert analyzed[key] == document[key]
    numbers = dict.fromkeys(item["rank"] for item in items)
    assert list(numbers) == list(range(1, len(numbers) + 1))
    causes = [item for item in items if not item["facet_of"]]
    assert len({(item["rank"], item["rule"]) for item in causes}) == len(numbers)
    heads = {(item["kernel"], item["rule"], item["rank"]) for item in causes}
    for item in items:
        if item["facet_of"]:
            assert (item["kernel"], item["facet_of"], item["rank"]) in heads
    order = [(item["rank"], -item["run_speedup"]) for item in causes if not item["void_until"]]
    assert order == sorted(order)
    for item in items:
        low, high = item["range"]
        assert 1 <= low <= item["estimated_speedup"] <= high
        assert item["actions"]
        assert item["evidence"]
        assert item["promises"] == (low >= PROMISED)
    for item in document["informative"]:
        assert not item["promises"]
        assert item["rank"] is item["estimated_speedup"] is item["run_speedup"] is None
    ranks = {finding["rank"] for kernel in analyzed["kernels"] for finding in kernel["findings"]}
    assert ranks == {item["rank"] for item in items}
    for kernel in analyzed["kernels"]:
        assert all(finding["kernel"] == kernel["name"] for finding in kernel["findings"])


@needs_reader
def test_bank_conflicts_are_blamed_on_their_line_and_bounded_by_l2(profkit_cli: Cli) -> None:
    document = checklist(profkit_cli, KNOWN, "--kernel", "transpose_conflict")
    item = document["checklist"][0]
    assert item["category"] == "shared_bank_conflicts"
    assert item["where"] == [
        {"file": "known.cu", "line": 8, "instruction": None, "offset": None, "share": 1.0}
    ]
    assert item["bounded_by"] == "L2"
    assert item["bound_s"] == pytest.approx(135e-6, rel=0.01)
    assert item["range"][1] <= 2.92  # the bytes that it moves at the rate that DRAM reaches
    (told,) = [one for one in item["evidence"] if one["quantity"] == "shared_conflict_share"]
    assert told["unit"] == "1"
    assert told["value"] > 0.9


def test_findings_come_right_after_the_kernels(profkit_cli: Cli) -> None:
    shown = profkit_cli("analyze", KNOWN, "--top", "3").stdout
    assert shown.index("Kernel ") < shown.index(HEADING) < shown.index(DETAILS)
    block = shown[shown.index(HEADING) : shown.index(TRYING)]
    assert len(re.findall(r"^ \d  [\d.]+x  ", block, re.MULTILINE)) == SHOWN
    assert (
        len(re.findall(r"^ +estimated speedup +[\d.]+x \[[\d.]+, [\d,.]+\]", block, re.M)) >= SHOWN
    )
    assert max(map(len, shown.splitlines())) <= 100


def test_an_impossible_share_is_no_evidence(profkit_cli: Cli) -> None:
    shown = profkit_cli("analyze", KNOWN, "--kernel", "barrier_bound").stdout
    assert "adu_busy is 104.1%, above 100%; findings leave it out" in " ".join(shown.split())
    assert "address divergence unit" not in shown.partition("1. barrier_bound")[0]


@pytest.mark.parametrize("path", [KNOWN, RUN, BASIC], ids=lambda path: path.stem)
def test_the_overview_fits_one_screen(profkit_cli: Cli, path: Path) -> None:
    shown = profkit_cli("analyze", path).stdout
    lines = shown.splitlines()
    assert len(lines) <= 45
    assert max(len(line) for line in lines if "profkit " not in line) <= 100
    assert shown.index("Kernel ") < shown.index(HEADING)
    assert DETAILS not in shown
    # the last lines are commands on this file
    assert f"profkit checklist {path}" in shown[shown.index(HEADING) :]
    assert DETAILS in profkit_cli("analyze", path, "--kernel", ".").stdout


def test_the_overview_has_the_items_of_the_checklist(profkit_cli: Cli) -> None:
    shown = profkit_cli("analyze", RUN).stdout
    block = shown[shown.index(HEADING) : shown.index("Next")]
    numbers = re.findall(r"^ (\d)  (?:((?:[\d.]+ to )?[\d.]+x) )?", block, re.MULTILINE)
    (found,) = [profkit.load(next(RUN.glob("*/*.ncu-repz"))).checklist()]
    items = found.causes[:SHOWN]
    assert numbers == [
        (str(item.rank), "" if item.best.is_ceiling else item.gain) for item in items
    ]
    gains = re.findall(r"^ +(?:[\d.]+x \[[\d.]+, [\d.]+\]|[\d.]+ to [\d.]+x)", block, re.M)
    # the first kernel of each, and how many more there are
    assert len(gains) == sum(item.best.group is not None for item in items)
    assert trying(found.causes[SHOWN : SHOWN + 2]) in " ".join(block.split())


def test_items_are_boxes_to_tick(profkit_cli: Cli, tmp_path: Path) -> None:
    shown = profkit_cli("checklist", KNOWN, "--top", "2").stdout
    assert re.findall(r"^\[ \] (\d+)\. ", shown, re.MULTILINE) == ["1", "2"]
    after = shown[shown.index(TRYING) :]
    assert re.findall(r"^ (\d)  [\d.]+x  ", after, re.MULTILINE) == ["3", "4", "5"]
    assert max(map(len, shown.splitlines())) <= 100
    assert all(line == line.rstrip() for line in shown.splitlines())
    file = tmp_path / "checklist.md"
    done = profkit_cli("checklist", KNOWN, "--all", "--format", "markdown", "-o", file)
    assert done.stdout == ""
    text = file.read_text(encoding="utf-8")
    items = checklist(profkit_cli, KNOWN)["checklist"]
    count = len({item["rank"] for item in items})
    assert text.count("\n- [ ] ") == count
    causes = [item for item in items if not item["facet_of"]]
    assert text.count("\n  - evidence: ") >= len(causes) > count
    html = MarkdownIt("commonmark").render(text)
    assert html.count("<li>[ ] ") == count
    assert "<unnamed>" not in html


@pytest.mark.parametrize("style", ["terminal", "markdown"])
def test_small_items_are_counted_unless_all_are_wanted(profkit_cli: Cli, style: str) -> None:
    found = profkit.load(KNOWN).checklist()
    causes = [group for group in found.causes if group.rank]
    assert SHOWN < len(causes) < len([item for item in found.rule_items if item.rank])
    assert all(cause.speedup >= WORTH_TRYING for cause in causes[SHOWN:])
    pattern = r"^(?:- )?\[ \] (?:\*\*)?(\d+)\. "
    shown = profkit_cli("checklist", KNOWN, "--format", style).stdout
    assert re.findall(pattern, shown, re.MULTILINE) == [str(item.rank) for item in causes[:SHOWN]]
    assert all(cause.title in shown[shown.index(TRYING) :] for cause in causes[SHOWN:])
    small = [group for group in found.minor if group.rank]
    short = plural(len(found.minor) - len(small), "finding")
    folded = f"{len(small)} findings likely below {WORTH_TRYING}x, {short} on short kernels"
    assert folded in shown
    assert "--all" in shown
    every = profkit_cli("checklist", KNOWN, "--all", "--format", style).stdout
    listed = [str(item.rank) for item in found.rule_items if item.rank]
    assert re.findall(pattern, every, re.MULTILINE) == listed
    assert "--all" not in every


@pytest.mark.parametrize("options", [(), ("--all",)])
def test_numbers_run_on_and_counts_add_up(profkit_cli: Cli, options: tuple[str, ...]) -> None:
    """Of a run with findings that change numerics, and small ones between larger ones."""
    shown = profkit_cli("checklist", RUN, *options).stdout
    numbers = [
        int(first or second)
        for first, second in re.findall(
            r"^(?:\[ \] (\d+)\. | ?(\d+)  (?:up to )?\d)", shown, re.MULTILINE
        )
    ]
    assert numbers == list(range(1, len(numbers) + 1))
    (estimated, others) = re.findall(r"(\d+) (?:findings? with an|without)", shown)[:2]
    folded = re.search(r"^(\d+) findings? likely [^;]*, (\d+) findings? on short.*;", shown, re.M)
    small, short = map(int, folded.groups()) if folded else (0, 0)
    assert bool(folded) == (not options)
    assert len(numbers) + small == int(estimated)
    assert len(re.findall(r"^- +\w", shown, re.MULTILINE)) + short == int(others)


def test_a_roof_names_no_finding_that_is_not_shown() -> None:
    found = profkit.load(KNOWN).checklist()
    texts = [text for _, text in roofs(found, found.causes[:1])]
    named = {int(rank) for text in texts for rank in re.findall(r"see finding (\d+)", text)}
    assert texts
    assert named <= {found.causes[0].rank}
    every = [text for _, text in roofs(found, found.listed)]
    assert any("see finding" in text for text in every)


def test_pages_of_items_are_there(profkit_cli: Cli) -> None:
    page = (ROOT / "docs" / "reference" / "rules.md").read_text(encoding="utf-8")
    for item in checklist(profkit_cli, KNOWN)["checklist"]:
        file, _, anchor = item["page"].partition("#")
        assert file == "docs/reference/rules.md"
        assert f"\n## {escape(anchor)}\n" in page


def test_a_run_proves_what_is_reachable(profkit_cli: Cli) -> None:
    for arguments in (("analyze", RUN, "--top", "1"), ("checklist", RUN)):
        shown = " ".join(profkit_cli(*arguments).stdout.split())
        assert (
            "custom does the same work in 44.32 µs of GPU time: 1.12x faster than sdpa (49.86 µs)"
            in shown
        )
        assert "back to back, custom is 2.4x slower than sdpa" in shown
        assert "launch-bound: custom 120.4 µs per call" in shown
    (sdpa, *_) = checklist(profkit_cli, RUN)["reachable"]
    assert (sdpa["variant"], sdpa["best"], sdpa["measured"]) == ("sdpa", "custom", "timed")


def test_too_little_collected_says_what_to_collect(profkit_cli: Cli) -> None:
    for file in (BASIC, TWO_METRICS):
        shown = " ".join(profkit_cli("checklist", file).stdout.split())
        assert re.search(r"\d+ of 52 rules (evaluated|lack)", shown)
        assert re.search(r"\d+ of \d+ rules: need [A-Z]\w+", shown)
        assert "record with ncu --set full" in shown
        assert HEADING in profkit_cli("analyze", file).stdout
        lacking = checklist(profkit_cli, file)["not_evaluated"]
        assert all(one["missing"] for one in lacking)
    assert "need " not in profkit_cli("checklist", KNOWN).stdout


def test_rules_can_be_left_out(profkit_cli: Cli) -> None:
    whole = checklist(profkit_cli, KNOWN)
    first = whole["checklist"][0]
    for name in (first["rule"], first["category"]):
        left = checklist(profkit_cli, KNOWN, "--disable", name)
        assert left["rules"] < whole["rules"]
        assert name not in {item["rule"] for item in left["checklist"]}
    wrong = profkit_cli("analyze", KNOWN, "--disable", "bank_conflicts", status=2)
    assert "did you mean shared_bank_conflicts" in wrong.stderr


def test_own_rules_are_looked_for_too(profkit_cli: Cli, tmp_path: Path) -> None:
    pages = [
        ROOT / "docs" / name for name in ("guides/writing-rules.md", "reference/rule-files.md")
    ]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    example, *others = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    file = tmp_path / "own.yaml"
    file.write_text(example, encoding="utf-8")
    for at, other in enumerate(others):
        (tmp_path / f"other_{at}.yaml").write_text(other, encoding="utf-8")
    assert profkit_cli("rules", "check", tmp_path).stdout.startswith("3 rules, no ")
    document = checklist(profkit_cli, KNOWN, "--rules", file, "--disable", "uncoalesced_global")
    (own,) = [item for item in document["checklist"] if item["rule"] == "scattered_stores"]
    assert own["page"] is None
    assert "copy_strided" in own["kernel"]
    file.write_text(example.replace("dram_busy", "dram_bussy"), encoding="utf-8")
    for verb in ("analyze", "checklist"):
        refused = profkit_cli(verb, KNOWN, "--rules", file, status=5)
        assert refused.stderr.count("\n") == 1
        assert "did you mean dram_busy?" in refused.stderr
        assert "`profkit rules check`" in refused.stderr


@needs_reader
def test_several_reports_have_a_checklist_each(
    profkit_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})  # reports are read in this process
    several = profkit_cli("analyze", KNOWN, TWO_METRICS, "--format", "json", "--top", "1")
    data = json.loads(several.stdout)
    schema("analyze").validate(data)
    alone = checklist(profkit_cli, KNOWN)["checklist"]
    assert data["reports"][0]["checklist"] == alone
    assert data["reports"][1]["checklist"] == []
    (kernel,) = data["reports"][0]["kernels"]
    ranks = [item["rank"] for item in alone if item["kernel"] == kernel["name"]]
    assert [finding["rank"] for finding in kernel["findings"]] == ranks


def test_from_python() -> None:
    report = profkit.load(KNOWN)
    found = report.checklist()
    assert found.items[0].places
    by_kernel = [
        item for group in report.summary.groups for item in found.findings_on(group) if item.rank
    ]
    assert {id(item) for item in by_kernel} == {id(item) for item in found.items}


def test_the_rules_are_listed_and_their_page_is_theirs(profkit_cli: Cli) -> None:
    shown = profkit_cli("rules", "list").stdout
    for rule in shipped_rules():
        assert rule.name in shown
    assert max(map(len, shown.splitlines())) <= 100
    page = (ROOT / "docs" / "reference" / "rules.md").read_text(encoding="utf-8")
    assert profkit_cli("rules", "list", "--format", "markdown").stdout == page, "run `make docs`"


def test_a_rule_is_explained_on_a_report(profkit_cli: Cli) -> None:
    shown = profkit_cli("rules", "explain", "shared_bank_conflicts", "--on", KNOWN).stdout
    assert "Fires on transpose_conflict" in shown
    assert "shared_conflict_share 94.0% > 0.0%" in shown
    assert re.search(r"L1/shared memory 289\.4 µs to \d", shown)
    assert "shared_conflict_share 0.0%, not above 0.0%" in shown
    assert "shared_atomic_instructions = 0 instructions, not above 0" in " ".join(shown.split())
    assert "Assumes" not in shown  # it follows from what was counted
    for rule in shipped_rules():
        status = 0 if rule.about == "kernel" else 5
        told = profkit_cli("rules", "explain", rule.name, "--on", TWO_METRICS, status=status)
        if rule.assumes and rule.about == "kernel":
            assert f"Assumes {rule.assumes} " in " ".join(told.stdout.split())


def test_wrong_usage_of_rules(profkit_cli: Cli, tmp_path: Path) -> None:
    wrong = profkit_cli("rules", "explain", "bank_conflicts", status=2)
    assert "did you mean shared_bank_conflicts" in wrong.stderr
    profkit_cli("rules", "explain", "l2_bandwidth", "--kernel", "x", status=2)
    missing = profkit_cli("rules", "check", tmp_path / "no.yaml", status=5)
    assert "No such file" in missing.stderr


def test_faults_are_all_reported(profkit_cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("rules:\n- name: a\n- name: b\n  when: [x]\n", encoding="utf-8")
    told = profkit_cli("rules", "check", file, status=5)
    lines = told.stdout.splitlines()
    assert len(lines) > 5
    assert all(re.match(rf"{re.escape(str(file))}:[234]: ", line) for line in lines)
    assert f": {len(lines)} " in told.stderr


@needs_corpus
def test_old_architectures_and_versions(profkit_cli: Cli) -> None:
    for file in by_day(sorted(CORPUS.glob("*.ncu-rep")), 3):
        session = profkit.load(file).session
        document = checklist(profkit_cli, file)
        for item in document["checklist"]:
            assert all("/" not in (place["file"] or "") for place in item["where"])
        text = profkit_cli("checklist", file, "--format", "markdown").stdout
        assert not re.search(rf"\b{re.escape(session.host.name)}\b", text)
        profkit_cli("checklist", file)


def test_a_gain_of_picked_launches_is_said_to_be_of_them(profkit_cli: Cli) -> None:
    known = H200 / "known.ncu-repz"
    whole = profkit_cli("checklist", known).stdout
    selection = profkit_cli("checklist", known, "--kernel", "transpose_conflict").stdout
    assert "of the whole report" in whole
    assert "selected launches" not in whole
    assert "of the selected launches" in selection
    assert "2.1x  Shared-memory bank conflicts" in selection
    assert "whole report" not in selection


def test_a_proof_beyond_every_estimate_is_said_first(profkit_cli: Cli) -> None:
    for verb in ("analyze", "checklist"):
        for style in ("terminal", "markdown"):
            shown = profkit_cli(verb, RUN, "--format", style).stdout
            proof = shown.index("27x over math in GPU time: custom")
            assert proof < shown.index("Kernels in a row")
    headlined = [one["headline"] for one in checklist(profkit_cli, RUN)["reachable"]]
    assert headlined.count(True) == 1
    assert headlined[-1]
