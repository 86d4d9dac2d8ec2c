"""Kinds of opcodes; operations of matrix instructions against NVIDIA's shapes, by hand."""

from __future__ import annotations

import math

import pytest

from profkit.machine_code.opcodes import (
    KINDS,
    half_flop_of_move,
    instructions,
    tensor_operations,
)


def work(opcode: str) -> dict[str, float]:
    counted = tensor_operations([(opcode, 1.0)])
    assert counted is not None
    return {kind: value for kind, value in counted.items() if value}


@pytest.mark.parametrize(
    ("opcode", "kind", "shape"),
    [
        ("HMMA.1688.F32", "fp16", (16, 8, 8)),
        ("HMMA.16816.F32", "fp16", (16, 8, 16)),
        ("HMMA.16816.F32.BF16", "bf16", (16, 8, 16)),
        ("HMMA.1684.F32.TF32", "tf32", (16, 8, 4)),
        ("IMMA.8816.S8.S8.SAT", "int8", (8, 8, 16)),
        ("IMMA.16832.U8.S8", "int8", (16, 8, 32)),
        ("DMMA.884", "fp64", (8, 8, 4)),
        ("QMMA.16832.F32.E4M3.E4M3", "fp8", (16, 8, 32)),
        ("OMMA.SF.16864.F32.E2M1.E2M1.UE8.2X", "fp4", (16, 8, 64)),
    ],
)
def test_a_warps_product_is_of_its_shape(
    opcode: str, kind: str, shape: tuple[int, int, int]
) -> None:
    m, n, k = shape
    assert work(opcode)[kind] == 2 * m * n * k
    assert {one for one in work(opcode) if one in KINDS} == {kind}


def test_four_warps_do_a_warpgroups_product() -> None:
    assert work("HGMMA.64x128x16.F32") == {"fp16": 2 * 64 * 128 * 16 / 4}
    assert work("QGMMA.64x64x32.F32.E4M3.E4M3") == {"fp8": 2 * 64 * 64 * 32 / 4}


@pytest.mark.parametrize(("types", "steps"), [("F32.F32", 4), ("F16.F16", 2)])
def test_voltas_steps_are_one_product_of_each_quarter_warp(types: str, steps: int) -> None:
    executed = [(f"HMMA.884.{types}.STEP{step}", 1.0) for step in range(steps)]
    counted = tensor_operations(executed)
    assert counted is not None
    assert counted["fp16"] == 4 * 2 * 8 * 8 * 4


def test_what_sparse_and_half_precision_accumulation_did_is_distinguished() -> None:
    assert work("HMMA.SP.16832.F32")["sparse"] == 2 * 16 * 8 * 32
    assert work("HMMA.16816.F16")["fp16_accumulate"] == 2 * 16 * 8 * 16
    assert "fp16_accumulate" not in work("HMMA.16816.F32")


def test_what_is_no_matrix_product_does_none() -> None:
    assert work("HFMA2.MMA") == work("FFMA") == work("IMMA.8832.S4.S4") == work("") == {}


@pytest.mark.parametrize("opcode", ["UTCHMMA", "UTCQMMA.2CTA", "HMMA.F32", "XMMA.16816"])
def test_work_that_a_name_does_not_state_is_unknown(opcode: str) -> None:
    assert tensor_operations([("HMMA.16816.F32", 5.0), (opcode, 1.0)]) is None
    assert tensor_operations([("HMMA.16816.F32", 5.0), (opcode, 0.0)]) is not None


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
    counts = {"HFMA2": 3.0, "HADD2": 1.0, "HMMA": 5.0, "IMMA": 2.0, "HGMMA": 1.0, "FFMA": 9.0}
    assert instructions("half", counts) == 4
    assert instructions("tensor", counts) == 8
    assert math.isnan(instructions("half", {}))
    assert math.isnan(instructions("tensor", {}))


def test_instructions_by_class() -> None:
    counts = {"FFMA": 10.0, "IMAD.WIDE": 4.0, "ISETP.GE.AND": 3.0, "LDG.E": 2.0, "BAR.SYNC": 1.0}
    assert instructions("fp32", counts) == 10
    assert instructions("integer", counts) == 7
    assert instructions("barrier", counts) == 1
    assert instructions("fp64", counts) == 0
    assert math.isnan(instructions("fp32", {}))
