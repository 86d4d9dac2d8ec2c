"""Arrays that a kernel reads in several passes, told by its machine code.

Two loops read the same array again where the addresses of their loads are built on the same kernel
parameter, from the same parameters and indices, ask for about as many sectors, one leads to the
other, and the other starts anew: a loop that goes on from where the one before it ended, as the
parts of one unrolled loop do, reads what comes next. That is an upper bound: they may read
different parts of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from profkit.report.sass_flow import Flow, Loop

if TYPE_CHECKING:
    from profkit.report.blame import Samples
    from profkit.report.sass_text import Operation, Slot

SECTORS = "global_sectors"
_ABOUT = 0.05
_LOADS = frozenset({"LDG", "LD"})
_CONSTANT_LOADS = frozenset({"LDC", "ULDC", "LDCU"})
_PRODUCTS = frozenset({"IMAD", "UIMAD"})
_SUMS = frozenset({"IADD3", "IADD", "VIADD", "LEA", "UIADD3", "ULEA"})
_MOVES = frozenset({"MOV", "UMOV", "SEL", "USEL", "R2UR"})
_BARRIER = "BAR"
_INDEX = ("SR_TID", "SR_CTAID")
_FIRST_PARAMETER = 0x160  # of constant bank 0; the extents of block and grid are before it

_Part = tuple[Loop | None, int]
_Reads = tuple[int, float]
"""The first load of a part, and its sectors."""


def reread_share(samples: Samples) -> float:
    """Sectors of global loads that repeat an earlier part's, of all; NaN where not recorded."""
    operations = samples.flow.operations
    part_of = _parts(samples)
    read: dict[tuple[frozenset[Slot], frozenset[str]], dict[_Part, _Reads]] = {}
    total = 0.0
    for at, one in enumerate(operations):
        sectors = samples.rows[at].values.get(SECTORS, 0.0)
        if one.base not in _LOADS or not sectors:
            continue
        total += sectors
        if pointer := _pointer(samples, at):
            by_part = read.setdefault((pointer, _indices(samples, at)), {})
            place, before = by_part.get(part_of[at], (at, 0.0))
            by_part[part_of[at]] = (place, before + sectors)
    if not total:
        return math.nan
    return sum(_repeated(samples, list(parts.values())) for parts in read.values()) / total


def _parts(samples: Samples) -> Sequence[_Part]:
    """For each instruction its innermost loop, or the stretch between loops and barriers."""
    found: list[_Part] = []
    stretch, before = 0, False
    for at, one in enumerate(samples.flow.operations):
        loop = samples.flow.loop_of(at)
        if (loop is None and before) or (loop is None and one.base == _BARRIER):
            stretch += 1
        before = loop is not None
        found.append((loop, 0) if loop else (None, stretch))
    return found


def _repeated(samples: Samples, parts: Sequence[_Reads]) -> float:
    """Sectors of parts that an earlier one, which leads to them, has about as many of."""
    total, flow = 0.0, samples.flow
    for number, (place, sectors) in enumerate(parts):
        alike = [
            earlier
            for earlier, others in parts[:number]
            if min(sectors, others) >= (1 - _ABOUT) * max(sectors, others)
            and flow.leads(earlier, place)
        ]
        if alike:
            resting = flow.sources(place, flow.operations[place].addresses, None, _unless_loaded)
            if not all(_continues(flow, earlier, place, resting) for earlier in alike):
                total += sectors
    return total


def _continues(flow: Flow, earlier: int, place: int, resting: Sequence[int]) -> bool:
    """Whether the address of a load, which rests on some operations, goes on from an earlier one's:
    from what the loop around that left, or by a step from the address itself."""
    loop = flow.loop_of(earlier)
    if loop and flow.block_of(place) not in loop.blocks:
        return any(flow.block_of(step) in loop.blocks for step in resting)
    before = flow.operations[earlier].addresses[:1]
    address = {producer for name in before for producer in flow.producers(name, earlier)}
    return any(
        address.intersection(flow.producers(name, step))
        for step in resting
        if step > earlier
        for name in _summands(flow.operations[step])
    )


def _pointer(samples: Samples, at: int) -> frozenset[Slot]:
    """The kernel parameters that a load's address is the sum of, beside indices."""
    flow = samples.flow
    places = flow.sources(at, flow.operations[at].addresses[:1], None, _summands)
    return frozenset(slot for place in places for slot in _wide_parameters(flow.operations[place]))


def _wide_parameters(one: Operation) -> Iterator[Slot]:
    """The 64-bit parameters that an operation loads, or adds as the low half of an address."""
    if one.base in _CONSTANT_LOADS:
        if "64" in one.modifiers and not one.addresses:
            yield from one.constants
    elif one.base in _PRODUCTS and "WIDE" in one.modifiers:
        yield from one.constants if "[" in "".join(one.terms[-1:]) else ()
    elif one.base in _SUMS and "X" not in one.modifiers:
        yield from one.constants


def _summands(one: Operation) -> Sequence[str]:
    """The registers that an address's low half is passed on by: sums and moves, no products."""
    sources = one.terms[one.results :]
    if one.base in _PRODUCTS:
        last = sources[2:3]
        return _named(one, last if "WIDE" in one.modifiers else (*sources[:1], *last))
    if one.base in {"LEA", "ULEA"}:
        return _named(one, sources[1:2])
    return one.reads if one.base in _SUMS | _MOVES else ()


def _named(one: Operation, terms: Sequence[str]) -> Sequence[str]:
    """The registers that some operands name, the low half of a pair."""
    names = {term.lstrip("-~|").partition(".")[0] for term in terms}
    return tuple(name for name in one.reads if name in names)


def _indices(samples: Samples, at: int) -> frozenset[str]:
    """What a load's address rests on: the thread's and block's indices, and parameters."""
    flow = samples.flow
    found: set[str] = set()
    for place in flow.sources(at, flow.operations[at].addresses, None, _unless_loaded):
        one = flow.operations[place]
        found.update(term for term in one.terms if term.startswith(_INDEX))
        found.update(
            f"{bank}:{offset}"
            for bank, offset in one.constants
            if bank or offset >= _FIRST_PARAMETER
        )
    return frozenset(found)


def _unless_loaded(one: Operation) -> Sequence[str]:
    return () if one.base in _LOADS else one.reads
