"""The capture sets against NVIDIA's metric library and the limits on their passes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kernels.perfworks import Chip, Library, library_path, schedule
from profkit.capture.passes import Passes, count_of, passes, subject_of
from profkit.capture.sections import CAPABILITIES as CHIPS
from profkit.capture.sections import chip_of
from profkit.capture.sets import NCU_SETS, NOTHING, OWN_SETS, capture_set, passes_of
from profkit.core.compute_capability import parse_capability
from profkit.core.yaml_files import shipped_yaml

CAPABILITIES = [parse_capability(text) for text in sorted(set(CHIPS.values()))]


def listed(names: Sequence[str], capability: tuple[int, int]) -> list[str]:
    whole = sum((capture_set(name, capability) for name in names), start=NOTHING)
    return [*whole.sections, *whole.metrics]


def planned(names: Sequence[str], capability: tuple[int, int]) -> Passes:
    chip = chip_of(".".join(map(str, capability)))
    assert chip
    return passes(chip, listed(names, capability))


@pytest.mark.skipif(library_path() is None, reason="without NVIDIA's PerfWorks library")
def test_passes_are_those_that_the_library_schedules() -> None:
    path = library_path()
    assert path
    chip = Chip(Library(path), "GH100")
    for names in (["scout"], ["scout", "flop"], ["lean"], ["lean", "sampling"]):
        (hardware, groups), own = subject_of("GH100", listed(names, (9, 0)))
        count = count_of(schedule(chip, hardware, groups), own)
        assert count == sum(map(passes_of, names))


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_no_chip_is_asked_for_a_metric_that_it_lacks(capability: tuple[int, int]) -> None:
    for names in (["scout", "flop"], ["lean"]):
        assert not planned(names, capability).unknown
    assert planned(["scout"], capability).count <= 3


def test_limits_on_passes() -> None:
    assert passes_of("scout") <= 2
    assert passes_of("scout") + passes_of("flop") <= 5
    assert passes_of("lean") <= 12
    assert [passes_of(name) for name in NCU_SETS] == [38, 20, 10]  # ncu 2025.3 on an H200


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
