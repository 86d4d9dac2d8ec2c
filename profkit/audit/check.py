"""Checks: quantities that follow from others, and what contradicts a claim."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import replace

from profkit.audit.printed_numbers import Figure
from profkit.core.typed_file import Model, Number
from profkit.ui.text import number

Rule: TypeAlias = Literal[
    "flop_of_shape", "bytes_of_shape", "intensity", "amount_over_time", "share_of_peak", "peak",
    "above_peak", "ridge", "bound", "interval", "interval_end", "overlap", "timer_tick",
    "speed_up", "ratio_of_peaks", "advantage", "memory", "grid", "launch_limit", "occupancy",
    "residency", "change", "tokens", "cycles", "exponent", "mean", "record",
]  # fmt: skip


class Contradiction(Model, frozen=True):
    """A claim that the rest of what is claimed, or a datasheet, contradicts."""

    where: Annotated[str, Meta(description="Place in the file.")]
    text: Annotated[str, Meta(description="The sentence; empty for a row.")]
    rule: Rule
    field: Annotated[str, Meta(description="The contradicted part of the claim.")]
    claimed: Annotated[str, Meta(description="As it was written.")]
    follows: Annotated[str, Meta(description="The calculation, or the fact, that contradicts it.")]
    cause: Annotated[str | None, Meta(description="The likely cause.")]
    should_be: str
    value: Annotated[Number | None, Meta(description="The claimed number, in `unit`.")] = None
    expected: Annotated[
        Number | None, Meta(description="What follows; for limits, the limit or below.")
    ] = None
    unit: Annotated[str | None, Meta(description="SI; 1 for a share, x for a ratio.")] = None


class Check(Struct, frozen=True):
    """A rule that applied to a claim: the fields it used, and the contradiction.

    A `doubt` is not a contradiction: the claim may be right, but is misleading.
    """

    rule: Rule
    used: tuple[str, ...]
    contradiction: Contradiction | None = None
    doubt: bool = False


_COUNTED = ("tokens/s", "cycles")


def amount(value: float, unit: str) -> str:
    """A quantity in words; `unit` is "1" for a share, "x" for a ratio."""
    if unit == "x":
        return f"{value:.3g}x"
    return f"{value:,.4g} {unit}" if unit in _COUNTED else number(value, unit)


class Span(Struct, frozen=True):
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
