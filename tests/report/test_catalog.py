"""The catalog: complete, consistent, documented, and the only place with ncu's names."""

from __future__ import annotations

import ast
import re

import pytest
import yaml

from profkit.core.compute_capability import parse_range
from profkit.report.catalog import build, catalog
from tests.conftest import FULL, ROOT, export, h200

FIXED = [
    "duration",
    "dram_busy",
    "l2_busy",
    "l1_busy",
    "sm_busy",
    "tensor_busy",
    "fp64_busy",
    "xu_busy",
    "issue_busy",
    "occupancy_achieved",
    "occupancy_theoretical",
    "registers_per_thread",
    "waves",
    "threads_per_instruction",
    "dram_bytes",
    "dram_bandwidth",
    "l2_hit_rate",
    "l1_hit_rate",
    "shared_conflicts",
    "shared_conflict_share",
    "flop_fp32",
    "flop_fp64",
    "flop_tensor",
    "flop_rate",
    "stall_long_scoreboard",
    "stall_barrier",
]
UNITS = {
    "1", "s", "Hz", "B", "B/s", "B/sector", "FLOP", "FLOP/s", "FLOP/B", "op", "op/s", "cycle",
    "pass", "instruction", "instruction/cycle", "thread", "warp", "block", "register", "wave",
    "wavefront", "way", "sector", "sector/request", "request", "branch", "sample", "SM", "flag",
}  # fmt: skip
NCU_UNITS = {"1": {"%"}, "s": {"ns"}, "Hz": {"hz"}, "B": {"byte", "byte/block"}, "B/s": {"byte/s"}}


def test_the_catalog_is_large_and_holds_the_fixed_names() -> None:
    assert len(catalog().quantities) >= 120
    assert set(FIXED) <= set(catalog().quantities)


@pytest.mark.parametrize("name", list(catalog().quantities))
def test_every_entry_is_whole(name: str) -> None:
    entry = catalog().quantities[name]
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name)
    assert entry.unit in UNITS
    assert len(entry.meaning) > 12
    assert entry.meaning.endswith(".")
    assert entry.source
    assert entry.section
    assert entry.alternatives or entry.computed
    if entry.unit == "1" and "share" not in name:
        assert entry.within == (0.0, 1.0)


def test_formulas_name_quantities_or_ncu_metrics() -> None:
    known_without_underscores = {"inst_executed"}
    for name in catalog().metric_names:
        assert "__" in name or name.startswith("memory_") or name in known_without_underscores


def test_plain_metrics_have_the_unit_that_ncu_gives_them() -> None:
    for report in FULL:
        units, _ = export(report, "raw")
        for entry in catalog().quantities.values():
            for item in entry.alternatives:
                if item.formula.is_plain and item.formula.text in units:
                    given = units[item.formula.text]
                    allowed = NCU_UNITS.get(entry.unit)
                    if item.formula.text.startswith("derived__"):
                        continue
                    if allowed is not None:
                        assert given in allowed or given == "", (entry.name, given)
                    else:
                        assert given not in {"%", "ns", "hz", "byte/s"}, (entry.name, given)


def test_no_ncu_metric_name_stands_outside_the_catalog() -> None:
    pattern = re.compile(
        r"\b(dram|lts|l1tex|sm|smsp|gpu|gpc|launch|sass|derived|device|idc|profiler)__[a-z]"
    )
    for file in (ROOT / "profkit").rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert id(node) in prose or not pattern.search(node.value), f"{file}:{node.lineno}"


def test_alternatives_of_one_quantity_agree_where_a_launch_has_several() -> None:
    same_up_to_passes = 0.05
    for report in FULL:
        raw = h200(report)._raw
        values = h200(report).kernels
        columns = dict(raw.columns) | {name: values[name].to_numpy() for name in values.columns[2:]}
        long_enough = values["duration"].to_numpy() > 10e-6
        for entry in catalog().quantities.values():
            results = [
                item.formula(columns)
                for item in entry.alternatives
                if (9, 0) in item.cc
                and (not item.proxy or entry.name.startswith("stall_"))
                and not any(item.shortest for item in entry.alternatives)
                and all(name in columns for name in item.formula.names)
            ]
            for other in results[1:]:
                both = long_enough & (results[0] == results[0]) & (other == other)
                expected, slack = results[0][both], 1e-3
                if entry.name.startswith("stall_"):  # counters of passes that differ, and samples
                    slack = 0.12 * values["warp_latency"].to_numpy()[both]
                apart = abs(other[both] - expected)
                assert (apart <= slack + same_up_to_passes * abs(expected)).all(), entry.name


def test_a_wrong_entry_is_named() -> None:
    data = yaml.safe_load((ROOT / "profkit/report/catalog.yaml").read_text(encoding="utf-8"))
    data["groups"][0]["quantities"]["duration"]["formula"] = "open('x')"
    with pytest.raises(ValueError, match="catalog entry duration"):
        build(data)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("9.0", [(9, 0)], [(8, 9), (9, 1)]),
        ("8.0-8.9", [(8, 0), (8, 6), (8, 9)], [(7, 5), (9, 0)]),
        ("10.0-", [(10, 0), (12, 1)], [(9, 0)]),
    ],
)
def test_ranges_of_compute_capabilities(
    text: str, inside: list[tuple[int, int]], outside: list[tuple[int, int]]
) -> None:
    span = parse_range(text)
    assert all(cc in span for cc in inside)
    assert not any(cc in span for cc in outside)
