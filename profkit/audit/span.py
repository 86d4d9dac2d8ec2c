"""Quantities that follow from others: the range that their rounding leaves, and the calculation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from profkit.audit.printed_numbers import Figure
from profkit.ui.text import number

_COUNTED = ("tokens/s", "cycles")


def amount(value: float, unit: str) -> str:
    """A quantity in words; `unit` is "1" for a share, "x" for a ratio."""
    if unit == "x":
        return f"{value:.3g}x"
    return f"{value:,.4g} {unit}" if unit in _COUNTED else number(value, unit)


@dataclass(frozen=True)
class Span:
    """A quantity in `unit`, within `low` to `high`; the calculation, and the fields it `used`.

    The `words` that make a calculation have {} for the quantity.
    """

    value: float
    low: float
    high: float
    unit: str = ""
    calculation: str = ""
    used: tuple[str, ...] = ()

    @classmethod
    def exactly(
        cls, value: float, unit: str = "", words: str = "{}", used: tuple[str, ...] = ()
    ) -> Span:
        return cls(value, value, value, unit, words.replace("{}", amount(value, unit)), used)

    @classmethod
    def up_to(
        cls, limit: float, unit: str = "", words: str = "{}", used: tuple[str, ...] = ()
    ) -> Span:
        """Anything up to a limit, which is what a larger figure should be."""
        return replace(cls.exactly(limit, unit, words, used), low=0.0)

    @classmethod
    def around(cls, figure: Figure, unit: str = "", used: tuple[str, ...] = ()) -> Span:
        """The range of a claimed figure."""
        return cls(figure.value, figure.low, figure.high, unit, "", used)

    def __str__(self) -> str:
        return amount(self.value, self.unit)

    def over(self, other: Span, unit: str, words: str = "") -> Span:
        """The quotient."""
        words = words or f"{self} / {other} = {{}}"
        quotient = Span.exactly(self.value / other.value, unit, words, (*self.used, *other.used))
        return replace(quotient, low=self.low / other.high, high=self.high / other.low)

    def times(self, other: Span, unit: str, words: str = "{}") -> Span:
        """The product."""
        product = Span.exactly(self.value * other.value, unit, words, (*self.used, *other.used))
        return replace(product, low=self.low * other.low, high=self.high * other.high)

    def allows(self, claimed: Figure, slack: float = 0.0) -> bool:
        """Whether a claimed quantity may be this one, `slack` (a share) aside."""
        return claimed.low <= self.high * (1 + slack) and claimed.high >= self.low * (1 - slack)


def quotients(over: Iterable[Span], under: Iterable[Span], unit: str) -> list[Span]:
    """Every quotient of two."""
    divisors = list(under)
    return [dividend.over(divisor, unit) for dividend in over for divisor in divisors]
