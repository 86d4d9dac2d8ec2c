"""What keeps more warps from an SM, and what one more block would take.

Allocation rules (CUDA C++ Programming Guide, "Multiprocessor Level"; Nsight Compute occupancy
tables, against which the tests hold them): a warp's registers are allocated in units of 256 within
one of four sub-partitions; shared memory comes out of the SM's carve-out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

WARP = 32
_REGISTER_UNIT = 256
_SHARED_UNIT = 128
_MAX_REGISTERS = 255


@dataclass(frozen=True)
class Chip:
    """What an SM holds: warps, blocks, registers (32-bit), shared memory (bytes), schedulers."""

    warps: int
    blocks: int
    registers: int
    shared: int
    schedulers: int


@dataclass(frozen=True)
class BlockNeeds:
    """What a block takes: threads, registers a thread, bytes of shared memory in all.

    `shared_driver` is the driver's part of the shared memory, `carveout` the shared memory of an SM
    that the launch was configured with (bytes); 0 where unknown.
    """

    threads: int
    registers: int
    shared: int
    shared_driver: int
    carveout: int


@dataclass(frozen=True)
class Limits:
    """Blocks that fit on an SM by each resource; a resource that the report lacks is left out."""

    blocks: dict[str, int]

    @property
    def resident(self) -> int:
        return min(self.blocks.values())

    @property
    def limiters(self) -> tuple[str, ...]:
        """The resources that allow the fewest blocks."""
        return tuple(name for name, blocks in self.blocks.items() if blocks == self.resident)


@dataclass(frozen=True)
class NextStep:
    """One more resident block: the warps it would give and what each limiter must come down to.

    `changes` maps a limiter to the most it may take for the step: "registers" a thread, "shared"
    bytes of the kernel's own a block, "warps" threads a block; "blocks" to the threads a block must
    have at least to fill the SM. `carveout_grows` says that the shared-memory limit is that of the
    chosen carve-out: the driver picks it to fit, and a larger one holds the step.
    """

    blocks: int
    warps: int
    changes: dict[str, int]
    carveout_grows: bool


def warps_per_block(threads: int) -> int:
    return math.ceil(threads / WARP)


def blocks_by_registers(registers: int, threads: int, chip: Chip) -> int:
    """Blocks that the register file of an SM holds."""
    if registers == 0:
        return chip.blocks
    warp_registers = math.ceil(registers * WARP / _REGISTER_UNIT) * _REGISTER_UNIT
    warps = (chip.registers // chip.schedulers // warp_registers) * chip.schedulers
    return warps // warps_per_block(threads)


def next_step(limits: Limits, needs: BlockNeeds, chip: Chip) -> NextStep | None:
    """What one more block on an SM takes; None where it is full of warps or no change would do."""
    blocks = limits.resident + 1
    block_warps = warps_per_block(needs.threads)
    if limits.resident * block_warps >= chip.warps:
        return None
    by_largest_carveout = chip.shared // needs.shared if needs.shared else chip.blocks
    carveout_grows = "shared" in limits.limiters and by_largest_carveout >= blocks
    changes: dict[str, int] = {}
    for limiter in limits.limiters:
        if limiter == "shared" and carveout_grows:
            continue
        most = _most(limiter, blocks, needs, chip)
        if most is None:
            return None
        changes[limiter] = most
    if "blocks" in changes or "warps" in changes:
        return NextStep(blocks, chip.warps, changes, carveout_grows)
    return NextStep(blocks, min(blocks * block_warps, chip.warps), changes, carveout_grows)


def _most(limiter: str, blocks: int, needs: BlockNeeds, chip: Chip) -> int | None:
    match limiter:
        case "registers":
            return next(
                (
                    registers
                    for registers in range(_MAX_REGISTERS, 0, -1)
                    if blocks_by_registers(registers, needs.threads, chip) >= blocks
                ),
                None,
            )
        case "shared":
            share = chip.shared // blocks // _SHARED_UNIT * _SHARED_UNIT - needs.shared_driver
            return share if share > 0 else None
        case "warps":
            return chip.warps // blocks * WARP or None
        case "blocks":
            return math.ceil(chip.warps / chip.blocks) * WARP
        case _:
            return None
