"""Units and nouns after a value, singular or plural: `1 register`, `28 registers`."""


def is_word(unit: str) -> bool:
    """Whether a unit is a noun (`instruction`, `sector/request`), not a symbol."""
    head = unit.partition("/")[0]
    return len(head) > 2 and head.islower()


def unit_after(value: float, unit: str) -> str:
    """A unit after a value, nouns in the plural: `4 sectors/request`."""
    if value == 1 or not is_word(unit):
        return unit
    head, per, base = unit.partition("/")
    return f"{plural_of(head)}{per}{base}"


def plural_of(word: str) -> str:
    """`launches`, `quantities`, `delays`, `series`."""
    if word.endswith("ies"):
        return word
    if word.endswith("y") and not word.endswith(("ay", "ey", "oy")):
        return f"{word[:-1]}ies"
    return f"{word}{'es' if word.endswith(('ch', 'ss')) else 's'}"
