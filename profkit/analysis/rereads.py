"""Arrays that a kernel reads in several passes, told by its machine code.

Two loops read the same array again where the addresses of their loads are built on the same kernel
parameter, from the same parameters and indices, and ask for about as many sectors. That is an upper
bound: they may read different parts of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from profkit.analysis.blame import Samples
from profkit.ingest.sass_flow import Loop
from profkit.ingest.sass_text import Operation, Slot

SECTORS = "global_sectors"
_ABOUT = 0.05
_LOADS = frozenset({"LDG", "LD"})
_CONSTANT_LOADS = frozenset({"LDC", "ULDC", "LDCU"})
_BARRIER = "BAR"
_INDEX = ("SR_TID", "SR_CTAID")

_Part = tuple[Loop | None, int]


def reread_share(samples: Samples) -> float:
    """Sectors of global loads that repeat an earlier part's, of all; NaN where not recorded."""
    operations = samples.flow.operations
    parts = _parts(samples)
    read: dict[tuple[frozenset[Slot], frozenset[str]], dict[_Part, float]] = {}
    total = 0.0
    for at, one in enumerate(operations):
        sectors = samples.rows[at].values.get(SECTORS, 0.0)
        if one.base not in _LOADS or not sectors:
            continue
        total += sectors
        if pointer := _pointer(samples, at):
            by_part = read.setdefault((pointer, _indices(samples, at)), {})
            by_part[parts[at]] = by_part.get(parts[at], 0.0) + sectors
    if not total:
        return math.nan
    return sum(_repeated(list(by_part.values())) for by_part in read.values()) / total


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


def _repeated(sectors: Sequence[float]) -> float:
    """What of some parts' sectors is beyond the first of those that are about equal."""
    left = sorted(sectors, reverse=True)
    repeated = 0.0
    while left:
        first = left.pop(0)
        alike = [one for one in left if one >= (1 - _ABOUT) * first]
        repeated += sum(alike)
        left = left[len(alike) :]
    return repeated


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
    elif one.base in {"IMAD", "UIMAD"} and "WIDE" in one.modifiers:
        yield from one.constants if "[" in one.terms[-1] else ()
    elif one.base in {"IADD3", "LEA", "UIADD3", "ULEA"} and "X" not in one.modifiers:
        yield from one.constants


def _summands(one: Operation) -> Sequence[str]:
    """The registers that an address's low half is passed on by: sums and moves, no products."""
    if one.base in _LOADS | _CONSTANT_LOADS:
        return ()
    terms = one.terms[len(one.writes) - _pairs(one) :]
    if one.base in {"IMAD", "UIMAD"}:
        return _named(one, terms[-1:] if "WIDE" in one.modifiers else terms[:1] + terms[2:3])
    if one.base in {"LEA", "ULEA"}:
        return _named(one, terms[1:2])
    if one.base in {"IADD3", "UIADD3", "VIADD", "MOV", "UMOV", "SEL", "USEL", "R2UR", "IADD"}:
        return one.reads
    return ()


def _pairs(one: Operation) -> int:
    """How many written registers are second halves, which no term names."""
    return 1 if "WIDE" in one.modifiers else 0


def _named(one: Operation, terms: Sequence[str]) -> Sequence[str]:
    """The registers read that some operands name; of a pair the low half."""
    return tuple(
        name for term in terms for name in one.reads if term.strip("-~|").split(".")[0] == name
    )


def _indices(samples: Samples, at: int) -> frozenset[str]:
    """What a load's address rests on: the thread's and block's indices, and parameters."""
    flow = samples.flow
    found: set[str] = set()
    for place in flow.sources(at, flow.operations[at].addresses, None, _unless_loaded):
        one = flow.operations[place]
        found.update(term for term in one.terms if term.startswith(_INDEX))
        found.update(f"{bank}:{offset}" for bank, offset in one.constants)
    return frozenset(found)


def _unless_loaded(one: Operation) -> Sequence[str]:
    return () if one.base in _LOADS else one.reads
