"""What one machine instruction does, read off the vendor's SASS text (Volta to Hopper).

Registers are named one by one, as `R4`, `UR12`, `P0`, `UP1`: a 64-bit operand stands for two of
them, a 128-bit one for four. RZ, PT and their like hold nothing and are left out. What is not known
reads its operands and writes the first one, as most instructions do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from profkit.report.resources import opcodes

Slot = tuple[int, int]
"""A place in constant memory: bank and byte offset. Kernel parameters are in bank 0."""


@dataclass(frozen=True)
class Operation:
    """One instruction.

    `guard` is the predicate that it runs under, "!" first where that must be false. `addresses` are
    the registers that make up a memory address, a part of `reads`. `terms` are the operands as
    written, the first `results` of them written to; `target` is where it branches to.
    """

    guard: str
    opcode: str
    terms: tuple[str, ...]
    results: int
    writes: tuple[str, ...]
    reads: tuple[str, ...]
    addresses: tuple[str, ...]
    constants: tuple[Slot, ...]
    target: int | None

    @cached_property
    def base(self) -> str:
        """The opcode without its modifiers."""
        return self.opcode.partition(".")[0]

    @cached_property
    def modifiers(self) -> frozenset[str]:
        return frozenset(self.opcode.split(".")[1:])

    @property
    def conditional(self) -> bool:
        """Whether it may have no effect."""
        return bool(self.guard)


_REGISTER = re.compile(r"(?<![\w\]])(UR|UP|R|P)(\d+)(?![\dx])")
_ONE = re.compile(r"[-!~|]*(UR|UP|R|P)(\d+|Z|T)(?:\.[\w.]+)?\|?")
_CONSTANT = re.compile(r"c\[(0x[0-9a-f]+)\]\[(0x[0-9a-f]+)\]")
_BRACKETED = re.compile(r"(?P<kind>\w*)\[(?P<inside>[^\]]*)\](?:\[(?P<more>[^\]]*)\])?")
_GUARD = re.compile(r"@(!?)(U?P(?:\d|T))\s+")
_SHAPE = re.compile(r"\d+x(\d+)")
_TARGET = re.compile(r"0x[0-9a-f]{3,}")


_WITHOUT_RESULT = opcodes("without_result")
_BRANCHES = opcodes("branches")
_PREDICATE_AND_RESULT = opcodes("predicate_and_result")
_TWO_PREDICATES = opcodes("two_predicates")
_TWO_RESULTS = opcodes("two_results")
_CONVERSIONS = opcodes("conversions")
_GLOBAL = opcodes("wide_addresses")
_LOADS = opcodes("one_word_sources")
_DOUBLE = opcodes("double")
_TYPES = re.compile(r"[FSU](?:8|16|32|64)")


def parse(text: str) -> Operation:
    """Read an instruction as the vendor prints it, such as `@!P0 LDG.E.64 R2, desc[UR4][R2.64]`."""
    text = text.strip().rstrip(";").strip()
    guard = ""
    if told := _GUARD.match(text):
        guard = told[1] + told[2]
        text = text[told.end() :]
    opcode, _, rest = text.partition(" ")
    terms = tuple(term.strip() for term in rest.split(",") if term.strip())
    base = opcode.partition(".")[0]
    results = _results(base, terms)
    width = _Widths(base, opcode.split(".")[1:])
    writes: list[str] = []
    reads: list[str] = [guard.lstrip("!")] if guard and not guard.endswith("T") else []
    addresses: list[str] = []
    for at, term in enumerate(terms):
        if at < results:
            writes += _registers(term, width.of_result(term))
        elif "[" in term:
            at_address, others = _address(term, base)
            addresses += at_address
            reads += (*at_address, *others)
        else:
            reads += _registers(term, width.of_source(at - results))
    if guard == "!PT":
        writes = []
    return Operation(
        guard="" if guard in {"PT", "UPT"} else guard,
        opcode=opcode,
        terms=terms,
        results=results,
        writes=_once(writes),
        reads=_once(reads),
        addresses=_once(addresses),
        constants=tuple((int(bank, 16), int(at, 16)) for bank, at in _CONSTANT.findall(rest)),
        target=_target(base, terms),
    )


def _results(base: str, terms: Sequence[str]) -> int:
    """How many of the first operands are results."""
    if not terms or base in _WITHOUT_RESULT or "[" in terms[0]:
        return 0
    count = 1
    if _is_predicate(terms[0]):
        result = base in _PREDICATE_AND_RESULT and len(terms) > 1 and "[" not in terms[1]
        other = base in _TWO_PREDICATES and len(terms) > 2 and _is_predicate(terms[1])
        count += result or other
    elif base in _TWO_RESULTS:
        count = 2
    elif base != "P2R":
        while count < len(terms) - 1 and _is_predicate(terms[count]):
            count += 1
    return count


def _is_predicate(term: str) -> bool:
    return re.fullmatch(r"U?P[\dTR]", term) is not None


def _registers(term: str, width: int) -> list[str]:
    """The registers of an operand; all predicates of `PR`."""
    if term.partition(".")[0] == "PR":
        return [f"P{at}" for at in range(7)]
    told = _ONE.fullmatch(term)
    if told is None or not told[2].isdigit():
        return [] if told else [kind + number for kind, number in _REGISTER.findall(term)]
    first = int(told[2])
    return [f"{told[1]}{first + at}" for at in range(width if told[1] in {"R", "UR"} else 1)]


def _address(term: str, base: str) -> tuple[list[str], list[str]]:
    """Registers of a memory operand: those of the address, and those of a descriptor."""
    told = _BRACKETED.search(term)
    if told is None:
        return [], []
    inside, more = told["inside"], told["more"]
    if told["kind"].startswith(("desc", "gdesc", "cx", "c")) and (
        more is not None or told["kind"] == "gdesc"
    ):
        described = _wide(inside, 4 if told["kind"] == "gdesc" else 2)
        if told["kind"] == "c":
            return _wide(more or "", 1), []
        return _wide(more or "", 1, base), described
    return _wide(inside, 1, base), []


def _wide(inside: str, width: int, base: str = "") -> list[str]:
    """The registers between brackets; one marked `.64`, and Volta's global addresses, are pairs."""
    found = []
    for told in _REGISTER.finditer(inside):
        kind, first = told[1], int(told[2])
        pair = inside[told.end() :].startswith(".64") or (
            base in _GLOBAL and "." not in inside[told.end() : told.end() + 1] and kind == "R"
        )
        found += [f"{kind}{first + at}" for at in range(2 if pair else width)]
    return found


def _target(base: str, terms: Sequence[str]) -> int | None:
    if base not in _BRANCHES or not terms:
        return None
    return int(terms[-1], 16) if _TARGET.fullmatch(terms[-1]) else None


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


class _Widths:
    """How many registers the operands of an opcode take."""

    def __init__(self, base: str, modifiers: Sequence[str]) -> None:
        self._base = base
        self._modifiers = modifiers
        self._types = [one for one in modifiers if _TYPES.fullmatch(one)]

    def of_result(self, term: str) -> int:
        base, modifiers = self._base, self._modifiers
        if _is_predicate(term):
            return 1
        if base in _CONVERSIONS:
            return 2 if self._converted[0].endswith("64") else 1
        if base in _TWO_RESULTS:
            return 2
        if base.endswith("MMA"):
            return self._matrix(0)
        if base == "LDSM":
            return next((int(one) for one in ("4", "2") if one in modifiers), 1)
        if "WIDE" in modifiers or base in _DOUBLE | {"LEPC"}:
            return 2
        if base == "CS2R":
            return 1 if "32" in modifiers else 2
        return self._plain

    def of_source(self, at: int) -> int:
        base, modifiers = self._base, self._modifiers
        if base in _CONVERSIONS:
            return 2 if self._converted[1].endswith("64") else 1
        if base in {"IMAD", "UIMAD"}:
            return 2 if at == 2 and ("WIDE" in modifiers or "HI" in modifiers) else 1
        if base in _DOUBLE:
            return 2
        if base.endswith("MMA"):
            return self._matrix(at + 1)
        if base == "STSM":
            return next((int(one) for one in ("4", "2") if one in modifiers), 1)
        if base in _LOADS:
            return 1
        return self._plain

    @property
    def _plain(self) -> int:
        if "128" in self._modifiers:
            return 4
        return 2 if "64" in self._modifiers else 1

    @property
    def _converted(self) -> tuple[str, str]:
        """The types of a conversion's result and source."""
        types, base = self._types, self._base
        if len(types) > 1:
            return types[0], types[1]
        only = types[0] if types else ""
        if base == "FRND":
            return only, only
        integer = only.startswith(("S", "U"))
        of_result = integer == (base in {"F2I", "I2I"})
        return (only, "") if of_result else ("", only)

    def _matrix(self, at: int) -> int:
        """Registers of the operands D, A, B, C of a matrix product; those of 16x8x16 by default."""
        shape = next((one for one in self._modifiers if one[:1].isdigit()), "16816")
        if told := _SHAPE.match(shape):
            columns = int(told[1])
            return (4, 4)[at] if at == 1 else columns // (2 if "F32" in self._modifiers else 4)
        small = shape in {"1688", "16816", "8816"} and (self._base == "IMMA" or shape == "1688")
        if self._base == "HMMA" and "F16" in self._modifiers and at in {0, 3}:
            return 2
        return ((4, 2, 1, 4) if small else (4, 4, 2, 4))[at] if at < 4 else 1
