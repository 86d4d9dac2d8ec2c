"""What else changed between two launches of a kernel: configuration, work, traffic, behaviour."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from msgspec import field

from profkit.core.typed_file import Model
from profkit.report.catalog import catalog
from profkit.report.summary import LaunchSummary


class Sort(Enum):
    """How a quantity is compared.

    `setting`: any difference counts. `amount`: relative to the larger side, and to what it is part
    of. `share`: the difference in points.
    """

    setting = "setting"
    amount = "amount"
    share = "share"


COUNT_MOVED = 0.03
"""The share from which a count has changed: traffic and instructions of one kernel differ by as
much from one recording to the next."""
SHARE_MOVED = 0.02
"""The points (of 1) from which a share has changed."""
SMALL_PART = 0.01
"""The part of its whole below which a count is of no weight."""


@dataclass(frozen=True)
class Compared:
    """A quantity that is worth comparing; `whole` is what a count is a part of, "" for itself."""

    name: str
    sort: Sort
    whole: str = ""


class Changed(Model, frozen=True):
    """A quantity with both values, in the catalogue's unit.

    `weight` ranks changes: 1 for a setting, for a count the share of the larger side that it
    differs by times its part of the whole, for a share the points. `shown` is false for what is
    small or noise.
    """

    name: str = field(name="quantity")
    meaning: str
    unit: str
    sort: Sort
    before: float
    after: float
    weight: float
    shown: bool


class OneSided(Model, frozen=True):
    """A quantity that only one side recorded, and why the other lacks it."""

    name: str = field(name="quantity")
    side: Literal["before", "after"]
    value: float
    unit: str
    why: str


_SETTINGS = (
    "grid_size", "block_size", "cluster_size", "registers_per_thread", "shared_static",
    "shared_dynamic", "shared_carveout", "stack_size", "occupancy_theoretical",
)  # fmt: skip
_COUNTS = (
    "instructions_executed", "dram_bytes", "dram_read_bytes", "dram_write_bytes", "l2_bytes",
    "l1_bytes", "local_bytes", "flop_fp64", "flop_fp32", "flop_fp16", "flop_tensor_fp16",
    "flop_tensor_bf16", "flop_tensor_tf32", "flop_tensor_fp64", "flop_tensor_fp8",
    "flop_tensor_fp4", "ops_tensor_int8", "waves", "warps_active",
)  # fmt: skip
_PARTS = {
    "spill_instructions": "instructions_executed",
    "fp32_instructions": "instructions_executed",
    "fp64_instructions": "instructions_executed",
    "half_instructions": "instructions_executed",
    "tensor_instructions": "instructions_executed",
    "integer_instructions": "instructions_executed",
    "conversion_instructions": "instructions_executed",
    "special_instructions": "instructions_executed",
    "control_instructions": "instructions_executed",
    "barrier_instructions": "instructions_executed",
    "global_memory_instructions": "instructions_executed",
    "local_memory_instructions": "instructions_executed",
    "shared_memory_instructions": "instructions_executed",
    "shuffle_instructions": "instructions_executed",
    "global_atomic_instructions": "instructions_executed",
    "shared_atomic_instructions": "instructions_executed",
    "async_copy_bytes": "l2_bytes",
    "tma_load_bytes": "l2_bytes",
    "tma_store_bytes": "l2_bytes",
    "global_sectors_excessive": "global_sectors_needed",
    "shared_conflicts": "shared_wavefronts",
    "shared_wavefronts": "shared_wavefronts",
    "flop_tensor_hmma": "flop_tensor",
    "flop_tensor_wgmma": "flop_tensor",
    "branches_divergent": "branch_instructions",
}
_SHARES = (
    "dram_busy", "l2_busy", "l1_busy", "issue_busy", "tensor_busy", "fma_busy", "alu_busy",
    "fp64_busy", "xu_busy", "lsu_data_busy", "l2_hit_rate", "l1_hit_rate", "l1_load_hit_rate",
    "occupancy_achieved", "sm_active_share", "sm_imbalance", "shared_conflict_share",
    "global_excessive_share", "branch_uniformity", "threads_per_instruction",
)  # fmt: skip
COMPARED: tuple[Compared, ...] = (
    *(Compared(name, Sort.setting) for name in _SETTINGS),
    *(Compared(name, Sort.amount) for name in _COUNTS),
    *(Compared(name, Sort.amount, whole) for name, whole in _PARTS.items()),
    *(Compared(name, Sort.share) for name in _SHARES),
)
"""What is compared: causes rather than rates, which follow from the time."""

_SCALE = {"threads_per_instruction": 32.0}
"""What a share that is not of 1 is of."""


def changes(before: LaunchSummary, after: LaunchSummary) -> tuple[Changed, ...]:
    """The quantities that both recorded and that differ, weightiest first, those shown before all.

    A value that can't be (a hit rate above 1) is compared with nothing.
    """
    found = [
        _changed(compared, values, before, after) for compared, values in _differing(before, after)
    ]
    return tuple(sorted(found, key=lambda one: (not one.shown, -one.weight, one.name)))


def _differing(
    before: LaunchSummary, after: LaunchSummary
) -> Iterable[tuple[Compared, tuple[float, float]]]:
    doubtful = before.impossible | after.impossible
    ours, theirs = before.values, after.values
    for compared in COMPARED:
        one, other = ours.get(compared.name, math.nan), theirs.get(compared.name, math.nan)
        if one != other and one == one and other == other and compared.name not in doubtful:
            yield compared, (one, other)


def one_sided(before: LaunchSummary, after: LaunchSummary) -> tuple[OneSided, ...]:
    """The quantities of `COMPARED` that only one of two launches has."""
    return tuple(_only("before", before, after)) + tuple(_only("after", after, before))


def _only(
    side: Literal["before", "after"], having: LaunchSummary, lacking: LaunchSummary
) -> Iterable[OneSided]:
    for name in dict.fromkeys(compared.name for compared in COMPARED):
        if name in having.values and name not in lacking.values:
            unit = catalog().quantities[name].unit
            yield OneSided(name, side, having.values[name], unit, lacking.why_missing(name))


def _changed(
    compared: Compared, values: tuple[float, float], before: LaunchSummary, after: LaunchSummary
) -> Changed:
    weight, shown = _weighed(compared, values, before, after)
    entry = catalog().quantities[compared.name]
    return Changed(compared.name, entry.meaning, entry.unit, compared.sort, *values, weight, shown)


def _weighed(
    compared: Compared, values: tuple[float, float], before: LaunchSummary, after: LaunchSummary
) -> tuple[float, bool]:
    if compared.sort is Sort.setting:
        return 1.0, True
    if compared.sort is Sort.share:
        points = abs(values[1] - values[0]) / _SCALE.get(compared.name, 1.0)
        return points, points >= SHARE_MOVED
    moved = abs(values[1] - values[0]) / max(map(abs, values))
    part = _part(compared, values, before, after)
    return moved * part, moved >= COUNT_MOVED and part >= SMALL_PART


def _part(
    compared: Compared, values: tuple[float, float], before: LaunchSummary, after: LaunchSummary
) -> float:
    """How much of its whole a count is, on the side where it is more."""
    if not compared.whole:
        return 1.0
    wholes = before.get(compared.whole), after.get(compared.whole)
    parts = [value / whole for value, whole in zip(values, wholes, strict=True) if whole > 0]
    return min(max(parts, default=1.0), 1.0)
