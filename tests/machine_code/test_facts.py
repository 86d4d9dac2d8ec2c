"""What code shows, on code whose facts can be counted by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.machine_code.facts import LOOP_WEIGHT, CodeFacts
from profkit.machine_code.flow import Flow
from profkit.machine_code.operation import parse
from profkit.rules.samples import CODE


def facts(*lines: str) -> Mapping[str, float]:
    code = Flow(range(0x1000, 0x1000 + 16 * len(lines), 16), [parse(line) for line in lines])
    return CodeFacts(code, (128,), (256,)).values


def test_every_fact_is_in_the_vocabulary() -> None:
    assert facts("EXIT").keys() == CODE.keys()


def test_instructions_of_a_loop_weigh_as_its_rounds() -> None:
    mix = facts(
        "MUFU.EX2 R0, R1",
        "FFMA R2, R3, R4, R2",
        "FFMA R5, R3, R4, R5",
        "@P0 BRA 0x1010",
        "EXIT",
    )
    total = 2 + 3 * LOOP_WEIGHT
    assert mix["code_loop_share"] == pytest.approx(3 * LOOP_WEIGHT / total)
    assert mix["code_ffma_share"] == pytest.approx(2 * LOOP_WEIGHT / total)
    assert mix["code_xu_cycles"] == pytest.approx(8 / total)
    # each multiply-add of a chain waits for the one of the round before: 4 cycles a round of three
    assert mix["code_carried_cycles"] == pytest.approx(4 / 3)


def test_loads_in_flight_are_those_before_the_first_use() -> None:
    loads = [f"LDG.E R{number}, desc[UR4][R20.64]" for number in (4, 5, 6)]
    apart = [line for load in loads for line in (load, f"FADD R9, {load.split()[1]} R9")]
    assert facts(*loads, "FADD R9, R4, R5", "EXIT")["code_loads_in_flight"] == 3
    assert facts(*apart, "EXIT")["code_loads_in_flight"] == 1


def test_a_load_whose_address_is_its_own_result_is_linked() -> None:
    chase = ("LDG.E.64 R2, desc[UR4][R2.64]", "ISETP.NE.AND P0, PT, R2, RZ, PT")
    assert facts(*chase, "@P0 BRA 0x1000", "EXIT")["code_linked_share"] == 1
    assert facts(*chase, "EXIT")["code_linked_share"] == 0


def test_loops_and_branches_that_loaded_data_decide() -> None:
    row = (
        "LDG.E R4, desc[UR4][R20.64]",
        "IADD3 R5, R5, 0x1, RZ",
        "ISETP.LT.AND P0, PT, R5, R4, PT",
        "@P0 BRA 0x1010",
        "EXIT",
    )
    assert facts(*row)["code_loops_on_data"] > 0.8
    counted = ("MOV R4, c[0x0][0x220]", *row[1:])
    assert facts(*counted)["code_loops_on_data"] == 0


def test_a_product_that_is_added_could_be_fused() -> None:
    assert facts("FMUL R2, R3, R4", "FADD R5, R5, R2", "EXIT")["code_unfused_share"] > 0
    assert facts("FFMA R5, R3, R4, R5", "EXIT")["code_unfused_share"] == 0


_OPERANDS = st.sampled_from(
    ["R0", "R1", "-R2", "UR4", "RZ", "PT", "P0", "0x7", "010", "-0x1", "1.5", "c[0x0][0x0]", "[R1]",
     "[R1.X4+0x10]", "desc[UR4][R2.64+-0x8]", "SR_TID.X", "SR_CTAID.X", "0xffffffffffff", "0x1010"]
)  # fmt: skip
_OPCODES = st.sampled_from(
    ["LDG.E", "LDS.128", "STS", "S2R", "IMAD.WIDE", "IMAD.HI.U32", "IADD3", "LEA.HI",
     "SHF.R.U32.HI", "LOP3.LUT", "SGXT.U32", "PRMT", "SEL", "IMNMX", "BRA", "@P0 BRA", "BSSY",
     "FADD", "MUFU.RCP", "HMMA.16816.F32", "EXIT", "?"]
)  # fmt: skip


@given(st.lists(st.tuples(_OPCODES, st.lists(_OPERANDS, max_size=6)), min_size=1, max_size=30))
def test_any_code_has_facts(rows: list[tuple[str, list[str]]]) -> None:
    values = facts(*(f"{opcode} {', '.join(operands)}" for opcode, operands in rows))
    assert all(value >= 0 for value in values.values())
    shares = [value for name, value in values.items() if name.endswith("_share")]
    assert max(shares) <= 1
