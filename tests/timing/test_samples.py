"""What samples say of recorded kernels whose code is known."""

from __future__ import annotations

import math

import pytest

import profkit
from profkit.machine_code.blame import AWAITED, LONG
from profkit.rules.samples import NOT_SAMPLED, SHORT_KERNEL, Sampled
from tests.conftest import H200, h200, pair_report


def sampled(pair: str, side: str = "before") -> Sampled:
    report = profkit.load(pair_report(pair, side))
    told = report._sampled(report.summary.groups[0].typical)
    assert isinstance(told, Sampled)
    return told


@pytest.mark.parametrize(
    ("pair", "linked", "overlap"), [("pointer_chase", 1.0, 0.38), ("occupancy_registers", 0.95, 0)]
)
def test_walks_are_chains(pair: str, linked: float, overlap: float) -> None:
    told = sampled(pair)
    assert told.get("linked_share") == pytest.approx(linked, abs=0.05)
    assert told.get("overlap_share") == pytest.approx(overlap, abs=0.02)


@pytest.mark.parametrize(
    ("pair", "loads"),
    [
        ("loads_in_flight", 1),
        ("occupancy_block_size", 1),
        ("workload_imbalance", 3.6),
        ("grid_too_small", 8),
    ],
)
def test_independent_loads_are_no_chains(pair: str, loads: float) -> None:
    told = sampled(pair)
    assert told.get("chased_share") < 0.01
    assert told.get("loads_per_wait") == pytest.approx(loads, abs=0.1)


def test_the_chain_of_the_known_kernels_has_nothing_to_overlap() -> None:
    report = profkit.load(H200 / "known.ncu-repz", kernel="pointer_chase")
    told = report._sampled(report.summary.groups[0].typical)
    assert isinstance(told, Sampled)
    assert told.get("linked_share") > 0.99
    assert told.get("overlap_share") < 0.01


def test_three_passes_read_an_array_thrice() -> None:
    assert sampled("softmax_passes").get("reread_share") == pytest.approx(2 / 3, abs=0.01)


@pytest.mark.parametrize(
    "pair",
    [
        "control_saxpy",
        "control_stencil",
        "fuse_passes",
        "loop_order",
        "frame_order",
        "array_of_structs",
    ],
)
def test_what_is_read_once_is_no_pass(pair: str) -> None:
    assert sampled(pair).get("reread_share") == 0.0


def test_a_kernel_of_little_time_is_not_looked_at() -> None:
    report = h200("known")
    small = next(group for group in report.summary.groups if group.share < 0.15)
    assert report._sampled(small.typical) == SHORT_KERNEL


def test_a_reduced_set_has_no_samples_to_look_at() -> None:
    report = h200("sdpa_s512_flash_set_basic")
    assert report._sampled(report.summary.groups[0].typical) == NOT_SAMPLED


def test_places_are_those_of_the_load() -> None:
    (item, *_) = profkit.load(pair_report("loads_in_flight", "before")).checklist().items
    assert item.rule.blame[0] in AWAITED
    assert item.places[0].line == 17
    assert not math.isnan(sampled("loads_in_flight").causes(LONG, 1)[0].share)
