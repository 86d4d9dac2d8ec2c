"""The addresses that the lanes of a warp access, by the integer arithmetic of a kernel's code.

The code is run once from top to bottom for the lanes of the first warp of the first block: both
sides of a branch, and of a loop the first round. What a launch does not tell (parameters, values
loaded at one address) is taken to be PITCH for all lanes, and a value loaded at addresses that
differ is unknown. What counts is how lanes differ, which a base address does not change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from profkit.machine_code.opcodes import class_of, opcodes
from profkit.machine_code.operation import WARP, is_predicate

if TYPE_CHECKING:
    from profkit.machine_code.flow import Flow
    from profkit.machine_code.operation import Operation

PITCH = 4096
"""A parameter that is not known, chosen: aligned as an address, large as a row of an array."""

SECTOR = 32  # bytes: the unit of transfers from L2 (CUDA C++ Best Practices Guide, 10.2.1)
_BANKS = 32  # of shared memory (CUDA C++ Programming Guide, "Shared Memory")
_WORD_BYTES = 4  # of a bank (the same)
_SIZES = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}  # by modifiers
_WORD = (1 << 32) - 1
_SIGN = 1 << 31
_CONSTANT = re.compile(r"c\[0x0\]\[0x([0-9a-f]+)\]")
_IMMEDIATE = re.compile(r"0x[0-9a-f]{1,16}|0|[1-9]\d{0,18}")
_REGISTER = re.compile(r"U?R\d+")
_INSIDE = re.compile(r"\[([^\[\]]*)\][^\[\]]*$")
_LOADS = opcodes("loads")
_SHARED = frozenset({"shared_memory", "shared_atomic"})
_GLOBAL = frozenset({"global_memory", "global_atomic"})

Lanes = tuple[int, ...] | None
"""A value in each lane, from 0 up to 2**32; None where it is not known."""


class Access(Struct, frozen=True, dict=True):
    """A memory instruction, by its index: bytes a lane, and the lanes' addresses if known."""

    index: int
    is_shared: bool
    size: int
    addresses: Lanes

    @property
    def sectors(self) -> int:
        """Sectors of L2 that the warp touches; 0 where the addresses are not known."""
        return len({address // SECTOR for address in self.addresses or ()})

    @property
    def needed_sectors(self) -> int:
        """The fewest sectors that hold what the lanes access."""
        bytes_ = len(set(self.addresses or ())) * self.size
        return -(-bytes_ // SECTOR)

    @property
    def wavefronts(self) -> int:
        """Wavefronts of a shared access: the most words of one bank; 0 where unknown.

        Lanes of 16 bytes go by half warps, all others together: wavefronts that ncu counted of
        recorded kernels are so.
        """
        return sum(
            max(map([word % _BANKS for word in words].count, range(_BANKS)))
            for words in self._words
        )

    @property
    def needed_wavefronts(self) -> int:
        """The fewest wavefronts that as many words take."""
        return sum(-(-len(words) // _BANKS) for words in self._words)

    @cached_property
    def _words(self) -> tuple[frozenset[int], ...]:
        """The words of shared memory that the lanes access together."""
        lanes = self.addresses or ()
        group = WARP // 2 if self.size > 2 * _WORD_BYTES else WARP
        return tuple(
            frozenset(
                address // _WORD_BYTES + word
                for address in lanes[start : start + group]
                for word in range(max(1, self.size // _WORD_BYTES))
            )
            for start in range(0, len(lanes), group)
        )


def accesses(flow: Flow, block: Sequence[int], grid: Sequence[int]) -> tuple[Access, ...]:
    """The accesses to global and shared memory of a launch of this code, in its order.

    `block` and `grid` are its extents.
    """
    return _Run(block, grid).accesses(flow.operations)


class _Run:
    def __init__(self, block: Sequence[int], grid: Sequence[int]) -> None:
        x, y, _ = (max(extent, 1) for extent in (*block, 1, 1, 1)[:3])
        self._registers: dict[str, Lanes] = {}
        self._extents = (*(*block, 1, 1, 1)[:3], *(*grid, 1, 1, 1)[:3])
        lanes = range(WARP)
        self._special: Mapping[str, tuple[int, ...]] = {
            "SR_TID.X": tuple(lane % x for lane in lanes),
            "SR_TID.Y": tuple(lane // x % y for lane in lanes),
            "SR_TID.Z": tuple(lane // (x * y) for lane in lanes),
            "SR_LANEID": tuple(lanes),
        }

    def accesses(self, operations: Sequence[Operation]) -> tuple[Access, ...]:
        """Run all operations."""
        made = []
        for index, step in enumerate(operations):
            kind = class_of(step.base)
            if kind in _SHARED or kind in _GLOBAL:
                made.append(Access(index, kind in _SHARED, _size(step), self._address(step)))
            if step.writes:
                self._write(step)
        return tuple(made)

    def _write(self, step: Operation) -> None:
        value = self._result(step)
        low, *others = step.writes
        self._registers[low] = value
        known = None if value is None else (0,) * WARP
        self._registers.update(dict.fromkeys(others, known))

    def _result(self, step: Operation) -> Lanes:
        base = step.base.removeprefix("U")
        if step.base in _LOADS:
            return self._loaded(step)
        if base in {"S2R", "S2UR", "CS2R"}:
            return self._special.get(step.terms[-1], (0,) * WARP)
        terms = [term for term in step.terms[step.results :] if not is_predicate(term.lstrip("!"))]
        values = [self._value(term) for term in terms]
        if any(value is None for value in values):
            return None
        known = [value for value in values if value is not None]
        compute = _ARITHMETIC.get(base)
        if compute is None:
            return self._other(step)
        try:
            return tuple(compute(step, *row) & _WORD for row in zip(*known, strict=True))
        except TypeError:  # a form with other operands
            return self._other(step)

    def _other(self, step: Operation) -> Lanes:
        """What is not computed: alike in all lanes where its sources are."""
        sources = [self._registers.get(name, (0,) * WARP) for name in step.reads]
        alike = all(source is not None and len(set(source)) == 1 for source in sources)
        return (PITCH,) * WARP if alike and step.base != "SHFL" else None

    def _loaded(self, step: Operation) -> Lanes:
        if step.base in {"LDC", "ULDC", "LDCU"} and not step.addresses:
            return self._value(step.terms[-1])
        address = self._address(step)
        return (PITCH,) * WARP if address and len(set(address)) == 1 else None

    def _value(self, term: str) -> Lanes:
        negative, inverted = term.startswith("-"), term.startswith("~")
        name = term.lstrip("-~|").partition(".")[0].rstrip("|")
        if constant := _CONSTANT.search(term):
            place = int(constant[1], 16) // 4
            value: Lanes = (self._extents[place] if place < len(self._extents) else PITCH,) * WARP
        elif _REGISTER.fullmatch(name):
            value = self._registers.get(name, (0,) * WARP)
        elif _IMMEDIATE.fullmatch(name):
            value = (int(name, 0) & _WORD,) * WARP
        elif name in {"RZ", "URZ"}:
            value = (0,) * WARP
        else:
            value = (PITCH,) * WARP
        if value is None:
            return None
        if negative:
            return tuple(-lane & _WORD for lane in value)
        return tuple(~lane & _WORD for lane in value) if inverted else value

    def _address(self, step: Operation) -> Lanes:
        term = next((term for term in reversed(step.terms) if "[" in term), "")
        match = _INSIDE.search(term)
        if match is None:
            return None
        total = [0] * WARP
        for part in re.split(r"\+", match[1].replace("-0x", "+-0x")):
            word = part.strip()
            if not word:
                continue
            name, *suffix = word.split(".")
            value = self._value(name)
            if value is None:
                return None
            scale = next((int(each[1:]) for each in suffix if re.fullmatch(r"X\d{1,2}", each)), 1)
            total = [(have + lane * scale) & _WORD for have, lane in zip(total, value, strict=True)]
        return tuple(total)


def _size(step: Operation) -> int:
    """Bytes a lane."""
    return next((size for mark, size in _SIZES.items() if mark in step.modifiers), _WORD_BYTES)


def _signed(value: int) -> int:
    return value - (value & _SIGN) * 2


def _multiply(step: Operation, a: int, b: int, c: int = 0) -> int:
    if "HI" in step.modifiers:
        unsigned = "U32" in step.modifiers
        return ((a * b if unsigned else _signed(a) * _signed(b)) >> 32) + c
    return a * b + c


def _shift(step: Operation, low: int, places: int, high: int = 0) -> int:
    places = min(places, 63)
    if "L" in step.modifiers:
        whole = (high << 32 | low) << places
        return whole >> 32 if "HI" in step.modifiers else whole
    if "HI" in step.modifiers:
        return (_signed(high) if "S32" in step.modifiers else high) >> places
    return (high << 32 | low) >> places


def _scaled_sum(step: Operation, a: int, b: int, *rest: int) -> int:
    by = rest[-1] if rest else 0
    if "HI" not in step.modifiers:
        return (a << (by & 31)) + b
    wide = _signed(a) if "SX32" in step.modifiers else a
    return ((wide << (by & 31)) >> 32) + b


def _logic(_: Operation, a: int, b: int, c: int, table: int) -> int:
    result = 0
    for row in range(8):
        if table >> row & 1:
            result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return result


def _extreme(step: Operation, a: int, b: int, *_: int) -> int:
    least = step.terms[-1] in {"PT", "UPT"}
    key: Callable[[int], int] = (lambda value: value) if "U32" in step.modifiers else _signed
    return min(a, b, key=key) if least else max(a, b, key=key)


def _permute(_: Operation, a: int, selector: int, b: int) -> int:
    bytes_ = (b << 32 | a).to_bytes(8, "little")
    picks = [selector >> 4 * place & 7 for place in range(4)]
    return int.from_bytes(bytes(bytes_[pick] for pick in picks), "little")


_ARITHMETIC: Mapping[str, Callable[..., int]] = {
    "MOV": lambda _, a, *_rest: a,
    "R2UR": lambda _, a, *_rest: a,
    "IADD3": lambda _, a, b, c=0: a + b + c,
    "IADD": lambda _, a, b: a + b,
    "VIADD": lambda _, a, b: a + b,
    "IMAD": _multiply,
    "LEA": _scaled_sum,
    "SHF": _shift,
    "LOP3": _logic,
    "IMNMX": _extreme,
    "VIMNMX": _extreme,
    "SEL": lambda _, a, _b: a,
    "PRMT": _permute,
    "SGXT": lambda _, a, bits: a & ((1 << min(bits, 32)) - 1),
}
