"""Work that the counters lack, from SASS: work per instruction times execution counts.

Counters of tensor-core work exist from CC 8.0 on and only in some sections; instruction counts
exist wherever ncu imported the machine code. An instruction's shape m x n x k is in its name
(NVIDIA, PTX ISA, "Matrix shape" of mma and wgmma): it does 2 m n k operations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping

from profkit.report.action import Action
from profkit.report.reader import by_address
from profkit.report.resources import CLASS_OF

_HALF_WEIGHTS = {"HFMA2": 4, "HADD2": 2, "HMUL2": 2}

KINDS = ("fp16", "bf16", "tf32", "fp64", "fp8", "fp4", "int8")
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


def class_instructions(kind: str, opcodes: Mapping[str, float]) -> float:
    """Warp instructions of a class; NaN without opcode counts."""
    return _count(opcodes, lambda base: CLASS_OF.get(base) == kind)


def half_instructions(opcodes: Mapping[str, float]) -> float:
    """Warp instructions with a half-precision vector opcode; NaN without opcode counts."""
    return _count(opcodes, _HALF_WEIGHTS.__contains__)


def tensor_instructions(opcodes: Mapping[str, float]) -> float:
    """Warp instructions with a tensor-core opcode (they all end in MMA); NaN without counts."""
    return _count(opcodes, lambda base: base.endswith("MMA"))


def _count(opcodes: Mapping[str, float], fits: Callable[[str], bool]) -> float:
    fitting = (times for opcode, times in opcodes.items() if fits(opcode.split(".")[0]))
    return sum(fitting) if opcodes else math.nan


def machine_code(action: Action, address: int) -> str:
    """The instruction at an address, "" where it is not known.

    Of a chip that the report's reader no longer disassembles (CC 7.0), it gives question marks.
    """
    text = " ".join((action.sass_by_pc(address) or "").split())
    return text if text.strip("? ") else ""


def executed_code(action: Action, metric_name: str) -> list[tuple[str, float]] | None:
    """Each executed instruction without its predicate, and its count; None where either is
    unknown."""
    counts = by_address(action, metric_name)
    if counts is None:
        return None
    code = [(machine_code(action, address), times) for address, times in counts.items() if times]
    return (
        [(_GUARD.sub("", text), times) for text, times in code]
        if all(text for text, _ in code)
        else None
    )


_GUARD = re.compile(r"^@\S+ ?")


def half_precision_moves(action: Action, thread_counts: str) -> float:
    """FLOP that half-precision counters hold of instructions that compute nothing.

    The compiler loads constants with `HFMA2 R, -RZ, RZ, c, c` and converts half to float with
    `HADD2.F32 R, -RZ, R.H0_H0`. The counters weigh each thread of a packed instruction (HFMA2 4,
    HADD2 and HMUL2 2) whether it computes or not. `thread_counts` is the metric with the threads
    that executed each program counter. NaN where the launch has none, or no machine code for it.
    """
    code = executed_code(action, thread_counts)
    if code is None:
        return math.nan
    return sum(threads * half_flop_of_move(text) for text, threads in code)


def half_flop_of_move(instruction: str) -> int:
    """FLOP a thread is credited with for a half-precision instruction that moves or converts."""
    opcode, _, operands = _GUARD.sub("", instruction).partition(" ")
    base = opcode.split(".")[0]
    sources = [term.strip().lstrip("-|").split(".")[0].rstrip("|") for term in operands.split(",")]
    zeros = sources[1:3].count("RZ")
    return _HALF_WEIGHTS.get(base, 0) if zeros > (base == "HFMA2") else 0


def executed_opcodes(action: Action, metric_name: str) -> list[tuple[str, float]] | None:
    """The opcode with modifiers of each executed instruction and its count; None without counts."""
    code = executed_code(action, metric_name)
    return code and [(text.split(" ")[0], times) for text, times in code]


def tensor_operations(executed: Iterable[tuple[str, float]]) -> Mapping[str, float] | None:
    """Operations by KINDS, HMMA, SPARSE and HALF_ACCUMULATE from (instruction, times) pairs.

    One-bit and 4-bit integer products are left out. None where an instruction's work is not in its
    name: tcgen05 (UTCHMMA and its kin) takes its shape from a register.
    """
    totals = dict.fromkeys((*KINDS, HMMA, SPARSE, HALF_ACCUMULATE), 0.0)
    for opcode, times in executed:
        base, *modifiers = opcode.split(".")
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
