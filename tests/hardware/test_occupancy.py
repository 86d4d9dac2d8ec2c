"""Occupancy arithmetic against ncu's own what-if tables, and its laws."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

import profkit
from profkit.hardware.gpus import Gpu
from profkit.hardware.occupancy import (
    BlockNeeds,
    Chip,
    Limits,
    NextStep,
    blocks_by_registers,
    limiters,
    next_step,
    warps_per_block,
)
from profkit.report.action import Action
from tests.conftest import CORPUS, FULL, H200, h200

HOPPER = Chip(warps=64, blocks=32, registers=65536, shared=233_472, schedulers=4)
TABLED = [H200 / f"{name}.ncu-repz" for name in FULL] + sorted(CORPUS.glob("*.ncu-rep"))


def table(action: Action, name: str) -> dict[int, float]:
    metric = action.metric_by_name(name)
    if metric is None or not metric.instances.ids:
        return {}
    return dict(zip(metric.addresses(), metric.numbers(), strict=True))


def chip_of(gpu: Gpu) -> Chip:
    return structs.replace(gpu.chip, schedulers=4)


@cache
def loaded(path: Path) -> profkit.Report:
    return profkit.load(path)


@pytest.mark.parametrize("path", TABLED, ids=lambda path: path.stem)
def test_registers_allow_the_warps_that_ncu_says(path: Path) -> None:
    report = loaded(path)
    checked = 0
    for launch, action in zip(report.summary.launches, report._raw.actions, strict=True):
        tabled = table(action, "launch__occupancy_per_register_count")
        occupancy = launch.occupancy
        if not tabled or occupancy is None:
            continue
        others = min(
            blocks for name, blocks in occupancy.limits.blocks.items() if name != "registers"
        )
        threads = occupancy.needs.threads
        for registers in range(1, 256):
            blocks = min(blocks_by_registers(registers, threads, chip_of(launch.gpu)), others)
            assert blocks * warps_per_block(threads) == tabled[registers], (
                launch.name,
                registers,
            )
            checked += 1
    if path.suffix == ".ncu-repz":
        assert checked


def test_flash_attention_is_held_by_registers_alone() -> None:
    occupancy = h200("sdpa_s512_flash").summary.launches[0].occupancy
    assert occupancy is not None
    assert occupancy.limits.blocks["shared"] == occupancy.limits.resident
    assert occupancy.limiters == ("registers",)
    assert occupancy.step == NextStep(blocks=3, warps=12, changes={"registers": 168}, carveout=True)


@pytest.mark.parametrize("path", TABLED, ids=lambda path: path.stem)
def test_another_block_size_gives_the_warps_that_ncu_says(path: Path) -> None:
    """Where shared memory does not bind, ncu's table over block sizes is the arithmetic's own."""
    report = loaded(path)
    for launch, action in zip(report.summary.launches, report._raw.actions, strict=True):
        tabled = table(action, "launch__occupancy_per_block_size")
        occupancy = launch.occupancy
        if not tabled or occupancy is None or occupancy.needs.shared > 1024:
            continue
        chip = chip_of(launch.gpu)
        for threads in (size for size in tabled if size and size % 32 == 0):
            needs = structs.replace(occupancy.needs, threads=threads)
            blocks = {
                "registers": blocks_by_registers(needs.registers, threads, chip),
                "warps": chip.warps // warps_per_block(threads),
                "blocks": chip.blocks,
            }
            step = next_step(Limits(blocks), needs, chip)
            if step is None or "threads" not in step.changes:
                continue
            if not step.carveout:
                assert step.warps == tabled[step.changes["threads"]]
                assert step.warps > tabled[threads]


def test_full_warps_need_no_step() -> None:
    needs = BlockNeeds(threads=256, registers=16, shared=1024, shared_driver=1024, carveout=32_768)
    limits = Limits({"registers": 16, "shared": 32, "warps": 8, "blocks": 32})
    assert limiters(limits, needs, HOPPER) == ()
    assert next_step(limits, needs, HOPPER) is None


def test_small_blocks_must_grow_to_fill_the_chip() -> None:
    """132 blocks of one warp: the cap on blocks limits, not barriers or the driver's kilobyte."""
    needs = BlockNeeds(threads=32, registers=16, shared=1024, shared_driver=1024, carveout=33_792)
    limits = Limits({"registers": 128, "shared": 32, "warps": 64, "blocks": 32, "barriers": 32})
    assert limiters(limits, needs, HOPPER) == ("blocks",)
    step = next_step(limits, needs, HOPPER)
    assert step is not None
    assert (step.changes, step.warps) == ({"threads": 64}, 64)


@pytest.mark.parametrize(
    ("threads", "registers", "change"), [(384, 16, 256), (768, 16, 512), (1024, 36, 768)]
)
def test_another_block_size_fills_the_chip_where_one_can(
    threads: int, registers: int, change: int
) -> None:
    chip = HOPPER if threads < 1024 else Chip(48, 16, 65536, 102_400, 4)
    needs = BlockNeeds(threads, registers, 1024, 1024, 0)
    limits = Limits(
        {
            "registers": blocks_by_registers(registers, threads, chip),
            "warps": chip.warps // warps_per_block(threads),
            "blocks": chip.blocks,
        }
    )
    step = next_step(limits, needs, chip)
    assert step is not None
    assert step.changes == {"threads": change}
    assert step.warps == chip.warps


def test_a_grid_that_is_resident_at_once_needs_no_step() -> None:
    occupancy = h200("sdpa_s512_cudnn").summary.launches[0].occupancy
    assert occupancy is not None
    assert occupancy.limiters
    assert occupancy.resident_at_once
    assert occupancy.step is None


@given(
    registers=st.integers(1, 254), threads=st.integers(1, 1024), shared=st.integers(1, 220 * 1024)
)
def test_the_next_step_is_reached_by_its_changes_and_not_before(
    registers: int, threads: int, shared: int
) -> None:
    limits = Limits(
        {
            "registers": blocks_by_registers(registers, threads, HOPPER),
            "shared": HOPPER.shared // (shared + 1024),
            "warps": HOPPER.warps // warps_per_block(threads),
            "blocks": HOPPER.blocks,
        }
    )
    if limits.resident == 0:
        return
    needs = BlockNeeds(threads, registers, shared + 1024, 1024, HOPPER.shared)
    now = limits.resident * warps_per_block(threads)
    step = next_step(limits, needs, HOPPER)
    if not limiters(limits, needs, HOPPER):
        assert now == HOPPER.warps
    if step is None:
        return
    assert now < step.warps <= HOPPER.warps
    size = step.changes.get("threads", threads)
    held = step.changes.get("registers", registers)
    own = step.changes.get("shared", shared)
    assert blocks_by_registers(held, size, HOPPER) >= step.blocks
    assert HOPPER.shared // (own + 1024) >= step.blocks
    assert step.blocks * warps_per_block(size) >= step.warps
    if "registers" in step.changes:
        assert held < registers
        assert blocks_by_registers(held + 1, threads, HOPPER) < step.blocks
    if "shared" in step.changes:
        assert own < shared
