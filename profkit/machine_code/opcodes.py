"""Opcodes by what they do, from `opcodes.yaml`, and the work of an instruction by its text.

An instruction's shape m x n x k is in its name (NVIDIA, PTX ISA, "Matrix shape" of mma and wgmma):
it does 2 m n k operations.
"""

import math
import re
from collections.abc import Iterable, Mapping

from profkit.core.yaml_files import shipped_yaml

_OPCODES = shipped_yaml("profkit.machine_code", "opcodes.yaml")
_CLASS_OF: Mapping[str, str] = {
    opcode: kind for kind, text in _OPCODES["classes"].items() for opcode in text.split()
}
_HALF_WEIGHTS = {"HFMA2": 4, "HADD2": 2, "HMUL2": 2}

CLASSES: tuple[str, ...] = (*_OPCODES["classes"], "half", "tensor")
"""Kinds of instructions that opcodes are counted by."""
KINDS = ("fp16", "bf16", "tf32", "fp64", "fp8", "fp4", "int8")
"""Kinds of tensor operations by type, with those of some paths besides."""
HMMA = "hmma"
SPARSE = "sparse"
HALF_ACCUMULATE = "fp16_accumulate"

# A warp's m and n are 8 or 16 and 8; k is the rest: 16816 is 16 x 8 x 16.
_WARP_SHAPE = re.compile(r"(16|8)(8)(\d+)")
_GROUP_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)")
_WARPS_OF_A_GROUP = 4  # a warpgroup is four warps (PTX ISA, wgmma)
# Volta's m8n8k4 product is done by each of the four quarters of a warp, in as many instructions
# (STEP0, STEP1, ...) as an accumulator has words a thread and row: 4 of FP32, 2 of FP16.
_QUARTERS = 4
_STEPS = {"F32": 4, "F16": 2}
_FAMILIES = {
    "HMMA": "fp16", "HGMMA": "fp16", "DMMA": "fp64", "QMMA": "fp8", "QGMMA": "fp8",
    "OMMA": "fp4", "IMMA": "int8", "IGMMA": "int8",
}  # fmt: skip
_UNCOUNTED = frozenset({"BMMA", "BGMMA"})
_NARROW_INTEGERS = frozenset({"S4", "U4"})
_GUARD = re.compile(r"^@\S+ ?")


def opcodes(*names: str) -> frozenset[str]:
    """The opcodes of some lists of `opcodes.yaml`."""
    return frozenset(opcode for name in names for opcode in _OPCODES[name].split())


def class_of(base: str) -> str:
    """The kind of an opcode without its modifiers, of CLASSES; "" for others."""
    if base in _HALF_WEIGHTS:
        return "half"
    return _CLASS_OF.get(base, "tensor" if base.endswith("MMA") else "")


def instructions(kind: str, counts: Mapping[str, float]) -> float:
    """Warp instructions of a kind, from counts by opcode; NaN without any."""
    fitting = (times for opcode, times in counts.items() if class_of(opcode.split(".")[0]) == kind)
    return sum(fitting) if counts else math.nan


def unguarded(instruction: str) -> str:
    """An instruction's text without the predicate before it."""
    return _GUARD.sub("", instruction)


def half_flop_of_move(instruction: str) -> int:
    """FLOP a thread is credited with for a half-precision instruction that computes nothing.

    The compiler loads constants with `HFMA2 R, -RZ, RZ, c, c` and converts half to float with
    `HADD2.F32 R, -RZ, R.H0_H0`. The counters weigh each thread of a packed instruction (HFMA2 4,
    HADD2 and HMUL2 2) whether it computes or not.
    """
    opcode, _, operands = unguarded(instruction).partition(" ")
    base = opcode.split(".")[0]
    sources = [term.strip().lstrip("-|").split(".")[0].rstrip("|") for term in operands.split(",")]
    zeros = sources[1:3].count("RZ")
    return _HALF_WEIGHTS.get(base, 0) if zeros > (base == "HFMA2") else 0


def tensor_operations(executed: Iterable[tuple[str, float]]) -> Mapping[str, float] | None:
    """Operations by KINDS, HMMA, SPARSE and HALF_ACCUMULATE from (instruction, times) pairs.

    One-bit and 4-bit integer products are left out. None where an instruction's work is not in its
    name: tcgen05 (UTCHMMA and its kin) takes its shape from a register.
    """
    totals = dict.fromkeys((*KINDS, HMMA, SPARSE, HALF_ACCUMULATE), 0.0)
    for text, times in executed:
        base, *modifiers = text.partition(" ")[0].split(".")
        kind = _FAMILIES.get(base, "")
        narrow = kind == "int8" and not _NARROW_INTEGERS.isdisjoint(modifiers)
        if not base.endswith("MMA") or base in _UNCOUNTED or not times or narrow:
            continue
        operations = _operations(modifiers) if kind else math.nan
        if math.isnan(operations):
            return None
        if base in {"HMMA", "HGMMA"}:
            kind = "bf16" if "BF16" in modifiers else "tf32" if "TF32" in modifiers else kind
        counted = {
            kind: True,
            HMMA: base == "HMMA",
            SPARSE: "SP" in modifiers,
            HALF_ACCUMULATE: kind == "fp16" and "F32" not in modifiers,
        }
        for key in filter(counted.get, counted):
            totals[key] += operations * times
    return totals


def _operations(modifiers: list[str]) -> float:
    """The operations of an instruction for one warp; NaN where unknown."""
    for modifier in modifiers:
        if group := _GROUP_SHAPE.fullmatch(modifier):
            return 2.0 * math.prod(map(int, group.groups())) / _WARPS_OF_A_GROUP
        if warp := _WARP_SHAPE.fullmatch(modifier):
            operations = 2.0 * math.prod(map(int, warp.groups()))
            if any(word.startswith("STEP") for word in modifiers):
                return operations * _QUARTERS / _STEPS["F32" if "F32" in modifiers else "F16"]
            return operations
    return math.nan
