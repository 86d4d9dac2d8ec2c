"""How control and data flow through a kernel's machine code: blocks, loops and producers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from profkit.report.sass_text import Operation

_LEAVES = frozenset({"RET", "EXIT", "KILL"})
_JUMPS = frozenset({"BRA", "JMP"})
_UNKNOWN = frozenset({"BRX", "BRXU", "JMX", "JMXU"})
_ENDS = _LEAVES | _JUMPS | _UNKNOWN | {"CALL", "BSYNC", "WARPSYNC", "BPT"}


@dataclass(frozen=True)
class Block:
    """Operations from `start` up to, not including, `end` that run one after the other."""

    start: int
    end: int
    successors: tuple[int, ...]


@dataclass(frozen=True)
class Loop:
    """A natural loop: its first block, all its blocks, and how many loops are around it."""

    head: int
    blocks: frozenset[int]
    depth: int


class Flow:
    """A kernel's code, operations told by their place in it.

    `addresses` are the program counters, ascending. Calls are taken to return and to change no
    register; where an indirect branch goes is not known.
    """

    def __init__(self, addresses: Sequence[int], operations: Sequence[Operation]) -> None:
        self.addresses = tuple(addresses)
        self.operations = tuple(operations)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The basic blocks, in the order of the code."""
        ends = [at + 1 for at, one in enumerate(self.operations) if one.base in _ENDS]
        targets = [self._at(one.target) for one in self.operations if one.target is not None]
        starts = sorted({0, *ends, *filter(None, targets)} - {len(self.operations)})
        place = {start: number for number, start in enumerate(starts)}
        found = []
        for number, start in enumerate(starts):
            end = starts[number + 1] if number + 1 < len(starts) else len(self.operations)
            after = [place[at] for at in self._after(end - 1) if at in place]
            found.append(Block(start, end, tuple(dict.fromkeys(after))))
        return tuple(found) if self.operations else ()

    def block_of(self, at: int) -> int:
        """The block that an operation is in."""
        return self._block_of[at]

    def loop_of(self, at: int) -> Loop | None:
        """The innermost loop that an operation is in."""
        return self._innermost.get(self._block_of[at])

    def leads(self, at: int, to: int) -> bool:
        """Whether control may go from one operation to a later one."""
        seen: set[int] = set()
        waiting = [self._block_of[at]]
        while waiting:
            number = waiting.pop()
            if number == self._block_of[to]:
                return True
            if number not in seen:
                seen.add(number)
                waiting += self.blocks[number].successors
        return False

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """The natural loops, outer ones before those inside them."""
        bodies: dict[int, set[int]] = {}
        for tail, block in enumerate(self.blocks):
            for head in block.successors:
                if self._dominates(head, tail):
                    bodies.setdefault(head, {head}).update(self._body(head, tail))
        found = [
            Loop(head, frozenset(body), sum(head in other for other in bodies.values()) - 1)
            for head, body in bodies.items()
        ]
        return tuple(sorted(found, key=lambda loop: (loop.depth, loop.head)))

    def producers(
        self, register: str, at: int, within: frozenset[int] | None = None
    ) -> tuple[int, ...]:
        """The operations whose value of a register an operation at this place may read.

        Nearest first: up the straight line, then by the ways that lead here, around loops too. A
        write under another predicate may leave an older value. `within` keeps to some blocks.
        """
        return tuple(dict.fromkeys(self._writers(register, at, within)))

    def _writers(self, register: str, at: int, within: frozenset[int] | None) -> Iterator[int]:
        waiting = [(self._block_of[at], at)]
        seen: set[int] = set()
        while waiting:
            number, before = waiting.pop(0)
            writes = self._writes[number].get(register, ())
            certain = False
            for writer in reversed(writes[: bisect_left(writes, before)]):
                yield writer
                certain = not self.operations[writer].conditional or self._agree(writer, at)
                if certain:
                    break
            if certain:
                continue
            for other in self._predecessors[number]:
                if other not in seen and (within is None or other in within):
                    seen.add(other)
                    waiting.append((other, self.blocks[other].end))

    def _agree(self, writer: int, reader: int) -> bool:
        """Whether both run under the same predicate, one after the other in one block."""
        guard = self.operations[writer].guard
        if guard != self.operations[reader].guard or not writer < reader:
            return False
        number = self._block_of[writer]
        changes = self._writes[number].get(guard.lstrip("!"), ())
        return number == self._block_of[reader] and not any(writer <= at < reader for at in changes)

    def sources(
        self,
        at: int,
        registers: Sequence[str],
        within: frozenset[int] | None = None,
        through: Callable[[Operation], Sequence[str]] = lambda one: one.reads,
    ) -> tuple[int, ...]:
        """The backward slice: all operations that some registers' values at a place rest on.

        `through` tells which registers of a producer to follow further, none to end there.
        """
        found: dict[int, None] = {}
        asked: set[tuple[str, int]] = set()
        waiting = [(register, at) for register in registers]
        while waiting:
            register, place = waiting.pop()
            if (register, place) in asked:
                continue
            asked.add((register, place))
            for producer in self.producers(register, place, within):
                if producer not in found:
                    found[producer] = None
                    one = self.operations[producer]
                    waiting += [(name, producer) for name in through(one)]
        return tuple(found)

    def live(self) -> list[int]:
        """How many general registers hold a value still needed, at each operation.

        The larger of those needed before it and those it leaves, its own results included. A write
        that may not happen ends no value. What a called function or an indirect branch needs is
        not known: there it may be more.
        """
        before = self._live_before()
        found = [0] * len(self.operations)
        for block in self.blocks:
            needed = 0
            for other in block.successors:
                needed |= before[other]
            for at in range(block.end - 1, block.start - 1, -1):
                writes, reads = self._masks[at]
                after = needed | writes
                needed = needed & ~self._kills(at) | reads
                found[at] = max(needed.bit_count(), after.bit_count())
        return found

    def _live_before(self) -> list[int]:
        """For each block the registers needed where it starts, a bit a register."""
        kills, reads = [], []
        for block in self.blocks:
            killed = needed = 0
            for at in range(block.end - 1, block.start - 1, -1):
                needed = needed & ~self._kills(at) | self._masks[at][1]
                killed |= self._kills(at)
            kills.append(killed)
            reads.append(needed)
        before = list(reads)
        changed = True
        while changed:
            changed = False
            for number in range(len(self.blocks) - 1, -1, -1):
                after = 0
                for other in self.blocks[number].successors:
                    after |= before[other]
                needed = after & ~kills[number] | reads[number]
                changed |= needed != before[number]
                before[number] = needed
        return before

    def _kills(self, at: int) -> int:
        return 0 if self.operations[at].conditional else self._masks[at][0]

    @cached_property
    def _masks(self) -> Sequence[tuple[int, int]]:
        """What each operation writes and reads of the general registers, a bit a register."""
        return [(_mask(one.writes), _mask(one.reads)) for one in self.operations]

    def _at(self, address: int) -> int | None:
        """The place of an address; None where the code does not have it."""
        return self._places.get(address)

    @cached_property
    def _places(self) -> Mapping[int, int]:
        return {address: at for at, address in enumerate(self.addresses)}

    def _after(self, at: int) -> Iterator[int]:
        """Where control may go after the last operation of a block."""
        one = self.operations[at]
        target = self._at(one.target) if one.target is not None else None
        may_not = one.conditional or any(
            name.startswith(("P", "UP")) for name in one.reads if one.base in {"BRA", "EXIT"}
        )
        if one.base in _JUMPS | {"CALL", "WARPSYNC"} and target is not None:
            yield target
        if one.base == "BSYNC":
            yield from self._joins.get(one.terms[:1], ())
        ends = one.base in _LEAVES | _JUMPS | _UNKNOWN
        if (not ends or may_not or "DIV" in one.modifiers) and at + 1 < len(self.operations):
            yield at + 1

    @cached_property
    def _joins(self) -> Mapping[tuple[str, ...], tuple[int, ...]]:
        """By convergence barrier, the places where its warps go on together."""
        found: dict[tuple[str, ...], tuple[int, ...]] = {}
        for one in self.operations:
            at = self._at(one.target) if one.base == "BSSY" and one.target else None
            if at is not None and self.operations[at].base != "BSYNC":
                found[one.terms[:1]] = (*found.get(one.terms[:1], ()), at)
        return found

    @cached_property
    def _block_of(self) -> Sequence[int]:
        return [number for number, block in enumerate(self.blocks) for _ in range(*_span(block))]

    @cached_property
    def _predecessors(self) -> Sequence[Sequence[int]]:
        found: list[list[int]] = [[] for _ in self.blocks]
        for number, block in enumerate(self.blocks):
            for other in block.successors:
                found[other].append(number)
        return found

    @cached_property
    def _writes(self) -> Sequence[Mapping[str, list[int]]]:
        """For each block the places that write each register."""
        found: list[dict[str, list[int]]] = []
        for block in self.blocks:
            writes: dict[str, list[int]] = {}
            for at in range(*_span(block)):
                for name in self.operations[at].writes:
                    writes.setdefault(name, []).append(at)
            found.append(writes)
        return found

    @cached_property
    def _order(self) -> Sequence[int]:
        """Blocks in reverse postorder from the entries: the first, and those nothing leads to."""
        entries = [0] + [at for at, before in enumerate(self._predecessors) if at and not before]
        seen: set[int] = set()
        order: list[int] = []
        for entry in entries:
            stack = [(entry, iter(self.blocks[entry].successors))] if entry not in seen else []
            seen.add(entry)
            while stack:
                number, rest = stack[-1]
                following = next((other for other in rest if other not in seen), None)
                if following is None:
                    order.append(number)
                    stack.pop()
                else:
                    seen.add(following)
                    stack.append((following, iter(self.blocks[following].successors)))
        return order[::-1]

    @cached_property
    def _dominators(self) -> Mapping[int, int]:
        """The immediate dominator of each block (Cooper, Harvey and Kennedy); -1 above entries."""
        rank = {number: at for at, number in enumerate(self._order)}
        immediate: dict[int, int] = {}

        def common(one: int, other: int) -> int:
            while one != other:
                if one == -1 or other == -1:
                    return -1
                if rank[one] > rank[other]:
                    one = immediate[one]
                else:
                    other = immediate[other]
            return one

        changed = True
        while changed:
            changed = False
            for number in self._order:
                known = [other for other in self._predecessors[number] if other in immediate]
                above = known[0] if known and number else -1
                for other in known[1:]:
                    above = common(above, other)
                if immediate.get(number) != above:
                    immediate[number] = above
                    changed = True
        return immediate

    def _dominates(self, head: int, tail: int) -> bool:
        while tail != head and tail != -1:
            tail = self._dominators.get(tail, -1)
        return tail == head

    def _body(self, head: int, tail: int) -> set[int]:
        """The blocks of the loop that the edge from `tail` back to `head` closes."""
        body = {head, tail}
        waiting = [tail] if tail != head else []
        while waiting:
            for other in self._predecessors[waiting.pop()]:
                if other not in body:
                    body.add(other)
                    waiting.append(other)
        return body

    @cached_property
    def _innermost(self) -> Mapping[int, Loop]:
        return {number: loop for loop in self.loops for number in loop.blocks}


def _span(block: Block) -> tuple[int, int]:
    return block.start, block.end


def _mask(names: Sequence[str]) -> int:
    found = 0
    for name in names:
        if name.startswith("R"):
            found |= 1 << int(name[1:])
    return found
