"""The GPU that a report was recorded on: what the report says of it, and its datasheet."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from profkit.metrics.catalog import ComputeCapability
from profkit.metrics.quantities import capability

_PART = re.compile(r"\bMIG\b|-\d+[QCAB]\b")


@dataclass(frozen=True)
class Peak:
    """A datasheet peak in SI units; `verified` is false for a figure that nobody looked up."""

    value: float
    verified: bool


@dataclass(frozen=True)
class Datasheet:
    """Dense datasheet peaks of a product, at its boost clock.

    `peaks` has FLOP/s (op/s for int8) by "tensor_fp16", "tensor_tf32", ..., "fp32", "fp64", and
    "dram" in B/s. `boost` is that clock in Hz.
    """

    name: str
    cc: ComputeCapability
    sm_count: int
    peaks: Mapping[str, Peak] = field(hash=False)
    boost: float = math.nan


@dataclass(frozen=True)
class Gpu:
    """A GPU as a report describes it; clocks in Hz, sizes in bytes, 0 where the report is silent.

    `datasheet` is None for a product that the table lacks, and for a part of a chip (MIG, fewer
    SMs than the product), whose peaks are not the product's; `datasheet_note` then says why.
    """

    name: str
    cc: ComputeCapability
    sm_count: int
    clock: float
    memory_clock: float
    memory_bus_bits: int
    memory_bytes: int
    l2_bytes: int
    warps_per_sm: int
    threads_per_sm: int
    blocks_per_sm: int
    registers_per_sm: int
    shared_per_sm: int
    schedulers_per_sm: int
    datasheet: Datasheet | None
    datasheet_note: str

    @property
    def dram_peak(self) -> float:
        """B/s by memory clock and bus width, two transfers a clock; 0 where either is unknown."""
        return self.memory_clock * self.memory_bus_bits * 2 / 8


def gpu_of(device: Mapping[str, str | float]) -> Gpu:
    """The GPU that a launch's device attributes describe."""

    def number(key: str) -> int:
        return int(device.get(key, 0))

    name = str(device.get("name", "unknown GPU"))
    datasheet, note = find_datasheet(
        name, capability(device), number("sm_count"), number("memory_bytes")
    )
    return Gpu(
        name=name,
        cc=capability(device),
        sm_count=number("sm_count"),
        clock=number("clock_khz") * 1e3,
        memory_clock=number("memory_clock_khz") * 1e3,
        memory_bus_bits=number("memory_bus_bits"),
        memory_bytes=number("memory_bytes"),
        l2_bytes=number("l2_bytes"),
        warps_per_sm=number("warps_per_sm"),
        threads_per_sm=number("threads_per_sm"),
        blocks_per_sm=number("blocks_per_sm"),
        registers_per_sm=number("registers_per_sm"),
        shared_per_sm=number("shared_per_sm"),
        schedulers_per_sm=number("schedulers_per_sm"),
        datasheet=datasheet,
        datasheet_note=note,
    )


def find_datasheet(
    name: str, cc: ComputeCapability, sm_count: int, memory_bytes: int
) -> tuple[Datasheet | None, str]:
    """The product of that name; None and the reason where there is none that fits."""
    if _PART.search(name):
        return None, f"{name} is a part of a chip: the product's datasheet does not apply"
    rows = [row for row in _table() if re.search(row["match"], name)]
    if not rows:
        return None, "no datasheet figures for this GPU"
    row = min(rows, key=lambda row: abs(row.get("memory_gb", 0) - memory_bytes / 1e9))
    sheet = _datasheet(row)
    if cc != sheet.cc or sm_count != sheet.sm_count:
        return None, (
            f"{sm_count} SMs of CC {cc[0]}.{cc[1]} are not the {sheet.sm_count} "
            f"of a whole {sheet.name}: its datasheet does not apply"
        )
    return sheet, ""


def _datasheet(row: Mapping[str, Any]) -> Datasheet:
    recalled = set(row.get("recalled", ()))
    tensor = {
        f"tensor_{name}": Peak(value * 1e12, not recalled & {"tensor", name})
        for name, value in row["tensor"].items()
    }
    major, minor = (int(part) for part in row["cc"].split("."))
    if major >= 8:
        tensor["tensor_bf16"] = tensor["tensor_fp16"]
    vector = {
        name: Peak(value * 1e12, not recalled & {name, f"vector_{name}"})
        for name, value in row["vector"].items()
    }
    dram = {"dram": Peak(row["dram"] * 1e9, "dram" not in recalled)}
    return Datasheet(
        row["name"], (major, minor), row["sms"], tensor | vector | dram, row["boost"] * 1e6
    )


@cache
def _table() -> list[dict[str, Any]]:
    text = files("profkit.analysis").joinpath("gpus.yaml").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = yaml.load(
        text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    return rows
