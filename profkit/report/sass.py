"""What the machine code says that the counters do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from profkit.report.reader import by_address
from profkit.report.resources import CLASS_OF

_HALF_WEIGHTS = {"HFMA2": 4, "HADD2": 2, "HMUL2": 2}
_ZERO = "RZ"


def class_instructions(kind: str, opcodes: Mapping[str, float]) -> float:
    """Warp instructions of a class; NaN without opcode counts."""
    return _counted(opcodes, lambda base: CLASS_OF.get(base) == kind)


def half_instructions(opcodes: Mapping[str, float]) -> float:
    """Warp instructions with a half-precision vector opcode; NaN without opcode counts."""
    return _counted(opcodes, lambda base: base in _HALF_WEIGHTS)


def tensor_instructions(opcodes: Mapping[str, float]) -> float:
    """Warp instructions with a tensor-core opcode (they all end in MMA); NaN without counts."""
    return _counted(opcodes, lambda base: base.endswith("MMA"))


def _counted(opcodes: Mapping[str, float], of_kind: Callable[[str], bool]) -> float:
    fitting = (count for opcode, count in opcodes.items() if of_kind(_base(opcode)))
    return sum(fitting) if opcodes else float("nan")


def machine_code(action: Any, address: int) -> str:
    """The instruction at an address, "" where it is not known.

    Of a chip that the report's reader no longer disassembles (CC 7.0), it gives question marks.
    """
    text = " ".join((action.sass_by_pc(address) or "").split())
    return text if text.strip("? ") else ""


def half_precision_moves(action: Any, thread_counts: str) -> float:
    """FLOP that half-precision counters hold of instructions that compute nothing.

    The compiler loads constants with `HFMA2 R, -RZ, RZ, c, c` and converts half to float with
    `HADD2.F32 R, -RZ, R.H0_H0`. The counters weigh each thread of a packed instruction (HFMA2 4,
    HADD2 and HMUL2 2) whether it computes or not. `thread_counts` is the metric with the threads
    that executed each program counter. NaN where the launch has none, or no machine code for it.
    """
    counts = by_address(action, thread_counts)
    if counts is None:
        return float("nan")
    flop = 0.0
    for address, threads in counts.items():
        if threads:
            instruction = machine_code(action, address)
            if not instruction:
                return float("nan")
            flop += threads * half_flop_of_move(instruction)
    return flop


def half_flop_of_move(instruction: str) -> int:
    """FLOP a thread is credited with for a half-precision instruction that moves or converts."""
    words = instruction.split(maxsplit=1)
    if words and words[0].startswith("@"):
        words = words[1].split(maxsplit=1) if len(words) > 1 else []
    if len(words) < 2:
        return 0
    opcode = _base(words[0])
    weight = _HALF_WEIGHTS.get(opcode, 0)
    if not weight:
        return 0
    sources = [_register(operand) for operand in words[1].split(",")[1:3]]
    zeros = sources.count(_ZERO)
    moves = zeros == 2 if opcode == "HFMA2" else zeros >= 1
    return weight if moves else 0


def _base(opcode: str) -> str:
    return opcode.split(".")[0]


def _register(operand: str) -> str:
    return operand.strip().lstrip("-|").split(".")[0].rstrip("|")
