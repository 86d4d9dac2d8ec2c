"""GPUs: the attributes that a recording has of one, and the datasheets of products."""

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, TypeVar

from msgspec import Struct

from profkit.core.compute_capability import ComputeCapability, parse_capability
from profkit.core.errors import UsageError
from profkit.core.yaml_files import shipped_yaml
from profkit.hardware.occupancy import Chip

_Value = TypeVar("_Value")
_MAKER = {"nvidia", "tesla", "geforce", "quadro", "gpu", "tensor", "core"}
_BRANDS = {"nvidia", "tesla", "geforce"}
# Words that make another product of a name: without them a name never means such a product.
_TIERS = {"ti", "super", "laptop", "mobile", "max", "ada", "pro"}
_PART = re.compile(r"\bMIG\b|-\d+[QCAB]\b")
_NUMBERED = re.compile(r"\S*\d\S*")  # the word of a product's name that has a number: `l4`, `4090`
# The highest clock that the driver offers over the boost clock of the specifications, of an RTX
# 2080 Ti: 2,100 over 1,545 MHz (an RTX 4090 has 3,105 over 2,520, an RTX 3090 2,100 over 1,695).
_CARD_CLOCKS = 1.36
# A laptop whose clock limit is at least this share of the highest one runs at the datasheet's.
_SAME_CLOCK = 0.98


class Peak(Struct, frozen=True):
    """A datasheet peak in SI units; `verified` is false for a value that was not looked up."""

    value: float
    verified: bool


_UNKNOWN = Peak(0.0, verified=False)


@dataclass(frozen=True)
class Datasheet:
    """Dense datasheet peaks of a product.

    `peaks` has FLOP/s (op/s for int8) by "tensor_fp16", "tensor_tf32", ..., "fp32", "fp64", and
    "dram" in B/s. Tensor peaks in fp16, bf16 and fp8 accumulate in FP32; `f16_accumulate` has those
    that are higher with FP16 accumulation. `boost` (Hz) is the highest clock, `tensor_clock` and
    `vector_clock` (Hz) those of the tensor and of the other peaks, the same on most products;
    `clocks_verified` is false where they were not looked up. `scale` is the share of the FLOP per
    cycle of its compute capability that it does, where not all, `also` has FLOP/s that other
    documents of the maker state, `limited` the peaks that are cut
    below what its units do. `l2` is in bytes, `nvlink` in B/s in both directions together, 0 where
    it has none or it is unknown, `memory` the kind of the DRAM, `source` the document
    that the figures are from; `sparse`: it states tensor rates with sparsity; `laptop`:
    that the power limit of the computer decides the clock.
    """

    name: str
    cc: ComputeCapability
    sm_count: int
    peaks: Mapping[str, Peak] = field(hash=False)
    boost: float = math.nan
    tensor_clock: float = math.nan
    vector_clock: float = math.nan
    l2: Peak = _UNKNOWN
    nvlink: Peak = _UNKNOWN
    f16_accumulate: Mapping[str, Peak] = field(default_factory=dict, hash=False)
    scale: Mapping[str, float] = field(default_factory=dict, hash=False)
    also: Mapping[str, tuple[float, ...]] = field(default_factory=dict, hash=False)
    limited: frozenset[str] = frozenset()
    memory: str = ""
    source: str = ""
    clocks_verified: bool = False
    sparse: bool = False
    laptop: bool = False

    def clock_of(self, peak: str) -> float:
        """The clock (Hz) that a compute peak is stated at."""
        tensor = peak.startswith("tensor_") and peak != "tensor_fp64"
        return self.tensor_clock if tensor else self.vector_clock

    def clock_headroom(self, peak: str) -> float:
        """By how much a rate may exceed a datasheet peak: boost clock over the peak's own."""
        if peak == "dram" or peak in self.limited:
            return 1.0
        return max(1.0, self.boost / self.clock_of(peak))

    def highest_headroom(self, peak: str) -> float:
        """The same for what was measured: the boost clock of a card is a typical one."""
        if peak == "dram" or peak in self.limited or not self.name.startswith(("RTX ", "GTX ")):
            return self.clock_headroom(peak)
        return _CARD_CLOCKS * self.clock_headroom(peak)

    def per_cycle(self, peak: str) -> float:
        """FLOP per cycle and SM behind a compute peak; 0 where it has none."""
        if peak not in self.peaks:
            return 0.0
        if peak in self.limited:
            return self.peaks[peak].value / (self.sm_count * self.clock_of(peak))
        return flop_per_cycle(self.cc).get(peak, 0.0) * self.scale.get(peak, 1.0)

    def rate_at(self, peak: str, clock: float) -> float:
        """FLOP/s of a compute peak at an SM clock (Hz); 0 where it has none."""
        return self.sm_count * self.per_cycle(peak) * clock


def flop_per_cycle(cc: ComputeCapability) -> Mapping[str, float]:
    """Dense FLOP (op for int8) per cycle and SM by peak; empty for an unknown capability.

    Tensor figures accumulate in FP32; GeForce cards do half of them in fp16, bf16, tf32 and fp8.
    """
    units: Mapping[str, float] = _document()["units"].get(f"{cc[0]}.{cc[1]}", {})
    return units


class SmLimits(Struct, frozen=True):
    """What an SM of a compute capability holds at once.

    `reserved_shared` and `block_shared` are the bytes of shared memory that a block takes besides
    its own and that it may have at most.
    """

    cc: ComputeCapability
    chip: Chip
    reserved_shared: int
    block_shared: int


# 32-bit registers of an SM and its sub-partitions, the same from CC 7.0 on (CUDA C++ Programming
# Guide, technical specifications).
_REGISTERS, _SCHEDULERS = 65_536, 4
# Shared memory that the system takes of each block from CC 8.0 on (the same table).
_RESERVED = 1024


def sm_limits(cc: ComputeCapability) -> SmLimits | None:
    """The limits of an SM; None for a compute capability that the table lacks."""
    return next((limits for limits in all_sm_limits() if limits.cc == cc), None)


def all_sm_limits() -> list[SmLimits]:
    """The limits of every compute capability that the table has."""
    limits = []
    for key, row in _document()["sm"].items():
        cc = parse_capability(key)
        chip = Chip(row["warps"], row["blocks"], _REGISTERS, row["shared"] * 1024, _SCHEDULERS)
        reserved = _RESERVED if cc >= (8, 0) else 0
        limits.append(SmLimits(cc, chip, reserved, row["block_shared"] * 1024))
    return limits


def units_source() -> str:
    """The documents that `flop_per_cycle` is from."""
    return str(_document()["units_source"])


class Gpu(Struct, frozen=True):
    """A GPU as a report describes it; clocks in Hz, sizes in bytes, 0 where the report has none.

    `datasheet` is None for a product that the table lacks, and for a partition (MIG, fewer SMs than
    the product), whose peaks are not the product's; `datasheet_note` then has the reason.
    """

    name: str
    cc: ComputeCapability
    sm_count: int
    clock: float
    memory_clock: float
    memory_bus_bits: int
    memory_bytes: int
    l2_bytes: int
    chip: Chip
    datasheet: Datasheet | None
    datasheet_note: str

    @property
    def dram_peak(self) -> float:
        """B/s by memory clock and bus width, two transfers a clock; 0 where either is unknown."""
        return _dram_rate(self.memory_clock, self.memory_bus_bits)

    def is_verified(self, peak: str) -> bool:
        """Whether a datasheet peak was looked up."""
        return self.datasheet is not None and self.datasheet.peaks[peak].verified

    def per_cycle(self, peak: str) -> float:
        """FLOP per cycle and SM of a compute peak: the product's, else those of the CC; 0 unknown.

        Without a datasheet a GeForce card takes half for what accumulates in FP32, as all do since
        Turing, and a GTX has no tensor cores.
        """
        if self.datasheet:
            return self.datasheet.per_cycle(peak)
        units = flop_per_cycle(self.cc).get(peak, 0.0)
        if not peak.startswith("tensor_") or "GeForce" not in self.name:
            return units
        if "GTX" in self.name:
            return 0.0
        return units * _tensor(_document()["geforce"]).get(peak, 1.0)

    @property
    def accumulation_scale(self) -> float:
        """The rate of FP16 products with FP32 accumulation over that with FP16 accumulation."""
        if self.datasheet and "tensor_fp16" not in self.datasheet.f16_accumulate:
            return 1.0
        full = flop_per_cycle(self.cc).get("tensor_fp16", 0.0)
        return self.per_cycle("tensor_fp16") / full if full else 1.0


def capability(device: Mapping[str, str | float]) -> ComputeCapability:
    """The compute capability of a launch's device; (0, 0) when the report does not say."""
    return int(device.get("cc_major", 0)), int(device.get("cc_minor", 0))


_COUNTS = ("sm_count", "memory_bus_bits", "memory_bytes", "l2_bytes")
_UNITS = ("warps", "blocks", "registers", "shared", "schedulers")


def gpu_of(device: Mapping[str, str | float]) -> Gpu:
    """The GPU that a launch's device attributes describe."""
    return _gpu_of(tuple(device.items()))


@lru_cache(maxsize=256)  # chosen: more GPUs than a report has
def _gpu_of(attributes: tuple[tuple[str, str | float], ...]) -> Gpu:
    device = dict(attributes)

    def number(key: str) -> int:
        return int(device.get(key, 0))

    name, cc = str(device.get("name", "unknown GPU")), capability(device)
    counts = {key: number(key) for key in _COUNTS}
    chip = Chip(*(number(f"{unit}_per_sm") for unit in _UNITS))
    clock, memory_clock = number("clock_khz") * 1e3, number("memory_clock_khz") * 1e3
    dram = _dram_rate(memory_clock, counts["memory_bus_bits"])
    sheet, note = find_datasheet(name, cc, counts["sm_count"], counts["memory_bytes"], dram)
    if sheet and sheet.laptop and 0 < clock < sheet.boost * _SAME_CLOCK:
        note = (
            f"laptop power limits vary: datasheet peaks are at {sheet.boost / 1e6:.0f} MHz, "
            f"the max SM clock of this GPU is {clock / 1e6:.0f} MHz"
        )
    return Gpu(
        name, cc, clock=clock, memory_clock=memory_clock, **counts, chip=chip,
        datasheet=sheet, datasheet_note=note,
    )  # fmt: skip


def _dram_rate(memory_clock: float, bus_bits: int) -> float:
    return memory_clock * bus_bits * 2 / 8


def find_datasheet(
    name: str, cc: ComputeCapability, sm_count: int, memory_bytes: int, dram: float = 0.0
) -> tuple[Datasheet | None, str]:
    """The product of that driver name; None and the reason where there is none that fits.

    Products may share a name: they are distinguished by SMs, then memory, then its rate `dram`
    (B/s, 0 where unknown).
    """
    if _PART.search(name):
        return None, f"{name} is a partition of a GPU (MIG or vGPU): the datasheet does not apply"
    words, table = _driver_name(name), _document()["gpus"]
    rows = [row for row in table if words in map(_driver_name, row["names"])]
    if not rows:
        return None, "no datasheet values for this GPU"

    def distance(row: Mapping[str, Any]) -> tuple[bool, float, float]:
        memory = abs(row.get("memory_gb", 0) - memory_bytes / 1e9)
        return row["sms"] != sm_count, memory, abs(row["dram"] - dram / 1e9) if dram else 0.0

    sheet = _datasheet(min(rows, key=distance))
    if not (sm_count and cc[0]):
        return None, "no valid SM count or compute capability: the datasheet does not apply"
    if cc != sheet.cc or sm_count != sheet.sm_count:
        return None, (
            f"{sm_count} SMs of CC {cc[0]}.{cc[1]}, while a full {sheet.name} has "
            f"{sheet.sm_count}: its datasheet does not apply"
        )
    return sheet, ""


def _driver_name(name: str) -> tuple[str, ...]:
    """The words of a name as drivers print it, in lower case, without maker and brand before it."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    return tuple(itertools.dropwhile(_BRANDS.__contains__, words))


def datasheet_named(name: str) -> Datasheet | None:
    """The product that people mean by a name (`L4`, `A100 80GB PCIe`, `rtx 4090`); None for none.

    Raises UsageError with the products that it may be where there are several.
    """
    meant = datasheets_named(name)
    if len(meant) > 1:
        known = ", ".join(sheet.name for sheet in meant)
        raise UsageError(f"{name!r} is ambiguous: {known}", "name one of them")
    return meant[0] if meant else None


@cache
def datasheets_named(name: str) -> tuple[Datasheet, ...]:
    """All products that people may mean by a name; none for one that the table lacks.

    A name means the products that have each of its words: `A100` all of them, `H200 NVL` none.
    It never means one with another tier: `RTX 4060` is no laptop's, `GTX 1660` no Ti.
    """
    asked = _words(name) - _MAKER
    if not asked or _PART.search(name):
        return ()
    return tuple(
        _datasheet(row)
        for row in _document()["gpus"]
        if _NUMBERED.findall(row["name"].lower())[0] in asked
        and asked <= _known_words(row)
        and _words(row["name"]) & _TIERS <= asked
    )


@cache
def all_datasheets() -> tuple[Datasheet, ...]:
    """Every product of the table."""
    return tuple(map(_datasheet, _document()["gpus"]))


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

    def peak(rate: float, unit: float, *names: str) -> Peak:
        return Peak(rate * unit, recalled.isdisjoint(names))

    def tensor(rates: Mapping[str, float]) -> dict[str, Peak]:
        return {
            f"tensor_{name}": peak(rate, 1e12, name, f"tensor_{name}", "tensor")
            for name, rate in rates.items()
        }

    cc = parse_capability(row["cc"])
    peaks = _with_bf16(tensor(row["tensor"])) if cc >= (8, 0) else tensor(row["tensor"])
    for name, rate in row["vector"].items():
        peaks[name] = peak(rate, 1e12, name, f"vector_{name}", "vector")
    also = row.get("also", {}).items()
    texts = ("name", "memory", "source", "sparse", "laptop")
    clocks = ("boost", "tensor_clock", "vector_clock")
    return Datasheet(
        **{key: row[key] for key in texts if key in row},
        **{key: row.get(key, row["boost"]) * 1e6 for key in clocks},
        cc=cc,
        sm_count=row["sms"],
        peaks=peaks | {"dram": peak(row["dram"], 1e9, "dram")},
        l2=peak(row["l2"], 2**20, "l2"),
        nvlink=peak(row.get("nvlink", 0), 1e9, "nvlink"),
        f16_accumulate=tensor(row.get("tensor_f16", {})),
        scale=_tensor(row.get("scale", {})),
        also=_with_bf16({name: tuple(rate * 1e12 for rate in rates) for name, rates in also}),
        limited=frozenset(row.get("limited", ())),
        clocks_verified=recalled.isdisjoint({"boost", "tensor_clock"}),
    )


def _tensor(shares: Mapping[str, float]) -> dict[str, float]:
    """Shares of the tensor rates by peak."""
    return _with_bf16({f"tensor_{name}": share for name, share in shares.items()})


def _with_bf16(peaks: dict[str, _Value]) -> dict[str, _Value]:
    """Values by peak; bf16 has that of fp16."""
    return peaks | {"tensor_bf16": peaks["tensor_fp16"]} if "tensor_fp16" in peaks else peaks


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = shipped_yaml("profkit.hardware", "gpus.yaml")
    return document
