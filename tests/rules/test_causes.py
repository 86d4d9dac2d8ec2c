"""Findings that show one cause are one item of the checklist, and what stands beside the items."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

import profkit
from profkit.report.source_lines import Place
from profkit.rules.checklist import SHOWN, Checklist, checklist
from profkit.rules.finding_text import division
from profkit.rules.rule_file import with_own
from profkit.ui.text import factor
from tests.conftest import Cli, h200, pair_report
from tests.rules.test_engine import report

Shares = Mapping[int, float]
CATEGORIES = {
    "queue": "instruction_issue",
    "stage": "l1_bandwidth",
    "barrier": "barrier_stalls",
    "double": "fp64_in_use",
    "strided": "global_access_pattern",
}
BLAMED = {
    "queue": "samples_lg_throttle",
    "stage": "shared_wavefronts",
    "barrier": "samples_barrier",
    "double": "executed_fp64",
    "strided": "global_sectors_excessive",
}
LEFT = {  # what a fix leaves of resources: the less, the better the finding
    "queue": "lsu_busy: 0.1",
    "stage": "lsu_busy: 0.2, lsu_data_busy: 0.1",
    "barrier": "texture_busy: 0.5",
    "double": "fp64_busy: 0.3, lsu_busy: 0.3",
    "strided": "lsu_busy: 0.4, l1_busy: 0.1",
}


def found(folder: Path, lines: Mapping[str, Shares | None]) -> Checklist:
    """The checklist of a kernel for rules that blame shares of lines (None: unknown places)."""
    texts = (
        f"""
- name: {name}
  category: {CATEGORIES[name]}
  title: {name}
  explanation: e
  when: ["duration > 0"]
  relieves: {{{LEFT[name]}}}
  time: {"0.9" if name == "barrier" else "1"}
  blame: {BLAMED[name]}
  actions: [mend {name}]
  verify: [v]
"""
        for name in lines
    )
    file = folder / "own.yaml"
    file.write_text("rules:\n" + "".join(texts), encoding="utf-8")
    rules = [rule for rule in with_own(file) if rule.name in lines]
    places = {
        BLAMED[name]: tuple(Place("k.cu", line, "", share) for line, share in (at or {}).items())
        for name, at in lines.items()
    }
    values = {"duration": 1e-4, "lsu_busy": 0.6, "fp64_busy": 0.1, "l1_busy": 0.3}
    return checklist(report([values]), rules, blame=lambda _, names: places[names[0]])


def causes(checklist: Checklist) -> list[list[str]]:
    """The rules of each cause, the first finding first."""
    return [
        [item.rule.name, *(facet.rule.name for facet in checklist.facets_of(item))]
        for item in checklist.items
        if not item.facet_of
    ]


def test_findings_of_the_same_lines_and_unit_are_one_cause(tmp_path: Path) -> None:
    together = found(tmp_path, {"queue": {7: 0.9, 30: 0.1}, "stage": {8: 0.6, 50: 0.4}})
    assert causes(together) == [["queue", "stage"]]
    (item,) = together.rule_items
    assert item.rank == 1
    assert [each.rank for each in together.items] == [1, 1]
    assert item.speedup == pytest.approx(together.items[0].speedup)  # nothing of a facet is added
    apart = found(tmp_path, {"queue": {7: 0.9, 30: 0.1}, "stage": {20: 0.9, 30: 0.1}})
    assert causes(apart) == [["queue"], ["stage"]]


def test_what_relieves_nothing_in_common_is_another_cause(tmp_path: Path) -> None:
    """But where a barrier lets each warp wait for all."""
    line = {7: 1.0}
    assert len(causes(found(tmp_path, {"strided": line, "double": line}))) == 2
    assert causes(found(tmp_path, {"stage": line, "barrier": line})) == [["stage", "barrier"]]
    assert len(causes(found(tmp_path, {"stage": line, "barrier": {20: 1.0}}))) == 2


def test_different_accesses_of_a_line_are_different_causes(tmp_path: Path) -> None:
    """Both relieve the LSU pipe: a transpose reads shared memory and stores to global memory."""
    line = {7: 1.0}
    assert len(causes(found(tmp_path, {"strided": line, "stage": line}))) == 2


def test_without_places_findings_are_one_cause_that_blame_the_same(tmp_path: Path) -> None:
    assert len(causes(found(tmp_path, {"queue": None, "stage": {7: 1.0}}))) == 2


def test_a_tree_of_sums_is_one_cause(profkit_cli: Cli) -> None:
    """Barriers, the shared data stage and dependent instructions in one loop of five lines."""
    path = pair_report("layer_tree_to_the_end", "before")
    seen = profkit.load(path).checklist()
    assert {"barrier_stalls", "l1_throughput"} <= set(causes(seen)[0])
    shown = profkit_cli("checklist", path).stdout
    assert len(re.findall(r"^\[ \] \d+\. ", shown, re.MULTILINE)) == 1
    assert "also seen as" in shown
    (head, *facets) = (item for item in seen.items if item.rank == 1)
    advice = " ".join(shown.split())
    assert all(facet.actions[0] in advice for facet in facets[:2])
    others = {facet.speedup_text for facet in facets} - {head.speedup_text}
    assert not any(text in shown for text in others)
    assert head.speedup_text in shown


def test_at_most_three_causes_are_shown_in_full(profkit_cli: Cli) -> None:
    shown = profkit_cli("checklist", h200("known").path).stdout
    assert len(re.findall(r"^\[ \] \d+\. ", shown, re.MULTILINE)) == SHOWN
    assert re.search(
        r"^\d+ findings likely below 1\.05x, 1 finding on short kernels; --all lists them",
        shown,
        re.MULTILINE,
    )
    shown = profkit_cli("analyze", h200("known").path, "--top", "1").stdout
    named = re.search(r"listed by\n +profkit (checklist .+ --all)$", shown, re.MULTILINE)
    assert named
    profkit_cli(*shlex.split(named[1]))


def test_the_first_lines_are_how_far_kernels_are_from_what_they_need(profkit_cli: Cli) -> None:
    checked = h200("known").checklist()
    for verb in ("checklist", "analyze"):
        shown = profkit_cli(verb, h200("known").path).stdout
        block = shown[shown.index("\nHeadroom") :][:800]
        assert "8.7x" in block
        # 1 / 8.7, and the rest of the busiest unit's floor, which is 87.3% / 0.95
        assert "needed 11% (DRAM); held to 92% by DRAM; exposed 8%" in block
        assert max(map(len, block.splitlines())) <= 100
    assert all(checked.headroom_of(item.group) for item in checked.items)


def test_a_grid_below_the_sms_stands_beside_the_ranking(profkit_cli: Cli) -> None:
    (energy,) = profkit.load(pair_report("energy_per_channel", "before")).checklist().divided
    assert energy.headroom
    assert energy.headroom.factor < 132 / 16
    assert division(energy).endswith(f"work divided: at most {factor(energy.headroom.factor)}")
    path = pair_report("autoencoder_group_norm", "before")
    seen = profkit.load(path).checklist()
    (item,) = seen.divided
    assert division(item).startswith("64 blocks, 132 SMs; same threads spread: ")
    assert division(item).endswith("work divided: 2.1x by SMs alone")  # 132 / 64
    assert item.rule.name not in {group.rule.name for group in seen.major}
    shown = profkit_cli("checklist", path).stdout
    block = shown[shown.index("The GPU is not filled") :].splitlines()[1]
    assert block == f"{item.subject}: {division(item)}"
    assert len(block) <= 100


@pytest.mark.parametrize("name", ["known", "sdpa_s512_flash"])
def test_a_first_cause_says_how_sure_it_is(name: str, profkit_cli: Cli) -> None:
    seen = h200(name).checklist()
    shown = " ".join(profkit_cli("checklist", h200(name).path).stdout.split())
    for item in seen.items:
        rival = seen.rival_of(item)
        certainty = item.similar and item.similar.certainty
        if certainty == "open" and rival and item.rank <= SHOWN:
            title = rival.title[1:].partition(" (")[0].partition(",")[0]
            assert f"certainty open between this and {rival.title[0].lower()}{title}" in shown
