"""Claims about launches and SMs: occupancy, what fits on an SM, limits, waves, numbers of SMs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from profkit.audit.contradiction import Amount, Check, Words, check, statement
from profkit.audit.implied import Span, Subject
from profkit.audit.printed_numbers import Figure
from profkit.report.gpus import SmLimits, all_sm_limits, datasheets_named, sm_limits
from profkit.report.occupancy import WARP, BlockNeeds, blocks_by_registers, blocks_by_shared
from profkit.report.occupancy import warps_per_block as warps_of

# CUDA C++ Programming Guide, technical specifications: the same on every compute capability.
_MAX_REGISTERS = 255
_MAX_THREADS = 1024
# Occupancies are printed to whole per cents, or cut to them.
_OCCUPANCY_SLACK = 0.006
_WAVES_SLACK = 0.02


def limits(subject: Subject) -> Iterator[Check]:
    """A thread has 255 registers at most, a block 1,024 threads and the SM's shared memory."""
    meant = _chips(subject)
    warps = max(one.chip.warps for one in meant)
    for field, limit, words in (
        ("registers", _MAX_REGISTERS, "a thread has at most "),
        ("threads", _MAX_THREADS, "a block has at most "),
        ("shared", max(one.block_shared for one in meant), "a block has at most "),
        ("resident_warps", warps, "an SM holds at most "),
        ("resident_threads", warps * WARP, "an SM holds at most "),
        ("resident_blocks", max(one.chip.blocks for one in meant), "an SM holds at most "),
    ):
        yield from _at_most(subject, "launch limit", field, float(limit), (words,), ())


def _at_most(
    subject: Subject, rule: str, field: str, limit: float, words: Words, used: tuple[str, ...],
) -> Iterator[Check]:  # fmt: skip
    claimed = getattr(subject.claim, field)
    if not isinstance(claimed, Figure):
        return
    span = Span(min(claimed.value, limit) or claimed.value, 0.0, limit)
    yield from check(
        subject, rule, field, [span], lambda _: (*words, _count(limit, field)),
        used=used, should_be=lambda _: ("at most ", _count(limit, field)), slack=0.0,
    )  # fmt: skip


def _count(value: float, field: str) -> str:
    if field == "shared":
        return f"{value / 1024:g} KB"
    if field.endswith("occupancy"):
        return f"{value:.0%}"
    return f"{value:,.0f} {field.removeprefix('resident_')}"


def _chips(subject: Subject) -> list[SmLimits]:
    """The limits of the SMs that are meant: of every capability where no known GPU is named."""
    known = [found for sheet in subject.sheets if (found := sm_limits(sheet.cc))]
    return known or all_sm_limits()


def _resident(subject: Subject, chip: SmLimits) -> tuple[int, Words]:
    """The most blocks of the claimed shape on an SM, and the calculation."""
    claim = subject.claim
    threads = int(claim.threads.value) if claim.threads else WARP
    warps = _warps(subject)
    fits = {"blocks": chip.chip.blocks, "warps": chip.chip.warps // warps}
    if claim.registers:
        fits["registers"] = blocks_by_registers(int(claim.registers.value), threads, chip.chip)
    if claim.shared:
        needs = int(claim.shared.value) + chip.reserved_shared
        fits["shared memory"] = blocks_by_shared(BlockNeeds(0, 0, needs, 0, 0), chip.chip)
    by, resident = min(fits.items(), key=lambda item: item[1])
    cc = f"CC {chip.cc[0]}.{chip.cc[1]}"
    return resident, (
        f"on {cc} {resident} blocks fit by {by}: {resident * warps} of {chip.chip.warps} warps",
    )


def occupancy(subject: Subject) -> Iterator[Check]:
    """Resident warps over the warps that an SM holds: no more than fit, in whole blocks."""
    claim = subject.claim
    used = tuple(
        name for name in ("registers", "threads", "shared") if getattr(claim, name) is not None
    )
    for field in ("occupancy", "achieved_occupancy"):
        claimed = getattr(claim, field)
        if claimed is None:
            continue
        if not used:
            yield from _at_most(subject, "occupancy", field, 1.0, ("an SM is full at ",), ())
            continue
        yield from _of_shape(subject, field, used)
    if claim.occupancy and claim.achieved_occupancy:
        yield from _at_most(
            subject, "occupancy", "achieved_occupancy", claim.occupancy.high,
            ("achieved occupancy is at most the theoretical one, ",), ("occupancy",),
        )  # fmt: skip


def _of_shape(subject: Subject, field: str, used: tuple[str, ...]) -> Iterator[Check]:
    """Theoretical occupancy of a known block size goes in steps of a block."""
    steps = subject.claim.threads is not None and field == "occupancy"
    spans: list[Span] = []
    words: dict[float, Words] = {}
    for chip in _chips(subject):
        shares, calculation = _shares(subject, chip)
        words[shares[-1].value] = calculation
        spans += shares if steps else [replace(shares[-1], low=0.0)]
    yield from check(
        subject, "occupancy", field, spans, lambda _: words[max(words)], used=used, slack=0.0
    )


def _shares(subject: Subject, chip: SmLimits) -> tuple[list[Span], Words]:
    """The occupancies of one block up to all that fit, and the calculation of the last."""
    resident, words = _resident(subject, chip)
    warps = _warps(subject)
    shares = [min(1.0, count * warps / chip.chip.warps) for count in range(1, resident + 1)]
    spans = [
        Span(share, share - _OCCUPANCY_SLACK, share + _OCCUPANCY_SLACK)
        for share in shares or [1e-6]
    ]
    return spans, (*words, " = ", Amount(spans[-1].value, "1"))


def _warps(subject: Subject) -> int:
    """Warps of a block; 1 where its size is open, so that no step is left out."""
    threads = subject.claim.threads
    return warps_of(int(threads.value)) if threads else 1


def residency(subject: Subject) -> Iterator[Check]:
    """No more blocks share an SM than its registers, shared memory and warps hold."""
    claim = subject.claim
    used = tuple(
        name for name in ("registers", "threads", "shared") if getattr(claim, name) is not None
    )
    if claim.resident_blocks is None or not used or (claim.registers and not claim.threads):
        return
    tried = [_resident(subject, chip) for chip in _chips(subject)]
    most, words = max(tried, key=lambda one: one[0])
    yield from _at_most(
        subject, "residency", "resident_blocks", float(most), (*words, "; at most "), used
    )


def waves(subject: Subject) -> Iterator[Check]:
    """Blocks over the blocks that all SMs hold at once; a part of a wave may count as one."""
    claim = subject.claim
    if not (claim.waves and claim.grid_blocks and claim.resident_blocks):
        return
    counts = [claim.sms.value] if claim.sms else [sheet.sm_count for sheet in subject.sheets]
    spans = []
    for sms in dict.fromkeys(counts):
        exact = claim.grid_blocks.value / (claim.resident_blocks.value * sms)
        spans += [Span.of(exact), Span.of(math.ceil(exact))]

    def follows(_: Span) -> Words:
        blocks, held = claim.grid_blocks, claim.resident_blocks
        return (f"{shown_count(blocks)} blocks / ({shown_count(held)} x {counts[0]:.0f} SMs) = "
                f"{spans[0].value:.3g}",)  # fmt: skip

    yield from check(
        subject, "waves", "waves", spans, follows, slack=_WAVES_SLACK,
        used=("grid_blocks", "resident_blocks", "sms"),
        should_be=lambda span: (f"{span.value:.3g} waves",),
    )  # fmt: skip


def shown_count(figure: Figure | None) -> str:
    return f"{figure.value:,.0f}" if figure else ""


def sm_counts(subject: Subject) -> Iterator[Check]:
    """A product has the SMs that it has."""
    for name, count in subject.claim.sm_counts:
        sheets = datasheets_named(name)
        if not sheets:
            continue
        if any(sheet.sm_count == count for sheet in sheets):
            yield Check("number of SMs", ("sm_counts",), None)
            continue
        counts = " or ".join(dict.fromkeys(str(sheet.sm_count) for sheet in sheets))
        yield statement(
            subject, "number of SMs", "sm_counts", f"{count} SMs", (f"{name} has {counts} SMs",),
            (counts,),
        )  # fmt: skip
