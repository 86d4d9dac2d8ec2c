"""Words after a value, units of the catalogue among them: `1 register`, `28 registers`."""

from __future__ import annotations


def is_word(unit: str) -> bool:
    """Whether a unit is a counted thing (`instruction`, `sector/request`) and no symbol."""
    head = unit.partition("/")[0]
    return len(head) > 2 and head.islower()


def unit_after(value: float, unit: str) -> str:
    """A unit as it stands after a value: what is counted in the plural, `4 sectors/request`."""
    if value == 1 or not is_word(unit):
        return unit
    head, per, base = unit.partition("/")
    return f"{plural_of(head)}{per}{base}"


def plural_of(word: str) -> str:
    """`launches`, `quantities`, `delays`."""
    if word.endswith("y") and not word.endswith(("ay", "ey", "oy")):
        return f"{word[:-1]}ies"
    return f"{word}{'es' if word.endswith(('ch', 'ss')) else 's'}"
