"""Blocks, loops and producers in hand-written machine code, and in recorded kernels."""

from __future__ import annotations

from collections.abc import Iterator

import profkit
from profkit.machine_code.flow import Flow
from profkit.machine_code.operation import parse
from profkit.report.catalog import catalog
from profkit.report.source_lines import instructions
from tests.conftest import FULL, h200, pair_report


def flow(code: str) -> Flow:
    """The flow of a listing, an instruction a line; `L3` stands for the address of line 3."""
    lines = [line.strip() for line in code.strip().splitlines()]
    text = [
        " ".join(
            hex(0x1000 + 16 * int(word[1:])) if word[0] == "L" and word[1:].isdigit() else word
            for word in line.split()
        )
        for line in lines
    ]
    return Flow([0x1000 + 16 * at for at in range(len(lines))], [parse(line) for line in text])


LOOP = flow("""
    LDC.64 R2, c[0x0][0x210]
    MOV R5, RZ
    LDG.E R4, desc[UR4][R2.64]
    FADD R5, R5, R4
    IADD3 R2, R2, 0x4, RZ
    ISETP.NE.AND P0, PT, R2, R9, PT
    @P0 BRA L2
    STG.E desc[UR4][R6.64], R5
    EXIT
""")
NESTED = flow("""
    MOV R0, RZ
    MOV R1, RZ
    IADD3 R1, R1, 0x1, RZ
    @P0 BRA L2
    IADD3 R0, R0, 0x1, RZ
    @P1 BRA L1
    EXIT
""")
BRANCHES = flow("""
    MOV R0, R7
    @P0 BRA L4
    MOV R0, 0x1
    BRA L5
    @P1 MOV R0, 0x2
    IADD3 R1, R0, 0x3, RZ
    EXIT
""")

ONE_BARRIER_TWICE = flow("""
    BSSY B0, L4
    @P0 BRA L3
    MOV R0, 0x1
    BSYNC B0
    BSSY B0, L8
    @P1 BRA L7
    MOV R0, 0x2
    BSYNC B0
    EXIT
""")


def test_blocks_end_at_branches_and_begin_at_targets() -> None:
    assert [(block.start, block.end) for block in LOOP.blocks] == [(0, 2), (2, 7), (7, 9)]
    assert [block.successors for block in LOOP.blocks] == [(1,), (1, 2), ()]


def test_a_back_edge_closes_a_loop() -> None:
    (loop,) = LOOP.loops
    assert (loop.head, loop.blocks, loop.depth) == (1, frozenset({1}), 0)
    assert LOOP.loop_of(3) is loop
    assert LOOP.loop_of(0) is None


def test_a_barrier_used_again_makes_no_loop() -> None:
    assert not ONE_BARRIER_TWICE.loops
    assert ONE_BARRIER_TWICE.leads(0, 8)
    assert not ONE_BARRIER_TWICE.leads(6, 2)


def test_loops_nest() -> None:
    outer, inner = NESTED.loops
    assert (outer.depth, inner.depth) == (0, 1)
    assert inner.blocks < outer.blocks
    assert NESTED.loop_of(2) is inner
    assert NESTED.loop_of(4) is outer


def test_producers_are_found_up_the_line_and_around_the_loop() -> None:
    assert LOOP.producers("R4", 3) == (2,)
    assert set(LOOP.producers("R5", 3)) == {3, 1}
    assert set(LOOP.producers("R2", 2)) == {4, 0}
    assert LOOP.producers("R9", 5) == ()
    assert LOOP.producers("R2", 2, frozenset({1})) == (4,)


def test_a_predicated_write_leaves_the_older_value() -> None:
    assert sorted(BRANCHES.producers("R0", 5)) == [0, 2, 4]


def test_writes_under_one_predicate_follow_each_other() -> None:
    guarded = flow("""
        MOV R2, R9
        @P1 LDC.64 R2, c[0x0][0x210]
        @P1 IMAD.WIDE R2, R5, 0x4, R2
        @P1 LDG.E R7, desc[UR4][R2.64]
        ISETP.NE.AND P1, PT, R7, RZ, PT
        @P1 MOV R8, R2
    """)
    assert guarded.producers("R2", 3) == (2,)
    assert guarded.producers("R2", 5) == (2, 1, 0)


def test_a_slice_holds_all_that_a_value_rests_on() -> None:
    assert set(LOOP.sources([(7, ["R5"])])) == {0, 1, 2, 3, 4}
    assert LOOP.sources([(3, ["R4"])], None, lambda _: ()) == (2,)


def test_what_may_follow_what() -> None:
    assert LOOP.leads(3, 2)
    assert not LOOP.leads(7, 2)
    assert not BRANCHES.leads(2, 4)


def test_live_registers_by_hand() -> None:
    """R6, R7 and R9 come from outside; R2 and R3 are the address, R5 the sum, R4 what was read."""
    assert LOOP.live() == [5, 6, 7, 7, 6, 6, 6, 3, 0]
    assert BRANCHES.live() == [1, 1, 1, 1, 1, 1, 0]
    assert Flow([], []).live() == []


def test_what_is_never_read_lives_where_it_is_written() -> None:
    assert flow("MOV R0, RZ\nMOV R1, RZ\nEXIT").live() == [1, 1, 0]


def test_no_code_is_no_blocks() -> None:
    assert Flow([], []).blocks == ()
    assert Flow([], []).loops == ()


def recorded() -> Iterator[profkit.Report]:
    yield from (h200(name) for name in FULL)
    for pair in ("pointer_chase", "softmax_passes", "mma_sync_gemm", "barrier_lockstep"):
        yield profkit.load(pair_report(pair, "before"))


def test_addresses_of_recorded_loads_come_from_somewhere() -> None:
    """Every load's address has a producer, but in functions, whose callers give it."""
    executed = catalog().lines["instructions_executed"].metric
    for report in recorded():
        for kernel in report:
            rows = instructions(kernel._action, {"executed": executed})
            code = Flow([row.address for row in rows], [parse(row.sass) for row in rows])
            assert sum(block.end - block.start for block in code.blocks) == len(rows)
            calls = any(one.base == "CALL" for one in code.operations)
            for at, one in enumerate(code.operations):
                if one.base == "LDG" and not calls:
                    assert all(code.producers(name, at) for name in one.addresses), rows[at]
