"""Which instruction a stall waits for, and what samples give to rules."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.machine_code.blame import FIXED, LONG, SHORT, Instruction, Samples
from profkit.rules.samples import SAMPLED, Match, Sampled

BASE = 0x1000


def samples(code: str) -> Samples:
    """A listing, an instruction a line: the text, then values after a `;` as `name=value`.

    `L3` stands for the address of line 3. Every instruction ran once unless it says.
    """
    rows = []
    for at, line in enumerate(code.strip().splitlines()):
        text, _, told = line.partition(";")
        words = [
            hex(BASE + 16 * int(word[1:])) if word[0] == "L" and word[1:].isdigit() else word
            for word in text.split()
        ]
        rows.append(Instruction(BASE + 16 * at, " ".join(words), "a.cu", at + 1, values(told)))
    return Samples(rows)


def values(told: str) -> Mapping[str, float]:
    names = {"x": "instructions_executed", "sectors": "global_sectors"}
    pairs = (pair.split("=") for pair in told.split())
    given = {names.get(name, f"samples_{name}"): float(value) for name, value in pairs}
    return {"instructions_executed": 1.0, **given}


def facts(code: str) -> Sampled:
    return Sampled(samples(code), lambda _, line: f"line {line}")


CHASE = """
    LDC.64 R4, c[0x0][0x210]
    IMAD.WIDE R2, R9, 0x4, R4 ; long_scoreboard=40
    LDG.E R9, desc[UR4][R2.64] ; selected=5
    IADD3 R7, R7, 0x1, RZ
    ISETP.NE.AND P0, PT, R7, R8, PT ; selected=5
    @P0 BRA L1
    EXIT
"""
TWO_LOADS = """
    LDC.64 R4, c[0x0][0x210]
    IMAD.WIDE R2, R9, 0x4, R4
    LDG.E R10, desc[UR4][R2.64]
    FADD R11, R11, R10 ; long_scoreboard=60
    IMAD.WIDE R2, R9, 0x4, R6
    LDG.E R9, desc[UR4][R2.64]
    ISETP.GE.AND P0, PT, R9, RZ, PT ; long_scoreboard=30
    @P0 BRA L1 ; selected=10
    EXIT
"""
UNROLLED = """
    MOV R2, R20
    LDG.E R10, desc[UR4][R2.64]
    LDG.E R11, desc[UR4][R2.64+0x4]
    LDG.E R12, desc[UR4][R2.64+0x8]
    LDG.E R13, desc[UR4][R2.64+0xc]
    FADD R1, R1, R10 ; long_scoreboard=80 selected=10
    FADD R1, R1, R11 ; wait=10
    FADD R1, R1, R12
    FADD R1, R1, R13
    IADD3 R2, R2, 0x10, RZ
    ISETP.NE.AND P0, PT, R2, R8, PT
    @P0 BRA L1
    EXIT
"""


def passes(first: str, second: str) -> str:
    return f"""
    LDC.64 R4, c[0x0][{first}]
    LDC.64 R6, c[0x0][{second}]
    S2R R9, SR_TID.X
    IMAD.WIDE R2, R9, 0x4, R4
    LDG.E R10, desc[UR4][R2.64] ; sectors=100 selected=1
    IADD3 R2, P0, R2, 0x80, RZ
    @P1 BRA L4
    IMAD.WIDE R2, R9, 0x4, R6
    LDG.E R11, desc[UR4][R2.64] ; sectors=98
    IADD3 R2, P0, R2, 0x80, RZ
    @P1 BRA L8
    EXIT
    """


def test_the_load_is_blamed_and_not_its_first_use() -> None:
    (wait,) = samples(CHASE).waits(LONG)
    assert (wait.waiter, wait.producer, wait.samples) == (1, 2, 40.0)
    (place,) = facts(CHASE).causes(LONG, 3)
    assert (place.line, place.share) == (3, 1.0)


def test_samples_are_shared_by_how_often_producers_ran() -> None:
    told = samples("""
        @P0 LDG.E R2, desc[UR4][R8.64] ; x=1
        @!P0 LDG.E R2, desc[UR4][R10.64] ; x=3
        FADD R3, R2, R2 ; long_scoreboard=8
    """)
    assert {wait.producer: wait.samples for wait in told.waits(LONG)} == {0: 2.0, 1: 6.0}


def test_what_was_awaited_before_is_awaited_no_more() -> None:
    told = samples("""
        LDG.E.64 R2, desc[UR4][R8.64]
        LDG.E R4, desc[UR4][R10.64]
        FADD R6, R2, RZ ; long_scoreboard=1
        FADD R7, R3, R4 ; long_scoreboard=9
    """)
    assert {(wait.waiter, wait.producer) for wait in told.waits(LONG)} == {(2, 0), (3, 1)}


@pytest.mark.parametrize(
    ("code", "reason", "producer"),
    [
        ("LDG.E R2, [R8.64]\nLDS R3, [R9]\nFADD R4, R2, R3 ; short_scoreboard=1", SHORT, 1),
        ("LDG.E R2, [R8.64]\nLDS R3, [R9]\nFADD R4, R2, R3 ; long_scoreboard=1", LONG, 0),
        ("MUFU.RCP R2, R3\nFMUL R4, R2, R2 ; short_scoreboard=1", SHORT, 0),
        ("LDG.E R2, [R8.64]\nIADD3 R8, R8, 0x4, RZ ; long_scoreboard=1", LONG, 0),
        ("FADD R2, R3, R3\nNOP\nFADD R4, R2, R2 ; wait=1", FIXED, 0),
        ("FADD R2, R3, R3\nNOP ; wait=1", FIXED, 0),
        ("LDGSTS.E [R2], [R8.64]\nLDGDEPBAR\nDEPBAR.LE SB0, 0x0 ; long_scoreboard=1", LONG, 0),
    ],
)
def test_reasons_have_their_causes(code: str, reason: str, producer: int) -> None:
    assert [wait.producer for wait in samples(code).waits(reason)] == [producer]


def test_a_chain_of_loads_is_distinguished_from_independent_ones() -> None:
    assert facts(CHASE).get("linked_share") == 1.0
    assert facts(CHASE).get("chased_share") == 1.0
    assert facts(CHASE).get("overlap_share") == 0.0
    assert facts(UNROLLED).get("linked_share") == 0.0
    assert facts(UNROLLED).get("loads_per_wait") == 4.0


def test_an_index_list_is_no_chain() -> None:
    told = facts("""
        IADD3 R2, R2, 0x4, RZ
        LDG.E R9, desc[UR4][R2.64]
        IMAD.WIDE R4, R9, 0x4, R6 ; long_scoreboard=10
        LDG.E R10, desc[UR4][R4.64]
        FADD R11, R11, R10 ; long_scoreboard=30
        @P0 BRA L0
        EXIT
    """)
    assert told.get("linked_share") == 0.0
    assert told.get("chased_share") == 0.75


def test_loads_that_need_not_wait_for_each_other_overlap() -> None:
    assert facts(TWO_LOADS).get("overlap_share") == 0.3


def test_a_match_selects_samples() -> None:
    told = facts(UNROLLED)
    by_load = (Match(stall=(LONG,), producer=("LDG*",), in_loop=True),)
    assert told.get("matched", by_load) == 0.8
    assert told.get("matched_active", by_load) == 0.1
    assert told.get("matched", (Match(producer=("LDS*",)),)) == 0.0
    assert told.get("matched", (Match(opcode=("FADD",)),)) == 1.0
    assert told.get("matched", (Match(line=("line 7",)), Match(stall=("selected",)))) == 0.2


def test_an_array_read_in_two_loops_is_read_again() -> None:
    assert facts(passes("0x210", "0x210")).get("reread_share") == pytest.approx(98 / 198)
    assert facts(passes("0x210", "0x218")).get("reread_share") == 0.0


PEELED = """
    LDC.64 R4, c[0x0][0x210]
    S2R R6, SR_TID.X
    IMAD.WIDE R2, R6, 0x4, R4
    LDG.E R8, desc[UR4][R2.64] ; x=10 sectors=100 long_scoreboard=1
    IADD3 R2, P0, R2, 0x80, RZ
    @P1 BRA L3
    LDG.E R9, desc[UR4][R2.64] ; x=10 sectors=100
    IADD3 R2, P0, R2, 0x80, RZ
    @P1 BRA L6
    EXIT
"""
STEPPING = """
    LDC.64 R4, c[0x0][0x210]
    S2R R6, SR_TID.X
    IMAD.WIDE R2, R6, 0x4, R4
    LDG.E R8, desc[UR4][R2.64] ; sectors=100 long_scoreboard=1
    BAR.SYNC.DEFER_BLOCKING 0x0
    IMAD.WIDE R2, R10, c[0x0][0x0], R2
    LDG.E R9, desc[UR4][R2.64] ; sectors=100
    EXIT
"""


@pytest.mark.parametrize("code", [PEELED, STEPPING])
def test_the_parts_of_one_unrolled_loop_read_what_comes_next(code: str) -> None:
    """A remainder loop and the main one, and what follows a step from the address before."""
    assert facts(code).get("reread_share") == 0.0


def test_the_same_place_read_after_a_barrier_is_read_again() -> None:
    again = STEPPING.replace("IMAD.WIDE R2, R10, c[0x0][0x0], R2", "NOP")
    assert facts(again).get("reread_share") == 0.5


INDEXED = """
    S2R R6, SR_TID.X ; x=10
    IMAD.WIDE R2, R6, 0x4, R4 ; x=10
    SHF.R.U32.HI R7, RZ, 0x5, R6 ; x=10
    LEA R10, R7, R11, 0x2 ; x=10
    LDG.E R8, desc[UR4][R2.64] ; x=10 selected=1
    FADD R9, R8, R8 ; x=10
    STG.E desc[UR4][R10.64], R9 ; x=10
    EXIT ; x=10
"""
PHILOX = """
    S2R R6, SR_TID.X ; x=10
    IMAD.HI.U32 R7, R6, 0xcd9e8d57, RZ ; x=10
    LOP3.LUT R8, R7, R12, R13, 0x96, !PT ; x=10
    IMAD.WIDE.U32 R14, R8, 0xd2511f53, RZ ; x=10
    LOP3.LUT R9, R15, R16, R14, 0x96, !PT ; x=10
    I2FP.F32.U32 R10, R9 ; x=10
    FFMA R11, R10, 2.3283064365386962891e-10, R17 ; x=10
    IMAD.WIDE R2, R6, 0x4, R4 ; x=10 selected=1
    STG.E desc[UR4][R2.64], R11 ; x=10
    EXIT ; x=10
"""


def test_index_arithmetic_is_distinguished_from_integers_that_are_stored() -> None:
    assert facts(INDEXED).get("overhead_share") == pytest.approx(4 / 8)
    assert facts(PHILOX).get("overhead_share") == pytest.approx(2 / 10)


def test_facts_of_samples_are_unknown_without_samples() -> None:
    told = facts("LDG.E R2, [R8.64]\nEXIT")
    assert all(math.isnan(told.get(name)) for name in SAMPLED)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([line.partition(";")[0].strip() for line in CHASE.split("\n")[1:-1]]),
            st.integers(0, 9),
        ),
        min_size=1,
    )
)
def test_shares_stay_within_bounds(lines: list[tuple[str, int]]) -> None:
    told = facts("\n".join(f"{text} ; long_scoreboard={count}" for text, count in lines))
    for name in set(SAMPLED) - {"loads_per_wait"}:
        value = told.get(name, (Match(stall=(LONG,)),))
        assert math.isnan(value) or 0 <= value <= 1 + 1e-9


@pytest.mark.parametrize("pattern", ["*a" * 49 + "b", "a*" * 49 + "b", "*?" * 49 + "b", "*" * 100])
def test_no_pattern_takes_long(pattern: str) -> None:
    code = "\n".join(["FADD R1, R2, R3 ; wait=1"] * 100)
    told = Sampled(samples(code), lambda *_: "a" * 1000)
    started = time.process_time()
    told.get("matched", (Match(line=(pattern,)),))
    assert time.process_time() - started < 10
