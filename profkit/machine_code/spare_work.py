"""Avoidable work of a kernel, from its SASS: arrays read again, index arithmetic.

Two loops read the same array again where the addresses of their loads are built on the same kernel
parameter, from the same parameters and indices, ask for about as many sectors, one leads to the
other, and the other starts again: a loop that continues where the previous one ended, as the parts
of one unrolled loop do, reads further data. This is an upper bound: they may read different parts
of the array.

IEEE division and square root of floats are inlined: about eight instructions more than the
approximate forms, around a check for operands that need a slow path. The checks are counted.

An accumulator in shared memory is loaded, added to and stored at the same address in each round of
a loop.

Integer instructions are indices and loop counters, or the algorithm itself: a hash, a random
number, a table of integers. The latter's results end in a stored value, by registers all the way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from profkit.machine_code.flow import Flow, Loop
from profkit.machine_code.opcodes import class_of, opcodes

if TYPE_CHECKING:
    from profkit.machine_code.blame import Samples
    from profkit.machine_code.operation import Operation, Slot

SECTORS = "global_sectors"
_TOLERANCE = 0.05  # share, chosen: "about as many sectors" allows for masked first and last parts
_LOADS = frozenset({"LDG", "LD"})
_CONSTANT_LOADS = frozenset({"LDC", "ULDC", "LDCU"})
_PRODUCTS = frozenset({"IMAD", "UIMAD"})
_SUMS = frozenset({"IADD3", "IADD", "VIADD", "LEA", "UIADD3", "ULEA"})
_MOVES = frozenset({"MOV", "UMOV", "SEL", "USEL", "R2UR"})
_BARRIER = "BAR"
_INDEX = ("SR_TID", "SR_CTAID")
_OVERHEAD = frozenset({"integer", "conversion", "control"})
_ALL_LOADS, _STORES = opcodes("loads"), opcodes("stores")
# compared with the operand's exponent in SASS of sqrtf and of 1.0f / x
_CHECKS = frozenset({"0x727fffff", "0x1ffffff"})
_LONGER = 8  # instructions, counted in SASS for sm_80 and sm_90 against __fdividef and sqrt.approx
_SHARED_LOADS, _SHARED_STORES = frozenset({"LDS"}), frozenset({"STS"})
_FIRST_PARAMETER = 0x160  # of constant bank 0; the extents of block and grid are before it

_Part = tuple[Loop | None, int]
_Reads = tuple[int, float]
"""The first load of a part, and its sectors."""


def reread_share(samples: Samples) -> float:
    """Sectors of global loads that repeat an earlier part's, of all; NaN where not recorded."""
    flow = samples.flow
    arrays: dict[tuple[frozenset[Slot], frozenset[str]], dict[_Part, _Reads]] = {}
    total = 0.0
    for place, part in enumerate(_parts(flow)):
        sectors = samples.rows[place].values.get(SECTORS, 0.0)
        if flow.operations[place].base not in _LOADS or not sectors:
            continue
        total += sectors
        if pointer := _pointer(flow, place):
            reads = arrays.setdefault((pointer, _indices(flow, place)), {})
            first, before = reads.get(part, (place, 0.0))
            reads[part] = first, before + sectors
    if not total:
        return math.nan
    return sum(_repeated(flow, list(reads.values())) for reads in arrays.values()) / total


def _parts(flow: Flow) -> Iterator[_Part]:
    """For each instruction its innermost loop, or the stretch between loops and barriers."""
    stretch, previous = 0, None
    for place, step in enumerate(flow.operations):
        loop = flow.loop_of(place)
        stretch += loop is None and (previous is not None or step.base == _BARRIER)
        previous = loop
        yield (loop, 0) if loop else (None, stretch)


def _repeated(flow: Flow, parts: Sequence[_Reads]) -> float:
    """Sectors of loads that repeat an earlier load: as many sectors within a tolerance, and an
    address that does not go on from the earlier one's."""
    total = 0.0
    for number, (place, sectors) in enumerate(parts):
        similar = [
            earlier
            for earlier, others in parts[:number]
            if min(sectors, others) >= (1 - _TOLERANCE) * max(sectors, others)
            and flow.leads(earlier, place)
        ]
        if similar:
            operations = flow.sources(
                [(place, flow.operations[place].addresses)], None, _unless_loaded
            )
            if not all(_continues(flow, earlier, place, operations) for earlier in similar):
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


def _pointer(flow: Flow, load: int) -> frozenset[Slot]:
    """The kernel parameters that a load's address is the sum of, besides indices."""
    places = flow.sources([(load, flow.operations[load].addresses[:1])], None, _summands)
    return frozenset(slot for place in places for slot in _wide_parameters(flow.operations[place]))


def _wide_parameters(step: Operation) -> Sequence[Slot]:
    """The 64-bit parameters that an operation loads, or adds as the low half of an address."""
    if step.base in _CONSTANT_LOADS:
        wide = "64" in step.modifiers and not step.addresses
    elif step.base in _PRODUCTS:
        wide = "WIDE" in step.modifiers and "[" in "".join(step.terms[-1:])
    else:
        wide = step.base in _SUMS and "X" not in step.modifiers
    return step.constants if wide else ()


def _summands(step: Operation) -> Sequence[str]:
    """The registers that an address's low half is passed on by: sums and moves, no products."""
    sources = step.terms[step.results :]
    if step.base in _PRODUCTS:
        terms = sources[2:3] if "WIDE" in step.modifiers else (*sources[:1], *sources[2:3])
    elif step.base in {"LEA", "ULEA"}:
        terms = sources[1:2]
    else:
        return step.reads if step.base in _SUMS | _MOVES else ()
    names = {term.lstrip("-~|").partition(".")[0] for term in terms}
    return tuple(name for name in step.reads if name in names)


def _indices(flow: Flow, load: int) -> frozenset[str]:
    """What a load's address rests on: the thread's and block's indices, and parameters."""
    names: set[str] = set()
    for place in flow.sources([(load, flow.operations[load].addresses)], None, _unless_loaded):
        step = flow.operations[place]
        names.update(term for term in step.terms if term.startswith(_INDEX))
        names.update(
            f"{bank}:{offset}"
            for bank, offset in step.constants
            if bank or offset >= _FIRST_PARAMETER
        )
    return frozenset(names)


def _unless_loaded(step: Operation) -> Sequence[str]:
    return () if step.base in _LOADS else step.reads


def overhead_share(samples: Samples) -> float:
    """Executed integer, conversion and control instructions that no stored value rests on, of all
    executed; NaN where nothing was."""
    flow = samples.flow
    operations = [
        (place, step, samples.executed(place)) for place, step in enumerate(flow.operations)
    ]
    total = sum(times for _, _, times in operations)
    values = (
        (place, [name for name in _inputs(step) if name not in step.addresses])
        for place, step, times in operations
        if step.base in _STORES and times
    )
    stored = set(flow.sources(values, None, _unless_read))
    overhead = (
        times
        for place, step, times in operations
        if class_of(step.base) in _OVERHEAD and place not in stored
    )
    return sum(overhead) / total if total else math.nan


def _unless_read(operation: Operation) -> Sequence[str]:
    return () if operation.base in _ALL_LOADS else _inputs(operation)


def _inputs(operation: Operation) -> Sequence[str]:
    """What an instruction reads, without the predicates: those say whether, not what."""
    return [name for name in operation.reads if not name.startswith(("P", "UP"))]


def division_share(samples: Samples) -> float:
    """Executed instructions that IEEE divisions, reciprocals and square roots of floats take beyond
    their approximate forms, of all executed; NaN where nothing was."""
    operations = list(enumerate(samples.flow.operations))
    total = sum(samples.executed(place) for place, _ in operations)
    checks = (samples.executed(place) for place, step in operations if is_division_check(step))
    return min(_LONGER * sum(checks) / total, 1.0) if total else math.nan


def is_division_check(step: Operation) -> bool:
    """Whether it is the check of operands in an IEEE division, reciprocal or square root."""
    return step.base == "FCHK" or not _CHECKS.isdisjoint(step.terms)


def shared_accumulators(samples: Samples) -> frozenset[int]:
    """The loads and stores of values that a loop updates in shared memory."""
    flow = samples.flow
    places: set[int] = set()
    for place, step in enumerate(flow.operations):
        loop = flow.loop_of(place)
        if step.base not in _SHARED_STORES or loop is None:
            continue
        values = [name for name in _inputs(step) if name not in step.addresses]
        resting = flow.sources([(place, values)], None, _unless_read)
        own = {
            load
            for load in resting
            if flow.operations[load].base in _SHARED_LOADS
            and flow.loop_of(load) == loop
            and flow.operations[load].terms[-1:] == step.terms[:1]
        }
        places |= own | {place} if own else set()
    return frozenset(places)


def shared_accumulator_share(samples: Samples) -> float:
    """Executed shared-memory instructions that only update an accumulator, of all of them; 0 where
    there are none."""
    mine = shared_accumulators(samples)
    shared = {
        place: samples.executed(place)
        for place, step in enumerate(samples.flow.operations)
        if step.base in _SHARED_LOADS | _SHARED_STORES
    }
    total = sum(shared.values())
    return sum(shared[place] for place in mine) / total if total else 0.0
