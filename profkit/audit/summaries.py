"""Figures that programs derive in summaries: ends of rates, cycles, tokens/s, exponents."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from profkit.audit.contradiction import SLACK, Amount, Check, Words, check, statement
from profkit.audit.implied import Span, Subject
from profkit.audit.work import flop_spans

if TYPE_CHECKING:
    from profkit.audit.claims import Claim

# Cycles are the median over calls, the clock that over blocks: their product is not the same.
_MEDIANS = 0.05


def rate_ends(subject: Subject) -> Iterator[Check]:
    """The interval of a rate is work over the ends of the interval of the time."""
    claim = subject.claim
    flop, used = flop_spans(subject)
    for field, end in (("flop_rate_low", claim.high), ("flop_rate_high", claim.low)):
        if end is None or not flop:
            continue
        time = Span.of(end)

        def follows(span: Span, time: Span = time) -> Words:
            return (Amount(flop[0].value, "FLOP"), " / ", Amount(time.value, "s"), " = ",
                    Amount(span.value, "FLOP/s"))  # fmt: skip

        yield from check(
            subject, "amount over time", field, [flop[0] / time], follows,
            used=("low", "high", *used),
        )  # fmt: skip


def cycles(subject: Subject) -> Iterator[Check]:
    """Cycles are time times the clock that was held."""
    claim = subject.claim
    if claim.time is None or claim.held_clock is None:
        return
    span = Span.of(claim.time) * Span.of(claim.held_clock)

    def follows(span: Span) -> Words:
        return (f"time x clock = {span.value:,.4g} cycles",)

    yield from check(
        subject, "cycles", "cycles", [span], follows, used=("time", "held_clock"), slack=_MEDIANS,
        should_be=lambda span: (f"{span.value:,.4g} cycles",),
    )  # fmt: skip


def row_tokens(subject: Subject) -> Iterator[Check]:
    """Of a row with a shape: batch times length is what a call takes of tokens."""
    claim = subject.claim
    if claim.text or not (claim.time and claim.batch and claim.length):
        return
    span = Span.of(float(claim.batch * claim.length)) / Span.of(claim.time)

    def follows(span: Span) -> Words:
        return (f"{claim.batch} x {claim.length} tokens in a call: {span.value:,.4g} tokens/s",)

    yield from check(
        subject, "tokens", "token_rate", [span], follows, used=("time", "batch", "length"),
        should_be=lambda span: (f"{span.value:,.4g} tokens/s",),
    )  # fmt: skip


def exponents(subject: Subject) -> Iterator[Check]:
    """The exponent of a growth is the logarithm of its ratio to the base of the factor."""
    claim = subject.claim
    if claim.factor is None or claim.factor.value == 1:
        return
    for field, ratio in (("exponent", claim.time_ratio), ("flop_exponent", claim.flop_ratio)):
        if ratio is None or ratio.value <= 1:
            continue
        value = math.log(ratio.value) / math.log(claim.factor.value)
        if not value > 0:
            continue

        def follows(_: Span, ratio: float = ratio.value) -> Words:
            return (f"log({ratio:.6g}) / log({claim.factor.value if claim.factor else 0:.6g})",)

        yield from check(
            subject, "exponent", field, [Span.of(value)], follows,
            used=("factor", "time_ratio", "flop_ratio"),
            should_be=lambda span: (f"{span.value:.4g}",), slack=SLACK,
        )  # fmt: skip


def means(subject: Subject) -> Iterator[Check]:
    """Mean and median are at most a standard deviation apart, whatever the distribution."""
    claim = subject.claim
    if not (claim.mean and claim.time and claim.deviation):
        return
    median, wide = claim.time.value, claim.mean.value * claim.deviation.value
    span = Span(min(max(claim.mean.value, median - wide), median + wide), median - wide,
                median + wide)  # fmt: skip
    yield from check(
        subject, "mean", "mean", [span],
        lambda _: ("mean and median, ", Amount(median, "s"), ", are at most a standard deviation "
                   "apart, ", Amount(wide, "s")),
        used=("time", "deviation"),
    )  # fmt: skip


def outer_intervals(subject: Subject) -> Iterator[Check]:
    """Every interval of a median holds it."""
    claim = subject.claim
    ends = claim.outer_ends
    if claim.time is None:
        return
    for low, high in zip(ends[::2], ends[1::2], strict=True):
        used = ("outer_ends", "time")
        if low.value <= claim.time.value <= high.value:
            yield Check("interval", used, None)
            continue
        yield statement(
            subject, "interval", "outer_ends", f"{low.text} to {high.text}",
            ("an interval of the median holds it, ", Amount(claim.time.value, "s")),
            ("an interval around ", Amount(claim.time.value, "s")), used=used,
        )  # fmt: skip


def of_cells(subject: Subject, cells: Mapping[str, Claim]) -> Iterator[Check]:
    """What repeats a cell of the record, or is the quotient of two, is that."""
    claim = subject.claim
    made_of = [cells[name] for name in claim.of if name in cells]
    if not made_of or len(made_of) < len(claim.of):
        return
    words = " / ".join(claim.of)
    figures = [getattr(cell, claim.measure_of or "time") for cell in made_of]
    if len(figures) == 1 and figures[0]:
        yield from check(subject, "record", "measure", [Span.of(figures[0])], lambda _: (words,))
    elif len(figures) == 2 and all(figures):
        span = Span.of(figures[0]) / Span.of(figures[1])
        yield from check(
            subject, "record", "time_ratio", [span], lambda _: (f"the times of {words}",)
        )


def ratio_interval(subject: Subject) -> Iterator[Check]:
    """A speed-up lies in its own interval."""
    claim = subject.claim
    if not (claim.speedup and claim.ratio_low and claim.ratio_high):
        return
    low, high = claim.ratio_low.value, claim.ratio_high.value
    if low > high:
        yield statement(
            subject, "interval", "speedup", claim.speedup.text,
            (f"its interval ends, at {high:.4g}, before it begins, at {low:.4g}",),
            ("an interval around ", Amount(claim.speedup.value, "x")),
            used=("ratio_low", "ratio_high"),
        )  # fmt: skip
        return
    inside = Span(min(max(claim.speedup.value, low), high), low, high)

    def follows(_: Span) -> Words:
        return ("its own interval is from ", Amount(low, "x"), " to ", Amount(high, "x"))

    yield from check(
        subject, "interval", "speedup", [inside], follows, used=("ratio_low", "ratio_high")
    )
