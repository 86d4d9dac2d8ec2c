"""Occupancy limiters, and the requirements of one more resident block per SM.

Allocation rules (CUDA C++ Programming Guide, "Multiprocessor Level"; the tests compare them with
Nsight Compute's occupancy tables): a warp's registers are allocated in units of 256 within
one of four sub-partitions; shared memory comes out of the SM's carve-out.
"""

import math

from msgspec import Struct, field
from msgspec.structs import replace

from profkit.core.typed_file import Count, Model
from profkit.machine_code.operation import WARP

# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", the same from CC
# 7.0 on.
_MAX_REGISTERS = 255  # per thread
_MAX_THREADS = 1024  # per block
# Allocation granularity from CC 7.0 on, as Nsight Compute's occupancy calculator has it.
_REGISTER_UNIT = 256  # registers of a warp
_SHARED_UNIT = 128  # bytes of shared memory per block; larger on CC 7.x, where this is optimistic


class Chip(Struct, frozen=True):
    """Capacity of an SM: warps, blocks, registers (32-bit), shared memory (bytes), schedulers."""

    warps: int
    blocks: int
    registers: int
    shared: int
    schedulers: int


class BlockNeeds(Struct, frozen=True):
    """Resources of a block: threads, registers per thread, total bytes of shared memory.

    `shared_driver` is the driver's part of the shared memory, `carveout` the shared memory per SM
    configured for the launch (bytes); 0 where unknown.
    """

    threads: int
    registers: int
    shared: int
    shared_driver: int
    carveout: int


class Limits(Struct, frozen=True):
    """Blocks that fit on an SM by each resource; a resource that the report lacks is left out."""

    blocks: dict[str, int]

    @property
    def resident(self) -> int:
        return min(self.blocks.values())


class NextStep(Model, frozen=True):
    """The next higher occupancy, and its requirements.

    `blocks` and `warps` would be resident per SM. `changes` has the new upper limits: "registers"
    per thread, "shared" bytes of the kernel's own shared memory per block; or the block size
    ("threads"). `larger_carveout`: it requires a larger shared-memory carve-out than this launch
    had, which the driver configures when the blocks that fit can use it.
    """

    blocks: Count
    warps: Count
    changes: dict[str, Count]
    carveout: bool = field(name="larger_carveout")


def warps_per_block(threads: int) -> int:
    return math.ceil(threads / WARP)


def blocks_by_registers(registers: int, threads: int, chip: Chip) -> int:
    """Blocks that the register file of an SM holds."""
    if registers == 0:
        return chip.blocks
    warp_registers = math.ceil(registers * WARP / _REGISTER_UNIT) * _REGISTER_UNIT
    warps = (chip.registers // chip.schedulers // warp_registers) * chip.schedulers
    return warps // warps_per_block(threads)


def blocks_by_shared(needs: BlockNeeds, chip: Chip) -> int:
    """Blocks that an SM's shared memory holds at the largest carve-out."""
    return chip.shared // needs.shared if needs.shared else chip.blocks


def block_limits(needs: BlockNeeds, chip: Chip) -> dict[str, int]:
    """The blocks that fit on an SM by each resource."""
    return {
        "registers": blocks_by_registers(needs.registers, needs.threads, chip),
        "shared": blocks_by_shared(needs, chip),
        "warps": chip.warps // warps_per_block(needs.threads),
        "blocks": chip.blocks,
    }


def limiters(limits: Limits, needs: BlockNeeds, chip: Chip) -> tuple[str, ...]:
    """The resources that limit resident blocks; none where all warp slots are filled.

    Limits that no resource of the kernel causes are omitted: barriers at the maximum of blocks, the
    driver's own shared memory, and a carve-out that would grow if more blocks fitted.
    """
    if limits.resident * warps_per_block(needs.threads) >= chip.warps:
        return ()
    lowest = [name for name, blocks in limits.blocks.items() if blocks == limits.resident]
    if "blocks" in lowest and "barriers" in lowest:
        lowest.remove("barriers")
    others = [name for name in lowest if name != "shared"]
    own = needs.shared - needs.shared_driver
    if others and (own <= 0 or blocks_by_shared(needs, chip) > limits.resident):
        return tuple(others)
    return tuple(lowest)


def next_step(limits: Limits, needs: BlockNeeds, chip: Chip) -> NextStep | None:
    """The nearest change that makes more warps resident; None where there is none.

    Where warps or the maximum of blocks limit, another block size with the same registers per
    thread and the same shared memory per block; else fewer registers or less shared memory for one
    more block.
    """
    bounds = limiters(limits, needs, chip)
    if not bounds:
        return None
    if "warps" in bounds or "blocks" in bounds:
        return _other_block_size(limits, needs, chip)
    blocks = limits.resident + 1
    # The upper limits with one more block; of shared memory the kernel's own part.
    registers = (
        registers
        for registers in range(_MAX_REGISTERS, 0, -1)
        if blocks_by_registers(registers, needs.threads, chip) >= blocks
    )
    share = chip.shared // blocks // _SHARED_UNIT * _SHARED_UNIT - needs.shared_driver
    if "shared" in bounds and blocks_by_shared(needs, chip) >= blocks:
        bounds = tuple(name for name in bounds if name != "shared")
    most = {
        "registers": next(registers, 0) if "registers" in bounds else 0,
        "shared": max(share, 0),
    }
    changes = {name: most.get(name, 0) for name in bounds}
    if not all(changes.values()):
        return None
    warps = min(blocks * warps_per_block(needs.threads), chip.warps)
    return _step(blocks, warps, changes, needs)


def _step(blocks: int, warps: int, changes: dict[str, int], needs: BlockNeeds) -> NextStep:
    own = changes.get("shared", needs.shared - needs.shared_driver)
    carveout = blocks * (own + needs.shared_driver) > needs.carveout > 0
    return NextStep(blocks, warps, changes, carveout)


def _other_block_size(limits: Limits, needs: BlockNeeds, chip: Chip) -> NextStep | None:
    """The block size that makes the most warps resident, the nearest where several do.

    Registers per thread and shared memory per block stay the same.
    """

    def blocks(threads: int) -> int:
        return min(block_limits(replace(needs, threads=threads), chip).values())

    def warps(threads: int) -> int:
        return blocks(threads) * warps_per_block(threads)

    best = max(
        range(WARP, _MAX_THREADS + WARP, WARP),
        key=lambda threads: (warps(threads), -abs(threads - needs.threads), -threads),
    )
    if warps(best) <= limits.resident * warps_per_block(needs.threads):
        return None
    return _step(blocks(best), warps(best), {"threads": best}, needs)
