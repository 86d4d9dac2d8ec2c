"""How control and data flow through a kernel's machine code: blocks, loops and producers."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from operator import and_, or_

from msgspec import Struct

from profkit.machine_code.operation import Operation

_LEAVES = frozenset({"RET", "EXIT", "KILL"})
_JUMPS = frozenset({"BRA", "JMP"})
_UNKNOWN = frozenset({"BRX", "BRXU", "JMX", "JMXU"})
_ENDS = _LEAVES | _JUMPS | _UNKNOWN | {"CALL", "BSYNC", "WARPSYNC", "BPT"}


class Block(Struct, frozen=True):
    """Operations from `start` up to, not including, `end` that run one after the other."""

    start: int
    end: int
    successors: tuple[int, ...]


class Loop(Struct, frozen=True):
    """A natural loop: its first block, all its blocks, and how many loops are around it."""

    head: int
    blocks: frozenset[int]
    depth: int


class Flow:
    """A kernel's code, operations are identified by their index.

    `addresses` are the program counters, ascending. Calls are taken to return and to change no
    register; where an indirect branch goes is not known.
    """

    def __init__(self, addresses: Sequence[int], operations: Sequence[Operation]) -> None:
        self.addresses = tuple(addresses)
        self.operations = tuple(operations)
        self._reaching_writes: dict[tuple[str, int, frozenset[int] | None], tuple[int, ...]] = {}

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The basic blocks, in the order of the code."""
        operations = self.operations
        ends = [index + 1 for index, step in enumerate(operations) if step.base in _ENDS]
        targets = [self._target(step) for step in operations]
        starts = sorted({0, *ends, *filter(None, targets)} - {len(operations)})
        numbers = {start: number for number, start in enumerate(starts)}
        blocks = []
        for start, end in zip(starts, [*starts[1:], len(operations)], strict=False):
            after = (numbers[index] for index in self._after(end - 1) if index in numbers)
            blocks.append(Block(start, end, tuple(dict.fromkeys(after))))
        return tuple(blocks)

    def block_of(self, index: int) -> int:
        """The block that an operation is in."""
        return self._block_of[index]

    def loop_of(self, index: int) -> Loop | None:
        """The innermost loop that an operation is in."""
        return self._innermost.get(self._block_of[index])

    def leads(self, first: int, last: int) -> bool:
        """Whether control may go from one operation to a later one."""
        successors = [block.successors for block in self.blocks]
        return self._block_of[last] in _reached([self._block_of[first]], successors)

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """The natural loops, outer ones before those inside them."""
        bodies: dict[int, set[int]] = {}
        for tail, block in enumerate(self.blocks):
            for head in block.successors:
                if head == tail or self._dominators.get(tail, 0) >> head & 1:
                    body = _reached([tail], self._predecessors, {head})
                    bodies.setdefault(head, {head}).update(body)
        loops = [
            Loop(head, frozenset(body), sum(head in other for other in bodies.values()) - 1)
            for head, body in bodies.items()
        ]
        return tuple(sorted(loops, key=lambda loop: (loop.depth, loop.head)))

    def producers(
        self, register: str, index: int, within: frozenset[int] | None = None
    ) -> tuple[int, ...]:
        """The operations whose value of a register an operation at this place may read.

        Nearest first: up the straight line, then by the ways that lead here, around loops too. A
        write under another predicate may leave an older value. `within` keeps to some blocks.
        """
        return tuple(dict.fromkeys(self._writers(register, index, within)))

    def _writers(self, register: str, index: int, within: frozenset[int] | None) -> Iterator[int]:
        number = self._block_of[index]
        for writer in self._above(register, number, index):
            yield writer
            if not self.operations[writer].conditional or self._agree(writer, index):
                return
        yield from self._reaching(register, number, within)

    def _above(self, register: str, number: int, end: int) -> Sequence[int]:
        """The writes of a register in a block before a place, nearest first."""
        writes = self._writes[number].get(register, ())
        return writes[: bisect_left(writes, end)][::-1]

    def _reaching(
        self, register: str, number: int, within: frozenset[int] | None
    ) -> tuple[int, ...]:
        """The writes of a register that may reach the start of a block, nearest first."""
        key = register, number, within
        if key not in self._reaching_writes:
            self._reaching_writes[key] = tuple(self._search(register, number, within))
        return self._reaching_writes[key]

    def _search(self, register: str, start: int, within: frozenset[int] | None) -> Iterator[int]:
        waiting, seen = [start], set[int]()
        for number in waiting:  # which grows
            for other in self._predecessors[number]:
                if other in seen or (within is not None and other not in within):
                    continue
                seen.add(other)
                for writer in self._above(register, other, self.blocks[other].end):
                    yield writer
                    if not self.operations[writer].conditional:
                        break
                else:
                    waiting.append(other)

    def _agree(self, writer: int, reader: int) -> bool:
        """Whether both run under the same predicate, one after the other in one block."""
        guard = self.operations[writer].guard
        if guard != self.operations[reader].guard or not writer < reader:
            return False
        number = self._block_of[writer]
        changes = self._writes[number].get(guard.lstrip("!"), ())
        return number == self._block_of[reader] and not any(
            writer <= change < reader for change in changes
        )

    def sources(
        self,
        reads: Iterable[tuple[int, Sequence[str]]],
        within: frozenset[int] | None = None,
        through: Callable[[Operation], Sequence[str]] = lambda operation: operation.reads,
    ) -> tuple[int, ...]:
        """The backward slice: all operations that the values of registers at places rest on.

        `reads` are places and the registers there. `through` returns the registers of a producer
        to follow further, none to stop there.
        """
        sources: dict[int, None] = {}
        seen: set[tuple[str, int]] = set()
        waiting = [(register, index) for index, registers in reads for register in registers]
        while waiting:
            register, place = waiting.pop()
            if (register, place) in seen:
                continue
            seen.add((register, place))
            for producer in self.producers(register, place, within):
                if producer not in sources:
                    sources[producer] = None
                    waiting += [(name, producer) for name in through(self.operations[producer])]
        return tuple(sources)

    def live(self) -> list[int]:
        """How many general registers hold a value still needed, at each operation.

        The larger of those needed before it and those it leaves, its own results included. A write
        that may not happen ends no value. What a called function or an indirect branch needs is
        not known: there it may be more.
        """
        masks = [(_mask(step.writes), _mask(step.reads)) for step in self.operations]
        counts = [0] * len(self.operations)
        needs = [0] * len(self.blocks)
        changed = True
        while changed:
            changed = False
            for number, block in reversed(list(enumerate(self.blocks))):
                needed = reduce(or_, (needs[other] for other in block.successors), 0)
                for index in reversed(range(block.start, block.end)):
                    writes, reads = masks[index]
                    left = needed | writes
                    kills = 0 if self.operations[index].conditional else writes
                    needed = needed & ~kills | reads
                    counts[index] = max(needed.bit_count(), left.bit_count())
                changed |= needed != needs[number]
                needs[number] = needed
        return counts

    def _target(self, operation: Operation) -> int | None:
        """The place that an operation names; None where the code does not have it."""
        return None if operation.target is None else self._places.get(operation.target)

    @cached_property
    def _places(self) -> Mapping[int, int]:
        return {address: index for index, address in enumerate(self.addresses)}

    def _after(self, index: int) -> Iterator[int]:
        """Where control may go after the last operation of a block."""
        last = self.operations[index]
        target = self._target(last)
        predicated = last.base in {"BRA", "EXIT"} and any(
            name.startswith(("P", "UP")) for name in last.reads
        )
        if last.base in _JUMPS | {"CALL", "WARPSYNC"} and target is not None:
            yield target
        if last.base == "BSYNC":
            targets = self._convergence[last.terms[:1]]
            # a barrier serves one place after another: the nearest is this one's
            yield from () if index + 1 in targets else targets
        ends = last.base in _LEAVES | _JUMPS | _UNKNOWN
        may_continue = not ends or last.conditional or predicated or "DIV" in last.modifiers
        if may_continue and index + 1 < len(self.operations):
            yield index + 1

    @cached_property
    def _convergence(self) -> Mapping[tuple[str, ...], list[int]]:
        """By convergence barrier, the places where its warps go on together."""
        places = defaultdict(list)
        for operation in self.operations:
            target = self._target(operation) if operation.base == "BSSY" else None
            if target is not None and self.operations[target].base != "BSYNC":
                places[operation.terms[:1]].append(target)
        return places

    @cached_property
    def _block_of(self) -> Sequence[int]:
        spans = (block.end - block.start for block in self.blocks)
        return [number for number, size in enumerate(spans) for _ in range(size)]

    @cached_property
    def _predecessors(self) -> Sequence[Sequence[int]]:
        predecessors: list[list[int]] = [[] for _ in self.blocks]
        for number, block in enumerate(self.blocks):
            for other in block.successors:
                predecessors[other].append(number)
        return predecessors

    @cached_property
    def _writes(self) -> Sequence[Mapping[str, list[int]]]:
        """For each block the places that write each register."""
        places: list[dict[str, list[int]]] = [{} for _ in self.blocks]
        for index, number in enumerate(self._block_of):
            for name in self.operations[index].writes:
                places[number].setdefault(name, []).append(index)
        return places

    @cached_property
    def _dominators(self) -> Mapping[int, int]:
        """The dominators of each block that an entry leads to, a bit a block.

        Entries are the first block and those that nothing leads to.
        """
        entries = {number for number, before in enumerate(self._predecessors) if not before} | {0}
        reached = sorted(_reached(entries, [block.successors for block in self.blocks]))
        dominators = dict.fromkeys(reached, -1) | {entry: 1 << entry for entry in entries}
        changed = True
        while changed:
            changed = False
            for number in reached:
                if number not in entries:
                    before = (dominators.get(other, -1) for other in self._predecessors[number])
                    mask = reduce(and_, before) | 1 << number
                    changed |= mask != dominators[number]
                    dominators[number] = mask
        return dominators

    @cached_property
    def _innermost(self) -> Mapping[int, Loop]:
        return {number: loop for loop in self.loops for number in loop.blocks}


def _reached(
    starts: Iterable[int], edges: Sequence[Sequence[int]], ends: Iterable[int] = ()
) -> set[int]:
    """The blocks that edges lead to from some blocks, these among them, not beyond `ends`."""
    reached, waiting = set(ends), [start for start in starts if start not in set(ends)]
    reached |= set(waiting)
    while waiting:
        following = [other for other in edges[waiting.pop()] if other not in reached]
        reached.update(following)
        waiting += following
    return reached


def _mask(names: Sequence[str]) -> int:
    return reduce(or_, (1 << int(name[1:]) for name in names if name.startswith("R")), 0)
