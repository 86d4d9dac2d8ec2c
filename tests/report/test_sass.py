"""What machine code and opcode counts say."""

from __future__ import annotations

import math

import pytest

from profkit.report.sass import (
    class_instructions,
    half_flop_of_move,
    half_instructions,
    tensor_instructions,
)


@pytest.mark.parametrize(
    ("instruction", "flop"),
    [
        ("HFMA2.MMA R4, -RZ, RZ, 1.875, 5.0008296966552734375e-05", 4),
        ("@!P0 HFMA2 R0, -RZ, RZ, 0, 0", 4),
        ("HADD2.F32 R18, -RZ, R4.H0_H0", 2),
        ("HMUL2 R1, RZ, R2", 2),
        ("HFMA2 R4, R5, R6, R7", 0),
        ("HFMA2.MMA R4, R5, RZ, R7", 0),
        ("HADD2 R4, R5, R6.H0_H0", 0),
        ("HMUL2 R1, R2.H1_H1, 0.5, 0.5", 0),
        ("FFMA R1, RZ, RZ, R2", 0),
        ("HMMA.16816.F32 R4, R8, R12, RZ", 0),
        ("@P1", 0),
        ("EXIT", 0),
        ("", 0),
    ],
)
def test_moves_and_conversions_are_distinguished_from_arithmetic(
    instruction: str, flop: int
) -> None:
    assert half_flop_of_move(instruction) == flop


def test_opcodes_are_distinguished() -> None:
    opcodes = {"HFMA2": 3.0, "HADD2": 1.0, "HMMA": 5.0, "IMMA": 2.0, "HGMMA": 1.0, "FFMA": 9.0}
    assert half_instructions(opcodes) == 4
    assert tensor_instructions(opcodes) == 8
    assert math.isnan(half_instructions({}))
    assert math.isnan(tensor_instructions({}))


def test_instructions_by_class() -> None:
    opcodes = {"FFMA": 10.0, "IMAD.WIDE": 4.0, "ISETP.GE.AND": 3.0, "LDG.E": 2.0, "BAR.SYNC": 1.0}
    assert class_instructions("fp32", opcodes) == 10
    assert class_instructions("integer", opcodes) == 7
    assert class_instructions("barrier", opcodes) == 1
    assert class_instructions("fp64", opcodes) == 0
    assert math.isnan(class_instructions("fp32", {}))
