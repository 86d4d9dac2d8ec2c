"""What an audit finds: a claim, the calculation that contradicts it, and what would be right."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from profkit.audit.claim import UNITS
from profkit.audit.implied import Subject
from profkit.audit.printed_numbers import Figure
from profkit.audit.span import Span
from profkit.core.typed_file import Model, Number

SLACK = 1e-3
PEAK_SLACK = 0.02
_CLOSE = 0.02
Rule: TypeAlias = Literal[
    "flop_of_shape", "bytes_of_shape", "intensity", "amount_over_time", "share_of_peak", "peak",
    "above_peak", "ridge", "bound", "interval", "interval_end", "overlap", "timer_tick",
    "speed_up", "ratio_of_peaks", "advantage", "memory", "grid", "launch_limit", "occupancy",
    "residency", "waves", "number_of_SMs", "change", "part", "product", "tokens", "cycles",
    "exponent", "mean", "record",
]  # fmt: skip


class Contradiction(Model, frozen=True):
    """A claim that the rest of what is claimed, or a datasheet, contradicts."""

    where: Annotated[str, Meta(description="Place in the file.")]
    text: Annotated[str, Meta(description="The sentence; empty for a row.")]
    rule: Rule
    field: Annotated[str, Meta(description="What of the claim is contradicted.")]
    claimed: Annotated[str, Meta(description="As it was written.")]
    follows: Annotated[str, Meta(description="The calculation, or the fact, that contradicts it.")]
    cause: Annotated[str | None, Meta(description="What likely went wrong.")]
    should_be: str
    value: Annotated[Number | None, Meta(description="The claimed number, in `unit`.")] = None
    expected: Annotated[
        Number | None, Meta(description="What follows; for limits, the limit or below.")
    ] = None
    unit: Annotated[str | None, Meta(description="SI; 1 for a share, x for a ratio.")] = None


@dataclass(frozen=True)
class Check:
    """A rule that could be held against a claim: the fields it used, and what it found.

    A `doubt` is no contradiction: what is claimed may be right, but does not say what it seems to.
    """

    rule: Rule
    used: tuple[str, ...]
    found: Contradiction | None = None
    doubt: bool = False


def check(
    subject: Subject,
    rule: Rule,
    field: str,
    expected: Sequence[Span],
    *,
    cause: Callable[[float], str] | str = "",
    should_be: Callable[[Span], str] = str,
    slack: float = SLACK,
    doubt: bool = False,
) -> Iterator[Check]:
    """A claimed figure against what it should be, any of `expected`; nothing for a borrowed one.

    `cause` may depend on the ratio of the claimed figure to the right one.
    """
    claimed = subject.claim[field]
    if field in subject.borrowed or claimed is None or not expected:
        return
    used = (field, *(name for span in expected for name in span.used))
    if any(span.allows(claimed, slack) for span in expected):
        yield Check(rule, used)
        return
    nearest = min(expected, key=lambda span: abs(math.log(span.value / claimed.value)))
    why = cause if isinstance(cause, str) else cause(claimed.value / nearest.value)
    found = Contradiction(
        subject.claim.where, subject.claim.text, rule, field, shown(claimed, field),
        nearest.calculation, why or None, should_be(nearest), claimed.value, nearest.value,
        UNITS[field] or None,
    )  # fmt: skip
    yield Check(rule, used, found, doubt)


def statement(
    subject: Subject,
    rule: Rule,
    field: str,
    claimed: str,
    follows: str,
    should_be: str,
    cause: str = "",
    *,
    used: tuple[str, ...] = (),
    wrong: bool = True,
    doubt: bool = False,
) -> Check:
    """What is claimed without being a figure, and is contradicted where it is `wrong`."""
    claim = subject.claim
    found = Contradiction(
        claim.where, claim.text, rule, field, claimed, follows, cause or None, should_be
    )
    return Check(rule, (field, *used), found if wrong else None, doubt)


def shown(figure: Figure, field: str) -> str:
    return figure.text or f"{figure.value:.6g} {UNITS[field].strip('1')}".strip()


def near(ratio: float, factor: float) -> bool:
    return abs(ratio / factor - 1) < _CLOSE


def by_factor(causes: Mapping[float, str]) -> Callable[[float], str]:
    """What likely went wrong, by how many times the right figure the claimed one is."""
    return partial(_nearest_cause, causes)


def _nearest_cause(causes: Mapping[float, str], ratio: float) -> str:
    return next((why for factor, why in causes.items() if near(ratio, factor)), "")
