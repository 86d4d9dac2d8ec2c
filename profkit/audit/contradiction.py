"""What an audit reports: a claim, the calculation that contradicts it, the expected value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from profkit.core.typed_file import Model, Number

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


@dataclass(frozen=True)
class Check:
    """A rule that applied to a claim: the fields it used, and the contradiction.

    A `doubt` is not a contradiction: the claim may be right, but is misleading.
    """

    rule: Rule
    used: tuple[str, ...]
    contradiction: Contradiction | None = None
    doubt: bool = False
