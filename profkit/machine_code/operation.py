"""What one machine instruction does, read off the vendor's SASS text (Volta to Hopper).

Registers are named one by one, as `R4`, `UR12`, `P0`, `UP1`: a 64-bit operand stands for two of
them, a 128-bit one for four. RZ, PT and their like hold nothing and are left out. What is not known
reads its operands and writes the first one, as most instructions do.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

from msgspec import Struct

from profkit.machine_code.opcodes import opcodes

WARP = 32
"""Threads of a warp (CUDA C++ Programming Guide)."""

GLOBAL_LOADS = opcodes("global_loads")

Slot = tuple[int, int]
"""A place in constant memory: bank and byte offset. Kernel parameters are in bank 0."""


class Operation(Struct, frozen=True, dict=True):
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


def unless_loaded(step: Operation) -> Sequence[str]:
    """What an operation reads, nothing of a load from global memory."""
    return () if step.base in GLOBAL_LOADS else step.reads


_REGISTER = re.compile(r"(?<![\w\]])(UR|UP|R|P)(\d+)(?![\dx])")
_OPERAND = re.compile(r"[-!~|]*(UR|UP|R|P)(\d+|Z|T)(?:\.[\w.]+)?\|?")
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
    if match := _GUARD.match(text):
        guard = match[1] + match[2]
        text = text[match.end() :]
    opcode, _, rest = text.partition(" ")
    terms = tuple(term.strip() for term in rest.split(",") if term.strip())
    base, *modifiers = opcode.split(".")
    results = _results(base, terms)
    writes: list[str] = []
    reads: list[str] = [guard.lstrip("!")] if guard and not guard.endswith("T") else []
    addresses: list[str] = []
    for index, term in enumerate(terms):
        if index < results:
            width = 1 if is_predicate(term) else _width(base, modifiers, None)
            writes += _registers(term, width)
        elif "[" in term:
            address, others = _address(term, base)
            addresses += address
            reads += (*address, *others)
        else:
            reads += _registers(term, _width(base, modifiers, index - results))
    branches = base in _BRANCHES and terms and _TARGET.fullmatch(terms[-1])
    return Operation(
        guard="" if guard in {"PT", "UPT"} else guard,
        opcode=opcode,
        terms=terms,
        results=results,
        writes=() if guard == "!PT" else _unique(writes),
        reads=_unique(reads),
        addresses=_unique(addresses),
        constants=tuple((int(bank, 16), int(byte, 16)) for bank, byte in _CONSTANT.findall(rest)),
        target=int(terms[-1], 16) if branches else None,
    )


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _results(base: str, terms: Sequence[str]) -> int:
    """How many of the first operands are results."""
    if not terms or base in _WITHOUT_RESULT or "[" in terms[0]:
        return 0
    count = 1
    if is_predicate(terms[0]):
        result = base in _PREDICATE_AND_RESULT and len(terms) > 1 and "[" not in terms[1]
        other = base in _TWO_PREDICATES and len(terms) > 2 and is_predicate(terms[1])
        count += result or other
    elif base in _TWO_RESULTS:
        count = 2
    elif base != "P2R":
        while count < len(terms) - 1 and is_predicate(terms[count]):
            count += 1
    return count


def is_predicate(term: str) -> bool:
    """Whether an operand is a predicate register."""
    return re.fullmatch(r"U?P[\dTR]", term) is not None


def _registers(term: str, width: int) -> list[str]:
    """The registers of an operand; all predicates of `PR`."""
    if term.partition(".")[0] == "PR":
        return [f"P{number}" for number in range(7)]
    match = _OPERAND.fullmatch(term)
    if match is None:
        return [kind + number for kind, number in _REGISTER.findall(term)]
    if not match[2].isdigit():
        return []
    return _span(match[1], int(match[2]), width if match[1] in {"R", "UR"} else 1)


def _span(kind: str, first: int, width: int) -> list[str]:
    return [f"{kind}{number}" for number in range(first, first + width)]


def _address(term: str, base: str) -> tuple[list[str], list[str]]:
    """Registers of a memory operand: those of the address, and those of a descriptor."""
    match = _BRACKETED.search(term)
    if match is None:
        return [], []
    kind, inside, more = match["kind"], match["inside"], match["more"]
    described = kind.startswith(("desc", "gdesc", "c")) and (more is not None or kind == "gdesc")
    if not described:
        return _wide(inside, 1, base), []
    if kind == "c":
        return _wide(more or "", 1), []
    return _wide(more or "", 1, base), _wide(inside, 4 if kind == "gdesc" else 2)


def _wide(inside: str, width: int, base: str = "") -> list[str]:
    """The registers between brackets; one marked `.64`, and Volta's global addresses, are pairs."""
    registers = []
    for match in _REGISTER.finditer(inside):
        rest = inside[match.end() :]
        volta = base in _GLOBAL and not rest.startswith(".") and match[1] == "R"
        pair = rest.startswith(".64") or volta
        registers += _span(match[1], int(match[2]), 2 if pair else width)
    return registers


def _width(base: str, modifiers: Sequence[str], source: int | None) -> int:
    """How many registers a result takes, or the operand that is the source of this number."""
    if base in _CONVERSIONS:
        return 2 if _converted(base, modifiers)[source is not None].endswith("64") else 1
    if base.endswith("MMA"):
        return _matrix(base, modifiers, 0 if source is None else source + 1)
    if base == ("LDSM" if source is None else "STSM"):
        return next((int(count) for count in ("4", "2") if count in modifiers), 1)
    plain = 4 if "128" in modifiers else 2 if "64" in modifiers else 1
    double = base in _DOUBLE
    if source is None:
        if base == "CS2R":
            plain = 1 if "32" in modifiers else 2
        double |= base in _TWO_RESULTS or base == "LEPC" or "WIDE" in modifiers
    elif base in {"IMAD", "UIMAD"}:
        plain = 2 if source == 2 and ("WIDE" in modifiers or "HI" in modifiers) else 1
    elif base in _LOADS:
        plain = 1
    return 2 if double else plain


def _converted(base: str, modifiers: Sequence[str]) -> tuple[str, str]:
    """The types of a conversion's result and source."""
    types = [modifier for modifier in modifiers if _TYPES.fullmatch(modifier)]
    if len(types) > 1:
        return types[0], types[1]
    only = types[0] if types else ""
    if base == "FRND":
        return only, only
    of_result = only.startswith(("S", "U")) == (base in {"F2I", "I2I"})
    return (only, "") if of_result else ("", only)


def _matrix(base: str, modifiers: Sequence[str], operand: int) -> int:
    """Registers of the operands D, A, B, C of a matrix product; those of 16x8x16 by default."""
    shape = next((modifier for modifier in modifiers if modifier[:1].isdigit()), "16816")
    if match := _SHAPE.match(shape):
        return 4 if operand == 1 else int(match[1]) // (2 if "F32" in modifiers else 4)
    if base == "HMMA" and "F16" in modifiers and operand in {0, 3}:
        return 2
    small = shape == "1688" or (base == "IMMA" and shape in {"16816", "8816"})
    return ((4, 2, 1, 4) if small else (4, 4, 2, 4))[operand] if operand < 4 else 1
