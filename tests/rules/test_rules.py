"""Rules as data: faults of a file are reported with their line, and the shipped ones are valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.errors import BadInput
from profkit.report.catalog import catalog
from profkit.report.resources import RESOURCES
from profkit.rules.rule_file import (
    CONTEXT,
    Action,
    BadRules,
    check_rules,
    shipped,
    shipped_rules,
    with_own,
)
from profkit.rules.samples import APPLICATION, CATEGORIES, SAVINGS
from profkit.timeline import region

GOOD = """\
rules:
- name: own
  category: dram_bandwidth
  title: A title
  explanation: An explanation.
  when:
    - dram_busy > 0.5
  relieves:
    dram_busy: 0.5
  confidence: low
  blame: samples
  evidence: [l2_busy]
  actions:
    - text: Do this.
      since: 9.0
  verify: [dram_busy falls]
"""
MATCHED = (
    GOOD.replace("dram_busy > 0.5", "matched > 0.1 and linked_share > 0.5")
    + """\
  match:
    - stall: [long_scoreboard]
      producer: ["LDG*", "LD.*"]
      in_loop: true
    - line: ["*expf(*"]
"""
)


def faults(tmp_path: Path, text: str) -> list[tuple[int, str]]:
    file = tmp_path / "own.yaml"
    file.write_text(text, encoding="utf-8")
    return [(fault.line, fault.message) for fault in check_rules(file)[1]]


def test_a_good_file_has_no_fault(tmp_path: Path) -> None:
    assert faults(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("right", "wrong", "line", "told"),
    [
        ("category: dram_bandwidth", "category: dram_bandwith", 3, "did you mean dram_bandwidth?"),
        ("name: own", "name: My Rule", 2, "name: expected str matching regex"),
        ("title: A title", "titel: A title", 4, "unknown key 'titel'; did you mean title?"),
        ("title: A title", "titel: A title", 2, "missing key 'title'"),
        ("title: A title", "title: [A, title]", 4, "title: expected str, got array"),
        ("title: A title", 'title: ""', 4, "title: expected str of length >= 1"),
        ("dram_busy > 0.5", "dram_busi > 0.5", 7, "unknown quantity 'dram_busi'; did you mean"),
        ("dram_busy > 0.5", "dram_busy >", 7, "invalid expression: 'dram_busy >'"),
        ("dram_busy > 0.5", "dram_busy", 7, "not a condition"),
        ("dram_busy > 0.5", "dram_busy > 0.5 and l2_busy", 7, "not a condition"),
        ("dram_busy > 0.5", "open('x') > 0", 7, "not allowed in an expression: \"open('x')\""),
        (
            "dram_busy > 0.5",
            "min(dram_busy) > 0",
            7,
            "not allowed in an expression: 'min(dram_busy)'",
        ),
        ("    dram_busy: 0.5", "    dram_bussy: 0.5", 9, "unknown resource 'dram_bussy'; did you"),
        ("    dram_busy: 0.5", "    dram_busy: 1 -", 9, "invalid expression"),
        ("    dram_busy: 0.5", "    dram_busy: [1]", 9, "expected float | str, got array"),
        (
            "confidence: low",
            "confidence: lo",
            10,
            "confidence: invalid enum value 'lo'; did you mean low?",
        ),
        ("blame: samples", "blame: sample", 11, "unknown line quantity 'sample'; did you mean"),
        ("evidence: [l2_busy]", "evidence: [l2_buzy]", 12, "unknown quantity 'l2_buzy'"),
        ("evidence: [l2_busy]", "evidence: [l2_busy", 13, "expected"),
        (
            "    - text: Do this.",
            "    - txet: Do this.",
            14,
            "unknown field txet; did you mean text?",
        ),
        ("since: 9.0", "since: nine", 15, "expected str matching regex"),
        ("since: 9.0", "since: 0x9", 15, "invalid number"),
        ("verify: [dram_busy falls]", "verify: []", 16, "verify: expected array of length >= 1"),
        ("verify: [dram_busy falls]", "title: again", 16, "duplicate key 'title'"),
        ("rules:", "rule:", 1, "expected `rules:` with a list"),
        (
            "rules:\n- name: own",
            "rules:\n- own\n- name: own",
            2,
            "expected a rule (a mapping), got 'own'",
        ),
    ],
)
def test_a_fault_has_its_line_and_the_nearest_name(
    tmp_path: Path, right: str, wrong: str, line: int, told: str
) -> None:
    assert right in GOOD
    found = faults(tmp_path, GOOD.replace(right, wrong))
    assert any(at == line and told in message for at, message in found), found


@pytest.mark.parametrize(
    ("right", "wrong", "line", "told"),
    [
        (
            "[long_scoreboard]",
            "[long_scorebord]",
            18,
            "unknown stall reason 'long_scorebord'; did you mean long_sc",
        ),
        (
            "      producer:",
            "      produces:",
            18,
            "unknown field produces; did you mean producer?",
        ),
        ('["LDG*", "LD.*"]', "LDG*", 19, "expected array, got str"),
        ('["LDG*", "LD.*"]', f"['{'*a' * 51}']", 19, "length <= 100"),
        ('["*expf(*"]', "[]", 21, "length >= 1"),
        (
            "linked_share",
            "linked_shore",
            7,
            "unknown quantity 'linked_shore'; did you mean linked_share?",
        ),
        ("blame: samples", "blame: awaited_scoreboard", 11, "unknown line quantity"),
        (MATCHED[MATCHED.index("  match:") :], "", 2, "'matched' requires `match`"),
    ],
)
def test_a_fault_of_a_match_has_its_line(
    tmp_path: Path, right: str, wrong: str, line: int, told: str
) -> None:
    assert faults(tmp_path, MATCHED) == []
    assert right in MATCHED
    found = faults(tmp_path, MATCHED.replace(right, wrong))
    assert any(at == line and told in message for at, message in found), found


def test_all_faults_are_reported_in_the_order_of_lines(tmp_path: Path) -> None:
    wrong = GOOD.replace("dram_busy > 0.5", "x > 1").replace("samples", "y").replace("[l2", "[z")
    assert [line for line, _ in faults(tmp_path, wrong)] == [7, 11, 12]


def test_a_wrong_value_lists_the_valid_ones(tmp_path: Path) -> None:
    (_, message) = faults(tmp_path, GOOD.replace("confidence: low", "confidence: none"))[0]
    assert message.endswith("valid: high, medium, low")
    (_, message) = faults(tmp_path, GOOD.replace("category: dram_", "category: drum_"))[0]
    assert all(category in message for category in CATEGORIES)


def test_faults_of_form_hide_no_others(tmp_path: Path) -> None:
    wrong = (
        GOOD.replace("    - dram_busy > 0.5", "    - [1]\n    - dram_busi > 1\n    - null")
        .replace("    dram_busy: 0.5", "    dram_busy: [1]\n    l2_busi: 1 -")
        .replace("[l2_busy]", "[2, l2_buzy]")
    )
    assert [line for line, _ in faults(tmp_path, wrong)] == [7, 8, 9, 11, 12, 12, 15, 15]


@pytest.mark.parametrize("text", ["", "- a", "rules: {}", "rules: 1", "rules: &a [*a]", "\t"])
def test_what_is_no_rules_file_is_one_fault(tmp_path: Path, text: str) -> None:
    assert len(faults(tmp_path, text)) == 1


def test_a_name_stands_once_in_all_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(GOOD, encoding="utf-8")
    (fault,) = check_rules(tmp_path)[1]
    assert str(fault).endswith("b.yaml:2: duplicate rule name 'own', first in a.yaml:2")


def test_own_rules_join_the_shipped_ones_and_replace_those_of_their_name(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(GOOD, encoding="utf-8")
    assert len(with_own(file)) == len(shipped_rules()) + 1
    file.write_text(GOOD.replace("name: own", f"name: {shipped_rules()[0].name}"))
    replaced = with_own(file)
    assert len(replaced) == len(shipped_rules())
    assert replaced[0].title == "A title"


def test_bad_rules_are_refused_with_the_first_fault(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(GOOD.replace("dram_busy", "dram"), encoding="utf-8")
    with pytest.raises(BadRules, match=r"own.yaml:7: .*\(and 1 more\)"):
        with_own(file)
    with pytest.raises(BadInput, match="No such file"):
        with_own(tmp_path / "no.yaml")
    file.unlink()
    with pytest.raises(BadInput, match=r"no \.yaml file"):
        with_own(tmp_path)


def test_the_shipped_rules_are_right() -> None:
    """They are read without validation: this is it."""
    found, wrong = check_rules(shipped())
    assert list(map(str, wrong)) == []
    assert [rule.name for rule in found] == [rule.name for rule in shipped_rules()]


def test_shipped_rules_name_what_there_is() -> None:
    for rule in shipped_rules():
        assert rule.category in CATEGORIES
        known: set[str] = {
            "timeline": {*region.QUANTITIES},
            "application": {*APPLICATION},
            "kernel": {*catalog().quantities, *CONTEXT},
        }[rule.about]
        waits = {name for name in catalog().quantities if name.startswith("stall_")}
        of_kernel = {*RESOURCES, *waits, "warp_latency"}
        parts = {"timeline": region.PARTS, "application": SAVINGS, "kernel": of_kernel}
        assert set(rule.names) <= known
        assert set(rule.relieves) <= set(parts[rule.about])
        assert rule.actions
        assert rule.verify


def test_an_action_suits_its_architectures() -> None:
    action = Action("do", "9.0", 9.0)
    assert action.suits((9, 0))
    assert not action.suits((8, 6))
    assert not action.suits((10, 0))
    assert action.suits((0, 0))
