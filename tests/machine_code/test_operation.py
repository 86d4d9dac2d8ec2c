"""What instructions read and write, as the vendor prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.machine_code.operation import parse


@pytest.mark.parametrize(
    ("text", "writes", "reads"),
    [
        ("IMAD.MOV.U32 R9, RZ, RZ, R4", "R9", "R4"),
        ("@!P0 LDG.E.64 R2, desc[UR4][R6.64+0x10]", "R2 R3", "P0 R6 R7 UR4 UR5"),
        ("LDG.E.128.CONSTANT R4, [R2.64]", "R4 R5 R6 R7", "R2 R3"),
        ("LDG.E.SYS R0, [R2]", "R0", "R2 R3"),
        ("LDS.U.128 R4, [R2.X4+0x10]", "R4 R5 R6 R7", "R2"),
        ("LDSM.16.MT88.4 R64, [R2+UR8+0x40]", "R64 R65 R66 R67", "R2 UR8"),
        ("STG.E.64 desc[UR4][R4.64+0x8], R8", "", "R4 R5 UR4 UR5 R8 R9"),
        ("STL [R1+0xb0], R3", "", "R1 R3"),
        ("LDGSTS.E.BYPASS.128 [R13+0x7800], desc[UR6][R8.64]", "", "R13 R8 R9 UR6 UR7"),
        ("LDC.64 R2, c[0x0][0x220]", "R2 R3", ""),
        ("ULDC.U8 UR5, c[0x0][UR5+0x240]", "UR5", "UR5"),
        ("IMAD.WIDE R2, R3, 0x4, R4", "R2 R3", "R3 R4 R5"),
        ("IMAD.WIDE.U32 R10, P0, R8, R7, R10", "R10 R11 P0", "R8 R7 R10 R11"),
        ("IMAD.HI.U32 R7, R7, R5, R6", "R7", "R7 R5 R6"),
        ("IADD3 R10, P2, R10, 0x800, RZ", "R10 P2", "R10"),
        ("IADD3.X R11, RZ, R11, RZ, P2, !PT", "R11", "R11 P2"),
        ("LEA.HI.X R4, R4, UR5, R5, 0x2, P0", "R4", "R4 UR5 R5 P0"),
        ("LOP3.LUT P1, RZ, R0, 0x7, RZ, 0xc0, !PT", "P1", "R0"),
        ("ISETP.GE.AND P0, PT, R2, UR4, P3", "P0", "R2 UR4 P3"),
        ("PLOP3.LUT P0, PT, P0, P1, PT, 0xa8, 0x0", "P0", "P0 P1"),
        ("VOTE.ANY P0, !P0", "P0", "P0"),
        ("VOTEU.ANY UR4, UPT, PT", "UR4", ""),
        ("SHFL.BFLY PT, R5, R2, 0x10, 0x1f", "R5", "R2"),
        ("ATOMG.E.ADD.STRONG.GPU PT, R3, desc[UR6][R8.64], R5", "R3", "R8 R9 UR6 UR7 R5"),
        ("RED.E.ADD [R2.64], R4", "", "R2 R3 R4"),
        ("R2UR P0, UR10, R15", "P0 UR10", "R15"),
        ("P2R R240, PR, RZ, 0x20", "R240", "P0 P1 P2 P3 P4 P5 P6"),
        ("R2P PR, R8, 0x6", "P0 P1 P2 P3 P4 P5 P6", "R8"),
        ("FADD R10, -|R11|.reuse, 1", "R10", "R11"),
        ("HFMA2 R5, R5, R6.H0_H0, R3", "R5", "R5 R6 R3"),
        ("DADD R16, -R78, R2", "R16 R17", "R78 R79 R2 R3"),
        ("DSETP.GTU.AND P0, PT, |R4|, +INF , PT", "P0", "R4 R5"),
        ("F2F.F32.F64 R19, R4", "R19", "R4 R5"),
        ("F2F.F64.F32 R6, UR5", "R6 R7", "UR5"),
        ("F2I.S64.TRUNC R4, R2", "R4 R5", "R2"),
        ("I2F.F64 R2, R0", "R2 R3", "R0"),
        ("HMMA.16816.F32 R4, R12, R84, RZ", "R4 R5 R6 R7", "R12 R13 R14 R15 R84 R85"),
        ("@!PT LDS R4, [R2]", "", "R2"),
        ("BRA P3, 0x7f8aef7e1ec0", "", "P3"),
        ("EXIT", "", ""),
    ],
)
def test_operands(text: str, writes: str, reads: str) -> None:
    told = parse(text)
    assert list(told.writes) == writes.split()
    assert sorted(told.reads) == sorted(reads.split())


def test_wgmma_reads_and_writes_its_whole_tile() -> None:
    told = parse("HGMMA.64x64x16.F32 R88, R24, gdesc[UR12].tnspB, R88.gsb0")
    assert told.writes == tuple(f"R{at}" for at in range(88, 120))
    assert {"R24", "R27", "UR12", "UR15", "R88", "R119"} <= set(told.reads)


def test_guards_addresses_constants_and_targets() -> None:
    told = parse("@!UP2 LDG.E R4, desc[UR4][R2.64+UR8]")
    assert (told.guard, told.conditional) == ("!UP2", True)
    assert told.addresses == ("R2", "R3", "UR8")
    assert parse("IADD3 R2, P0, R4, c[0x0][0x160], RZ").constants == ((0, 0x160),)
    assert parse("@P0 BRA 0x7f5183ca3b20").target == 0x7F5183CA3B20
    assert parse("RET.REL.NODEC R4, 0x7f5183cb3400").target is None
    assert not parse("@PT MOV R1, R2").conditional


@given(st.text() | st.from_regex(r"(@!?U?P\d )?[A-Z0-9.x]+( [\w\[\].+|~!-]+,?)*", fullmatch=True))
def test_any_text_is_read(text: str) -> None:
    told = parse(text)
    assert set(told.addresses) <= set(told.reads)
