"""Which instruction a stalled one waits for: samples by producer instead of by waiter.

A warp is sampled where it can't go on, at the first use of what it lacks. The cause is the load (or
other slow operation) that writes the register: the slice over the machine code finds it. Where
several may be awaited, the samples are shared among them by how often each ran.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from profkit.report.resources import opcodes
from profkit.report.sass_flow import Flow, Loop
from profkit.report.sass_text import Operation, parse

if TYPE_CHECKING:
    from profkit.report.source_lines import Instruction

EXECUTED = "instructions_executed"
SAMPLES = "samples_"
LONG, SHORT, FIXED = "long_scoreboard", "short_scoreboard", "wait"


GLOBAL_LOADS = opcodes("global_loads")
_SLOW: Mapping[str, frozenset[str]] = {
    LONG: opcodes("global_loads", LONG),
    SHORT: opcodes(SHORT),
}
_STORES = opcodes("memory_stores")
AWAITED: Mapping[str, str] = {f"awaited_{reason}": reason for reason in (LONG, SHORT, FIXED)}
"""What rules may blame beside line quantities: the instructions that others wait for."""

COUNTED: Mapping[str, re.Pattern[str]] = {
    "executed_fp64": re.compile(r"\b(?:DADD|DMUL|DFMA|DSETP|DMNMX|F64)\b|64H\b")
}
"""And those whose machine code has a text, by how often they were executed."""

_CHAIN = 4


@dataclass(frozen=True)
class Wait:
    """Samples of a reason at the instruction in place `waiter` that `producer` is the cause of."""

    waiter: int
    producer: int
    reason: str
    samples: float


class Samples:
    """The samples of one launch by instruction. Instructions are told by their place in `rows`."""

    def __init__(self, rows: Sequence[Instruction]) -> None:
        self.rows = tuple(rows)

    @cached_property
    def flow(self) -> Flow:
        return Flow([row.address for row in self.rows], [parse(row.sass) for row in self.rows])

    @cached_property
    def has_code(self) -> bool:
        """Whether the machine code of any instruction is known."""
        return any(row.sass for row in self.rows)

    @cached_property
    def total(self) -> float:
        """All samples."""
        return sum(sum(self.by_reason(at).values()) for at in range(len(self.rows)))

    def by_reason(self, at: int) -> Mapping[str, float]:
        """The samples at an instruction by what the warp did."""
        return {
            name.removeprefix(SAMPLES): value
            for name, value in self.rows[at].values.items()
            if name.startswith(SAMPLES)
        }

    def issued(self, places: Collection[int]) -> float:
        """Samples in which a warp issued one of these instructions."""
        return sum(self.rows[at].values.get(f"{SAMPLES}selected", 0.0) for at in places)

    def executed(self, at: int) -> float:
        return self.rows[at].values.get(EXECUTED, 0.0)

    def waits(self, reason: str) -> tuple[Wait, ...]:
        """The samples of a reason by waiter and producer; those without a producer left out."""
        if reason not in self._waits:
            self._waits[reason] = tuple(self._found(reason))
        return self._waits[reason]

    @cached_property
    def _waits(self) -> dict[str, tuple[Wait, ...]]:
        return {}

    def _found(self, reason: str) -> Iterator[Wait]:
        for at, row in enumerate(self.rows):
            samples = row.values.get(SAMPLES + reason, 0.0)
            if not samples:
                continue
            producers = self.awaited(at, reason)
            runs = [self.executed(producer) for producer in producers]
            total = sum(runs)
            for producer, run in zip(producers, runs, strict=True):
                share = run / total if total else 1 / len(producers)
                if share:
                    yield Wait(at, producer, reason, samples * share)

    def awaited(self, at: int, reason: str) -> tuple[int, ...]:
        """The instructions that a stalled one may wait for, nearest first.

        They write what it reads, else they read or write what it overwrites. A fixed latency
        without a producer is that of the instruction before.
        """
        one = self.flow.operations[at]
        if one.base == "DEPBAR":
            return self._copies_before(at)
        found = self._fitting(at, one.reads, reason) or self._fitting(at, one.writes, reason)
        found = found or self._readers(at, one.writes, reason)
        if reason == FIXED and not found and at:
            return (at - 1,)
        return found

    def _fitting(self, at: int, registers: Sequence[str], reason: str) -> tuple[int, ...]:
        """Producers of registers of the kind that the reason tells of, not yet awaited before."""
        slow = _SLOW.get(reason)
        found = dict.fromkeys(
            producer for name in registers for producer in self.flow.producers(name, at)
        )
        operations = self.flow.operations
        if slow is None:
            quick = frozenset().union(*_SLOW.values())
            return tuple(one for one in found if operations[one].base not in quick)[:1]
        fitting = tuple(one for one in found if operations[one].base in slow)
        return tuple(one for one in fitting if not self._was_awaited(one, at)) or fitting

    def _was_awaited(self, producer: int, at: int) -> bool:
        """Whether an instruction on the way, in the blocks at its ends, used the result before."""
        blocks, written = self.flow.blocks, set(self.flow.operations[producer].writes)
        start, end = blocks[self.flow.block_of(producer)], blocks[self.flow.block_of(at)]
        straight = start is end and producer < at
        between = [
            *range(producer + 1, at if straight else start.end),
            *range(at if straight else end.start, at),
        ]
        return any(written.intersection(self.flow.operations[one].reads) for one in between)

    def _readers(self, at: int, registers: Sequence[str], reason: str) -> tuple[int, ...]:
        """The nearest operation before that still reads what this one overwrites."""
        slow = _SLOW.get(reason, frozenset()) | _STORES
        block = self.flow.blocks[self.flow.block_of(at)]
        before = [*range(at - 1, block.start - 1, -1), *range(block.end - 1, at, -1)]
        for one in before:
            operation = self.flow.operations[one]
            if operation.base in slow and set(registers).intersection(operation.reads):
                return (one,)
        return ()

    def _copies_before(self, at: int) -> tuple[int, ...]:
        """The asynchronous copies of the nearest block before that has any."""
        loop = self.flow.loop_of(at)
        before = [number for number, block in enumerate(self.flow.blocks) if block.start <= at]
        around = [number for number in sorted(loop.blocks) if number not in before] if loop else []
        for number in [*before[::-1], *around[::-1]]:
            block = self.flow.blocks[number]
            places = range(block.start, min(block.end, at) if block.start <= at else block.end)
            copies = [one for one in places if self.flow.operations[one].base == "LDGSTS"]
            if copies:
                return tuple(copies[::-1])
        return ()

    def feeding(self, at: int) -> tuple[int, ...]:
        """The loads whose results make up the address of this one, inside its innermost loop."""
        return self._loads_above(at, lambda one: () if one.base in GLOBAL_LOADS else one.reads)

    def is_linked(self, at: int) -> bool:
        """Whether a load's address rests on a chain of loads, each needing the one before: the walk
        of a list or a tree, a search. Around the loop, or unrolled in a straight line."""
        chain = {at, *self._loads_above(at, lambda one: one.reads)}
        if self.flow.loop_of(at) is None:
            return self._chain_length(at) >= _CHAIN
        return any(one in self._loads_above(one, lambda above: above.reads) for one in chain)

    def _chain_length(self, at: int) -> int:
        """Loads in a row from the first to this one, counted up to where it is a chain."""
        length, above = 1, {at}
        while above and length < _CHAIN:
            above = {other for one in above for other in self.feeding(one)} - {at}
            length += bool(above)
        return length

    def _loads_above(
        self, at: int, through: Callable[[Operation], Sequence[str]]
    ) -> tuple[int, ...]:
        operations, loop = self.flow.operations, self.flow.loop_of(at)
        within = loop.blocks if loop else None
        places = self.flow.sources(at, operations[at].addresses, within, through)
        return tuple(one for one in places if operations[one].base in GLOBAL_LOADS)

    def places(self, loop: Loop | None) -> tuple[int, ...]:
        """The instructions of a loop with those inside it; those of no loop where it is None."""
        if loop is None:
            return tuple(at for at in range(len(self.rows)) if self.flow.loop_of(at) is None)
        blocks = (self.flow.blocks[number] for number in loop.blocks)
        return tuple(at for block in blocks for at in range(block.start, block.end))
