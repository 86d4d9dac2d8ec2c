"""Changes in a series, as plots and pages show them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

from profkit.history.record import Conditions, Point
from profkit.history.view import changes


class Kind(StrEnum):
    """What a change is: one of the program, of the method, or of hardware or driver."""

    REAL = "real"
    METHOD = "method"
    HARDWARE = "hardware"
    NOISE = "noise"


@dataclass(frozen=True)
class Mark:
    """A change before the point `index`, in words; `change` is that of the median, as a share,
    where a check found it."""

    index: int
    kind: Kind
    words: str
    change: float = 0.0


NAMES = {
    Kind.REAL: "change of the program",
    Kind.METHOD: "change of the method",
    Kind.HARDWARE: "change of hardware or driver",
    Kind.NOISE: "noise",
}
"""The kinds of changes in words."""
_METHOD = {"clock_policy", "timer", "cache_policy", "profkit"}


def condition_marks(points: Sequence[Point]) -> list[Mark]:
    """Where the conditions of the measurement changed, whether or not the times did."""
    marks = []
    for index, (before, after) in enumerate(itertools.pairwise(points), 1):
        words = changes(before.conditions, after.conditions)
        if words:
            kind = kind_of(before.conditions, after.conditions)
            marks.append(Mark(index, kind, "; ".join(words)))
    return marks


def kind_of(before: Conditions, after: Conditions) -> Kind:
    """What a change between two conditions is: one of the method where any of these differs."""
    differing = {
        field.name
        for field in fields(Conditions)
        if getattr(before, field.name) != getattr(after, field.name)
    }
    return Kind.METHOD if differing & _METHOD else Kind.HARDWARE
