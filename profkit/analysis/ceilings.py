"""Measured roofs of a GPU: rates from samples, and whether they can be what they are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

BYTES, FLOP, OPERATIONS = "B/s", "FLOP/s", "op/s"
MMA_SYNC = "_mma_sync"

LABELS: Mapping[str, str] = {
    "dram": "DRAM copy",
    "dram_read": "DRAM read",
    "l2": "L2 read",
    "fp32": "FP32 FMA",
    "fp64": "FP64 FMA",
    "tensor_fp64": "tensor FP64",
    "tensor_tf32": "tensor TF32",
    "tensor_bf16": "tensor BF16",
    "tensor_fp16": "tensor FP16",
    "tensor_fp8": "tensor FP8",
    "tensor_int8": "tensor INT8",
    "tensor_bf16_mma_sync": "tensor BF16, mma.sync",
    "tensor_fp16_mma_sync": "tensor FP16, mma.sync",
}
"""Every roof that can be measured, and what people call it."""

_SETTINGS = (
    "name",
    "uuid",
    "multiprocessors",
    "memory_bytes",
    "mig",
    "ecc",
    "power_limit",
    "sm_clock_max",
    "sm_clock_application",
)


@dataclass(frozen=True)
class Ceiling:
    """The rate that was reached, and how.

    `rate` is `amount` (bytes, FLOP or operations of a call) over the median time of a call, in
    `unit` ("B/s", "FLOP/s", "op/s"); `low` and `high` come from the ends of the median's interval,
    NaN where it has none, and `level` is the coverage that it claims, NaN for none. `sm_clock`
    (Hz), `power` (W) and `temperature` (degrees C) are medians of what the driver told while it
    ran, NaN where it told nothing; `throttled_by` are the reasons for which it held the clock down.
    `peak` is the datasheet's, NaN where none applies, `verified` as there. `problem` says why the
    rate can't be what it is called; "" where nothing speaks against it.
    """

    name: str
    rate: float
    low: float
    high: float
    unit: str
    how: str
    amount: float
    samples: int
    level: float
    sm_clock: float
    power: float
    temperature: float
    throttled_by: tuple[str, ...]
    peak: float
    verified: bool
    problem: str

    @property
    def label(self) -> str:
        """What people call it."""
        return LABELS[self.name]

    @property
    def share(self) -> float:
        """Of the datasheet's peak; NaN where none applies."""
        return self.rate / self.peak


@dataclass(frozen=True)
class Ceilings:
    """Measured roofs of one GPU.

    `gpu` is its name, `uuid` its UUID ("" unknown), `rates` the roofs by name, `left_out` those
    that this GPU or its software can't do, and why. `created` is the UTC time; `fingerprint` the
    surroundings, of which "gpu" holds the settings that the roofs depend on.
    """

    gpu: str
    uuid: str
    rates: Mapping[str, Ceiling]
    created: str = ""
    seconds: float = 0.0
    left_out: Mapping[str, str] = field(default_factory=dict)
    fingerprint: Mapping[str, Any] = field(default_factory=dict)


def unfit(ceilings: Ceilings, gpu: Mapping[str, Any]) -> tuple[str, ...]:
    """Why these are not the roofs of a GPU, empty where nothing known speaks against it.

    `gpu` is a fingerprint's device, or as much of one as is known: "name", "uuid",
    "multiprocessors", "memory_bytes", "power_limit" (W), "ecc", "mig", clocks (Hz). What either
    side does not know is not compared.
    """
    measured = {
        **(ceilings.fingerprint.get("gpu") or {}),
        "name": ceilings.gpu,
        "uuid": ceilings.uuid or None,
    }
    return tuple(
        f"{name.replace('_', ' ')} {measured[name]} when measured, {gpu[name]} now"
        for name in _SETTINGS
        if measured.get(name) is not None
        and gpu.get(name) is not None
        and measured[name] != gpu[name]
    )
