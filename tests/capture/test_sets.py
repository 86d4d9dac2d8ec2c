"""The capture sets against NVIDIA's metric library and the limits on their passes."""

from __future__ import annotations

import pytest

from profkit.capture.sets import NCU_SETS, OWN_SETS, capture_set, passes_of
from profkit.core.yaml_files import shipped_yaml

CAPABILITIES = [(7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0), (12, 1)]


def test_limits_on_passes() -> None:
    assert passes_of("scout") <= 2
    assert passes_of("scout") + passes_of("flop") <= 5
    assert passes_of("lean") <= 12
    assert [passes_of(name) for name in NCU_SETS] == [38, 20, 10]  # ncu 2025.3 on an H200
    assert passes_of("mine.txt") == passes_of("full")


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_sets_grow(capability: tuple[int, int]) -> None:
    scout, lean = (capture_set(name, capability) for name in OWN_SETS)
    assert set(scout.metrics) < set(lean.metrics)
    assert set(capture_set("lean").metrics) < set(lean.metrics)


def test_of_ranges_counters_take_the_place_of_what_ncu_counts_by_instruction() -> None:
    lean, ranges = (capture_set("lean", (9, 0), by_instruction=each) for each in (True, False))
    assert set(lean.sections) - set(ranges.sections) == {"InstructionStats", "SourceCounters"}
    tensor = {"sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum"}
    assert tensor <= set(ranges.metrics) - set(lean.metrics)
    assert lean.words.count("--section") == len(lean.sections)


def test_every_group_is_used() -> None:
    data = shipped_yaml("profkit.capture", "sets.yaml")
    used = {group for row in data["sets"].values() for group in row.get("groups", ())}
    assert used == set(data["groups"])
