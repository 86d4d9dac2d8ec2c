"""The GPU that a report was recorded on: what the report says of it, and its datasheet."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from profkit.errors import UsageError
from profkit.ingest.text_files import shipped_yaml
from profkit.metrics.catalog import ComputeCapability
from profkit.metrics.quantities import capability

_MAKER = {"nvidia", "tesla", "geforce", "quadro", "gpu", "tensor", "core"}
_PART = re.compile(r"\bMIG\b|-\d+[QCAB]\b")


@dataclass(frozen=True)
class Peak:
    """A datasheet peak in SI units; `verified` is false for a figure that nobody looked up."""

    value: float
    verified: bool


@dataclass(frozen=True)
class Datasheet:
    """Dense datasheet peaks of a product.

    `peaks` has FLOP/s (op/s for int8) by "tensor_fp16", "tensor_tf32", ..., "fp32", "fp64", and
    "dram" in B/s. Tensor peaks in fp16, bf16 and fp8 accumulate in FP32; `f16_accumulate` has those
    that are higher with FP16 accumulation. `boost` (Hz) is the clock of the vector peaks,
    `tensor_clock` (Hz) that of the tensor peaks, the same on most products; `clocks_verified` is
    false where nobody looked them up. `l2` is in bytes, `memory` the kind of the DRAM, `source`
    where the figures are from.
    """

    name: str
    cc: ComputeCapability
    sm_count: int
    peaks: Mapping[str, Peak] = field(hash=False)
    boost: float = math.nan
    tensor_clock: float = math.nan
    l2: Peak = Peak(0.0, verified=False)
    f16_accumulate: Mapping[str, Peak] = field(default_factory=dict, hash=False)
    memory: str = ""
    source: str = ""
    clocks_verified: bool = False

    def clock_headroom(self, peak: str) -> float:
        """By how much a rate may exceed a datasheet peak: boost clock over the peak's own."""
        return self.boost / self.tensor_clock if peak.startswith("tensor_") else 1.0

    def per_cycle(self, peak: str) -> float:
        """FLOP per cycle and SM behind a compute peak; 0 where it has none or no clock is known.

        Peak over SMs and the peak's own clock, rounded to a power of two: what an SM does in a
        cycle is one on every architecture since Volta, and clocks are given rounded.
        """
        clock = self.tensor_clock if peak.startswith("tensor_") else self.boost
        if peak not in self.peaks or not clock > 0:
            return 0.0
        return float(2 ** round(math.log2(self.peaks[peak].value / (self.sm_count * clock))))


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


def datasheet_named(name: str) -> Datasheet | None:
    """The product that people mean by a name (`L4`, `A100 80GB PCIe`, `rtx 4090`); None for none.

    Raises UsageError with the products that it may be where there are several.
    """
    meant = datasheets_named(name)
    if len(meant) > 1:
        known = ", ".join(sheet.name for sheet in meant)
        raise UsageError(f"{name!r} may be {known}", "say which")
    return meant[0] if meant else None


@cache
def datasheets_named(name: str) -> tuple[Datasheet, ...]:
    """All products that people may mean by a name; none for one that the table lacks.

    A name means the products that have each of its words: `A100` all of them, `H200 NVL` none.
    """
    asked = _words(name) - _MAKER
    if not asked or _PART.search(name):
        return ()
    return tuple(
        _datasheet(row)
        for row in _table()
        if _chip(row["name"]) in asked and asked <= _known_words(row)
    )


@cache
def all_datasheets() -> tuple[Datasheet, ...]:
    """Every product of the table."""
    return tuple(map(_datasheet, _table()))


def _chip(name: str) -> str:
    """The word of a product's name that has a number: `l4`, `4090`."""
    return next(word for word in name.lower().split() if re.search(r"\d", word))


def _words(text: str) -> set[str]:
    """Words in lower case; `80GB` are two."""
    spaced = re.sub(r"\b(\d+)\s*g(?:i?b)?\b", r"\1 gb", text.lower())
    return set(re.findall(r"[a-z0-9]+", spaced))


def _known_words(row: Mapping[str, Any]) -> set[str]:
    memory = f"{row['memory_gb']} GB" if "memory_gb" in row else ""
    more = " ".join(str(word) for word in row.get("words", ()))
    return _words(f"{row['name']} {memory} {row['memory']} {more}")


def _datasheet(row: Mapping[str, Any]) -> Datasheet:
    recalled = set(row.get("recalled", ()))

    def peak(value: float, unit: float, *names: str) -> Peak:
        return Peak(value * unit, not recalled & set(names))

    def tensor(rates: Mapping[str, float]) -> dict[str, Peak]:
        return {
            f"tensor_{name}": peak(value, 1e12, "tensor", name, f"tensor_{name}")
            for name, value in rates.items()
        }

    major, minor = (int(part) for part in row["cc"].split("."))
    peaks = tensor(row["tensor"])
    if major >= 8:
        peaks["tensor_bf16"] = peaks["tensor_fp16"]
    for name, value in row["vector"].items():
        peaks[name] = peak(value, 1e12, name, f"vector_{name}")
    peaks["dram"] = peak(row["dram"], 1e9, "dram")
    return Datasheet(
        name=row["name"],
        cc=(major, minor),
        sm_count=row["sms"],
        peaks=peaks,
        boost=row["boost"] * 1e6,
        tensor_clock=row.get("tensor_clock", row["boost"]) * 1e6,
        l2=peak(row["l2"], 2**20, "l2"),
        f16_accumulate=tensor(row.get("tensor_f16", {})),
        memory=row["memory"],
        source=_document()["source"],
        clocks_verified=not recalled & {"boost", "tensor_clock"},
    )


def _table() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _document()["gpus"]
    return rows


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = shipped_yaml("profkit.analysis", "gpus.yaml")
    return document
