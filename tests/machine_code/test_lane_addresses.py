"""Addresses of a warp's lanes from code: by hand, and against what ncu counted."""

from __future__ import annotations

import pytest

from profkit.analysis.report import load
from profkit.machine_code.flow import Flow
from profkit.machine_code.lane_addresses import Access, accesses
from profkit.machine_code.operation import parse
from profkit.report.catalog import catalog
from profkit.report.cubin import launch_code
from profkit.report.reader import by_address
from tests.conftest import H200

_FULL = 31.9  # lanes of a warp that executed, mean: all but rounding


def only(*lines: str, block: tuple[int, ...] = (256,)) -> Access:
    """The access of a code that has one."""
    code = Flow(range(0, 16 * len(lines), 16), [parse(line) for line in lines])
    (access,) = accesses(code, block, (64,))
    return access


@pytest.mark.parametrize(
    ("code", "wavefronts", "needed"),
    [
        (("IMAD.SHL.U32 R1, R0, 0x4, RZ", "LDS R2, [R1]"), 1, 1),
        (("IMAD.SHL.U32 R1, R0, 0x8, RZ", "LDS R2, [R1]"), 2, 1),  # words 0, 2, ..., 62
        (("SHF.L.U32 R1, R0, 0x7, RZ", "STS [R1+0x40], R2"), 32, 1),  # a row of 32 words a lane
        (("LEA R1, R0, R0, 0x5", "IMAD.SHL.U32 R1, R1, 0x4, RZ", "LDS R2, [R1]"), 1, 1),  # 33 words
        (("LOP3.LUT R1, R0, 0x10, RZ, 0xc0, !PT", "LDS R2, [R1]"), 1, 1),  # two words, broadcast
        (("IMAD.SHL.U32 R1, R0, 0x10, RZ", "LDS.128 R4, [R1]"), 4, 4),
        (("MOV R1, 0x20", "LDS.128 R4, [R1]"), 2, 2),  # one for each half of the warp
    ],
)
def test_bank_conflicts_follow_from_the_addresses(
    code: tuple[str, ...], wavefronts: int, needed: int
) -> None:
    access = only("S2R R0, SR_TID.X", *code)
    assert (access.wavefronts, access.needed_wavefronts) == (wavefronts, needed)


@pytest.mark.parametrize(
    ("code", "sectors", "needed"),
    [
        (("IMAD.WIDE R2, R0, 0x4, R8", "LDG.E R4, desc[UR4][R2.64]"), 4, 4),
        (("IMAD.WIDE R2, R0, 0x10, R8", "LDG.E.128 R4, desc[UR4][R2.64]"), 16, 16),
        (
            ("IMAD.WIDE R2, R0, 0x3c, R8", "LDG.E R4, desc[UR4][R2.64]"),
            32,
            4,
        ),  # structs
        # a row of the size of a parameter a lane
        (("IMAD R1, R0, c[0x0][0x228], RZ", "STG.E desc[UR4][R1.64], R5"), 32, 4),
        (("MOV R2, c[0x0][0x210]", "LDG.E R4, desc[UR4][R2.64]"), 1, 1),
    ],
)
def test_sectors_follow_from_the_addresses(
    code: tuple[str, ...], sectors: int, needed: int
) -> None:
    access = only("S2R R0, SR_TID.X", *code)
    assert (access.sectors, access.needed_sectors) == (sectors, needed)


def test_lanes_of_a_narrow_block_lie_in_several_rows() -> None:
    rows = ("S2R R0, SR_TID.Y", "SHF.L.U32 R1, R0, 0x7, RZ", "LDS R2, [R1]")
    assert only(*rows, block=(8, 8)).wavefronts == 4


def test_what_was_loaded_at_addresses_that_differ_is_unknown() -> None:
    gather = (
        "S2R R0, SR_TID.X", "IMAD.WIDE R2, R0, 0x4, R8", "LDG.E R4, desc[UR4][R2.64]",
        "IMAD.WIDE R6, R4, 0x4, R8", "LDG.E R5, desc[UR4][R6.64]",
    )  # fmt: skip
    code = Flow(range(0, 80, 16), [parse(line) for line in gather])
    first, second = accesses(code, (32,), (1,))
    assert first.sectors == 4
    assert second.addresses is None


@pytest.mark.parametrize("pair", ["transpose_conflicts", "reduction_conflicts", "control_copy"])
def test_accesses_are_as_ncu_counted_them(pair: str) -> None:
    report = load(H200 / "pairs" / pair / "before.ncu-repz")
    launch, lines = report.kernel(0), catalog().lines
    action = launch._action
    names = ("instructions_executed", "thread_instructions", "shared_wavefronts", "global_sectors")
    executed, threads, wavefronts, sectors = (
        by_address(action, lines[name].metric) or {} for name in names
    )
    code = launch_code(action)
    assert code
    compared = 0
    for access in accesses(code, launch.summary.block, launch.summary.grid):
        address = code.addresses[access.index]
        times = executed.get(address, 0.0)
        counted = (wavefronts if access.is_shared else sectors).get(address, 0.0)
        if counted and threads[address] > _FULL * times:
            own = access.wavefronts if access.is_shared else access.sectors
            assert own == pytest.approx(counted / times, rel=0.1)
            compared += 1
    assert compared >= 2
