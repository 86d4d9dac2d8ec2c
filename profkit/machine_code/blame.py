"""Warp samples by the instruction that a stalled one waits for.

A warp is sampled at the instruction that stalls, the first use of a result. The cause is the load
(or other long-latency operation) that writes the register: a backward slice over the SASS finds it.
Where there are several candidates, the samples are divided among them by their execution counts.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from profkit.machine_code.flow import Flow, Loop
from profkit.machine_code.opcodes import opcodes
from profkit.machine_code.operation import GLOBAL_LOADS, Operation, parse, unless_loaded

EXECUTED = "instructions_executed"
SAMPLES = "samples_"
LONG, SHORT, FIXED = "long_scoreboard", "short_scoreboard", "wait"


_SLOW: Mapping[str, frozenset[str]] = {LONG: opcodes("global_loads", LONG), SHORT: opcodes(SHORT)}
_ALL_SLOW = _SLOW[LONG] | _SLOW[SHORT]
_STORES = opcodes("memory_stores")
AWAITED: Mapping[str, str] = {f"awaited_{reason}": reason for reason in (LONG, SHORT, FIXED)}
"""What rules may name in `blame` besides line quantities: the instructions that others wait for."""

COUNTED: Mapping[str, re.Pattern[str]] = {
    "executed_fp64": re.compile(r"\b(?:DADD|DMUL|DFMA|DSETP|DMNMX|F64)\b|64H\b")
}
"""Also instructions whose SASS matches, by their execution counts."""

_CHAIN = 4  # loads in a straight line, chosen: an unrolled search has more, a nested index fewer


class Instruction(Struct, frozen=True):
    """One program counter of a launch. `file` is "" and `line` 0 where no source is known."""

    address: int
    sass: str
    file: str
    line: int
    values: Mapping[str, float]


class Wait(Struct, frozen=True):
    """Samples of a stall reason at the instruction at index `waiter` that `producer` causes."""

    waiter: int
    producer: int
    reason: str
    samples: float


class Samples:
    """The samples of one launch by instruction. Instructions are identified by their index in
    `rows`."""

    def __init__(self, rows: Sequence[Instruction]) -> None:
        self.rows = tuple(rows)
        self._waits: dict[str, tuple[Wait, ...]] = {}

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
        return sum(sum(samples.values()) for samples in self.by_reason)

    @cached_property
    def by_reason(self) -> tuple[Mapping[str, float], ...]:
        """The samples at each instruction by warp state, those that there are."""
        return tuple(
            {
                name.removeprefix(SAMPLES): value
                for name, value in row.values.items()
                if value and name.startswith(SAMPLES)
            }
            for row in self.rows
        )

    def issued(self, places: Collection[int]) -> float:
        """Samples in which a warp issued one of these instructions."""
        return sum(self.rows[index].values.get(f"{SAMPLES}selected", 0.0) for index in places)

    def executed(self, index: int) -> float:
        return self.rows[index].values.get(EXECUTED, 0.0)

    def waits(self, reason: str) -> tuple[Wait, ...]:
        """The samples of a reason by waiter and producer; those without a producer left out."""
        if reason not in self._waits:
            self._waits[reason] = tuple(self._causes(reason))
        return self._waits[reason]

    def _causes(self, reason: str) -> Iterator[Wait]:
        for index, row in enumerate(self.rows):
            samples = row.values.get(SAMPLES + reason, 0.0)
            producers = self.awaited(index, reason) if samples else ()
            total = sum(map(self.executed, producers))
            for producer in producers:
                share = self.executed(producer) / total if total else 1 / len(producers)
                if share:
                    yield Wait(index, producer, reason, samples * share)

    def awaited(self, index: int, reason: str) -> tuple[int, ...]:
        """The instructions that a stalled one may wait for, nearest first.

        They write what it reads, else they read or write what it overwrites. A fixed latency
        without a producer is that of the instruction before.
        """
        waiter = self.flow.operations[index]
        if waiter.base == "DEPBAR":
            return self._copies_before(index)
        producers = (
            self._fitting(index, waiter.reads, reason)
            or self._fitting(index, waiter.writes, reason)
            or self._readers(index, waiter.writes, reason)
        )
        return (index - 1,) if reason == FIXED and not producers and index else producers

    def _fitting(self, index: int, registers: Sequence[str], reason: str) -> tuple[int, ...]:
        """Producers of registers of the kind that the reason names, not yet awaited before."""
        operations, slow = self.flow.operations, _SLOW.get(reason)
        producers = dict.fromkeys(
            producer for name in registers for producer in self.flow.producers(name, index)
        )
        if slow is None:
            quick = (place for place in producers if operations[place].base not in _ALL_SLOW)
            return tuple(quick)[:1]
        fitting = tuple(place for place in producers if operations[place].base in slow)
        return tuple(place for place in fitting if not self._was_awaited(place, index)) or fitting

    def _was_awaited(self, producer: int, index: int) -> bool:
        """Whether an instruction on the way, in the blocks at its ends, used the result before."""
        blocks, registers = self.flow.blocks, set(self.flow.operations[producer].writes)
        start, end = blocks[self.flow.block_of(producer)], blocks[self.flow.block_of(index)]
        straight = start is end and producer < index
        between = [
            *range(producer + 1, index if straight else start.end),
            *range(index if straight else end.start, index),
        ]
        return any(registers.intersection(self.flow.operations[step].reads) for step in between)

    def _readers(self, index: int, registers: Sequence[str], reason: str) -> tuple[int, ...]:
        """The nearest operation before that still reads what this one overwrites."""
        slow = _SLOW.get(reason, frozenset()) | _STORES
        block = self.flow.blocks[self.flow.block_of(index)]
        for step in [*range(index - 1, block.start - 1, -1), *range(block.end - 1, index, -1)]:
            operation = self.flow.operations[step]
            if operation.base in slow and set(registers).intersection(operation.reads):
                return (step,)
        return ()

    def _copies_before(self, index: int) -> tuple[int, ...]:
        """The asynchronous copies of the nearest block before that has any."""
        loop, blocks = self.flow.loop_of(index), self.flow.blocks
        before = [number for number, block in enumerate(blocks) if block.start <= index]
        around = [number for number in sorted(loop.blocks) if number not in before] if loop else []
        for block in (blocks[number] for number in [*before[::-1], *around[::-1]]):
            end = min(block.end, index) if block.start <= index else block.end
            places = reversed(range(block.start, end))
            copies = tuple(i for i in places if self.flow.operations[i].base == "LDGSTS")
            if copies:
                return copies
        return ()

    def feeding(self, index: int) -> tuple[int, ...]:
        """The loads whose results make up the address of this one, inside its innermost loop."""
        return self._loads_above(index, unless_loaded)

    def is_linked(self, index: int) -> bool:
        """Whether a load's address rests on a chain of loads, each needing the one before: the walk
        of a list or a tree, a search. Around the loop, or unrolled in a straight line."""

        def above(load: int) -> tuple[int, ...]:
            return self._loads_above(load, lambda step: step.reads)

        if self.flow.loop_of(index) is not None:
            return any(load in above(load) for load in {index, *above(index)})
        length, loads = 1, {index}
        while loads and length < _CHAIN:
            loads = {other for load in loads for other in self.feeding(load)} - {index}
            length += bool(loads)
        return length >= _CHAIN

    def _loads_above(
        self, index: int, through: Callable[[Operation], Sequence[str]]
    ) -> tuple[int, ...]:
        operations, loop = self.flow.operations, self.flow.loop_of(index)
        within = loop.blocks if loop else None
        places = self.flow.sources([(index, operations[index].addresses)], within, through)
        return tuple(place for place in places if operations[place].base in GLOBAL_LOADS)

    def places(self, loop: Loop | None) -> tuple[int, ...]:
        """The instructions of a loop with those inside it; those of no loop where it is None."""
        return tuple(
            index
            for index in range(len(self.rows))
            if (self.flow.block_of(index) in loop.blocks if loop else not self.flow.loop_of(index))
        )
