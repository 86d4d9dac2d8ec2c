"""Occupancy arithmetic against ncu's own what-if tables, and its laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.analysis.occupancy import (
    BlockNeeds,
    Chip,
    Limits,
    blocks_by_registers,
    next_step,
    warps_per_block,
)
from tests.conftest import CORPUS, FULL, H200, h200

HOPPER = Chip(warps=64, blocks=32, registers=65536, shared=233_472, schedulers=4)
TABLED = [H200 / f"{name}.ncu-repz" for name in FULL] + sorted(CORPUS.glob("*.ncu-rep"))


def table(action: object, name: str) -> dict[int, float]:
    metric = action.metric_by_name(name)  # type: ignore[attr-defined]
    if metric is None or not metric.has_correlation_ids():
        return {}
    keys = metric.correlation_ids()
    return {int(keys.value(at)): metric.value(at) for at in range(metric.num_instances())}


@pytest.mark.parametrize("path", TABLED, ids=lambda path: path.stem)
def test_registers_allow_the_warps_that_ncu_says(path: object) -> None:
    import ncu_report

    import profkit

    report = profkit.load(str(path))
    actions = [action for part in ncu_report.load_report(str(path)) for action in part]
    checked = 0
    for launch, action in zip(report.summary.launches, actions, strict=True):
        tabled = table(action, "launch__occupancy_per_register_count")
        occupancy = launch.occupancy
        if not tabled or occupancy is None:
            continue
        gpu = launch.gpu
        chip = Chip(gpu.warps_per_sm, gpu.blocks_per_sm, gpu.registers_per_sm, gpu.shared_per_sm, 4)
        others = min(
            blocks for name, blocks in occupancy.limits.blocks.items() if name != "registers"
        )
        threads = occupancy.needs.threads
        for registers in range(1, 256):
            blocks = min(blocks_by_registers(registers, threads, chip), others)
            assert blocks * warps_per_block(threads) == tabled[registers], (
                launch.name,
                registers,
            )
            checked += 1
    if path.suffix == ".ncu-repz":  # type: ignore[attr-defined]
        assert checked


def test_flash_attention_is_held_by_registers_alone() -> None:
    launch = h200("sdpa_s512_flash").summary.launches[0]
    assert launch.occupancy is not None
    assert launch.occupancy.limits.limiters == ("registers", "shared")
    step = launch.occupancy.step
    assert step is not None
    assert step.blocks == 3
    assert step.warps == 12
    assert step.changes == {"registers": 168}
    assert step.carveout_grows


def test_full_warps_need_no_step() -> None:
    needs = BlockNeeds(threads=256, registers=16, shared=1024, shared_driver=1024, carveout=32_768)
    limits = Limits({"registers": 16, "shared": 32, "warps": 8, "blocks": 32})
    assert next_step(limits, needs, HOPPER) is None


def test_small_blocks_must_grow_to_fill_the_chip() -> None:
    needs = BlockNeeds(threads=32, registers=16, shared=1024, shared_driver=1024, carveout=233_472)
    step = next_step(Limits({"registers": 128, "warps": 64, "blocks": 32}), needs, HOPPER)
    assert step is not None
    assert step.changes == {"blocks": 64}


@given(
    registers=st.integers(1, 254), threads=st.integers(1, 1024), shared=st.integers(1, 220 * 1024)
)
def test_the_next_step_is_reached_by_its_changes_and_not_before(
    registers: int, threads: int, shared: int
) -> None:
    warps = HOPPER.warps // warps_per_block(threads)
    limits = Limits(
        {
            "registers": blocks_by_registers(registers, threads, HOPPER),
            "shared": HOPPER.shared // (shared + 1024),
            "warps": warps,
            "blocks": HOPPER.blocks,
        }
    )
    if limits.resident == 0:
        return
    needs = BlockNeeds(threads, registers, shared + 1024, 1024, HOPPER.shared)
    step = next_step(limits, needs, HOPPER)
    if step is None:
        return
    assert step.blocks == limits.resident + 1
    assert step.warps <= HOPPER.warps
    if "registers" in step.changes:
        most = step.changes["registers"]
        assert most < registers
        assert blocks_by_registers(most, threads, HOPPER) >= step.blocks
        assert blocks_by_registers(most + 1, threads, HOPPER) < step.blocks
    if "shared" in step.changes:
        assert step.changes["shared"] < shared
        assert HOPPER.shared // (step.changes["shared"] + 1024) >= step.blocks
