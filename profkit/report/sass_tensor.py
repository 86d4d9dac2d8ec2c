"""Tensor-core work by machine code: how often each matrix instruction ran, times what it does.

Counters of the work exist from CC 8.0 on and only in some sections; instruction counts exist
wherever ncu imported the machine code. An instruction's shape m x n x k is in its name (NVIDIA, PTX
ISA, "Matrix shape" of mma and wgmma): it does 2 m n k operations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from profkit.report.reader import by_address
from profkit.report.sass import machine_code

KINDS = ("fp16", "bf16", "tf32", "fp64", "fp8", "fp4", "int8")
HMMA = "hmma"
SPARSE = "sparse"
HALF_ACCUMULATE = "fp16_accumulate"

# A warp's m and n are 8 or 16 and 8; k is the rest: 16816 is 16 x 8 x 16.
_WARP_SHAPE = re.compile(r"(16|8)(8)(\d+)")
_GROUP_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)")
_WARPS_OF_A_GROUP = 4
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


def tensor_operations(executed: Iterable[tuple[str, float]]) -> Mapping[str, float] | None:
    """Operations by KINDS, HMMA, SPARSE and HALF_ACCUMULATE from (instruction, times) pairs.

    One-bit and 4-bit integer products are left out. None where an instruction's work is not in its
    name: tcgen05 (UTCHMMA and its kin) takes its shape from a register.
    """
    found = dict.fromkeys((*KINDS, HMMA, SPARSE, HALF_ACCUMULATE), 0.0)
    for opcode, times in executed:
        base, *modifiers = opcode.split(".")
        if not base.endswith("MMA") or base in _UNCOUNTED or not times:
            continue
        kind, operations = _work(base, modifiers)
        if math.isnan(operations):
            return None
        for key in _keys(base, modifiers, kind):
            found[key] += operations * times
    return found


def executed_opcodes(action: Any, metric_name: str) -> list[tuple[str, float]] | None:
    """The opcode with modifiers of each instruction that ran and how often; None without counts."""
    counts = by_address(action, metric_name)
    if counts is None:
        return None
    ran = [(machine_code(action, at), times) for at, times in counts.items() if times]
    return [(_opcode(sass), times) for sass, times in ran] if all(sass for sass, _ in ran) else None


def _opcode(sass: str) -> str:
    words = (word for word in sass.split() if not word.startswith("@"))
    return next(words, "")


def _work(base: str, modifiers: list[str]) -> tuple[str, float]:
    """The kind of an instruction's operands and its operations for one warp; NaN where unknown."""
    kind = _FAMILIES.get(base, "")
    if base in {"HMMA", "HGMMA"}:
        kind = "bf16" if "BF16" in modifiers else "tf32" if "TF32" in modifiers else kind
    if kind == "int8" and _NARROW_INTEGERS & set(modifiers):
        return "", 0.0
    return kind, _operations(modifiers) if kind else math.nan


def _operations(modifiers: list[str]) -> float:
    for modifier in modifiers:
        if group := _GROUP_SHAPE.fullmatch(modifier):
            return 2.0 * math.prod(map(int, group.groups())) / _WARPS_OF_A_GROUP
        if warp := _WARP_SHAPE.fullmatch(modifier):
            operations = 2.0 * math.prod(map(int, warp.groups()))
            if any(word.startswith("STEP") for word in modifiers):
                return operations * _QUARTERS / _STEPS["F32" if "F32" in modifiers else "F16"]
            return operations
    return math.nan


def _keys(base: str, modifiers: list[str], kind: str) -> list[str]:
    """Where an instruction's operations count."""
    if not kind:
        return []
    keys = [kind]
    if base == "HMMA":
        keys.append(HMMA)
    if "SP" in modifiers:
        keys.append(SPARSE)
    if kind == "fp16" and "F32" not in modifiers:
        keys.append(HALF_ACCUMULATE)
    return keys
