"""Figures that programs derive in records: exponents, means, ends, quotients of cells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from profkit.audit.claim import Claim
from profkit.audit.contradiction import Check, check, statement
from profkit.audit.implied import Subject
from profkit.audit.span import Span, amount


def exponents(subject: Subject) -> Iterator[Check]:
    """The exponent of a growth is the logarithm of its ratio to the base of the factor."""
    for factor in subject.spans("factor"):
        for field, growth in (("exponent", "time_ratio"), ("flop_exponent", "flop_ratio")):
            spans = [
                Span.exactly(
                    math.log(ratio.value) / math.log(factor.value), "",
                    f"log({ratio.value:.6g}) / log({factor.value:.6g})",
                    ("factor", "time_ratio", "flop_ratio"),
                )
                for ratio in subject.spans(growth)
                if ratio.value > 1 and factor.value > 1
            ]  # fmt: skip
            yield from check(
                subject, "exponent", field, spans, should_be=lambda span: f"{span.value:.4g}"
            )


def means(subject: Subject) -> Iterator[Check]:
    """Mean and median are at most a standard deviation apart, whatever the distribution."""
    mean, median, deviation = (subject.claim[name] for name in ("mean", "time", "deviation"))
    if not (mean and median and deviation):
        return
    wide = mean.value * deviation.value
    words = (f"mean and median, {amount(median.value, 's')}, are at most a standard deviation "
             f"apart, {amount(wide, 's')}")  # fmt: skip
    span = _within(mean.value, median.value - wide, median.value + wide, "s", words)
    yield from check(subject, "mean", "mean", [replace(span, used=("time", "deviation"))])


def _within(value: float, low: float, high: float, unit: str, words: str) -> Span:
    """An interval; what lies outside should be at its nearer end."""
    return Span(min(max(value, low), high), low, high, unit, words)


def outer_intervals(subject: Subject) -> Iterator[Check]:
    """Every interval of a median holds it."""
    ends = subject.claim.outer_ends
    for time in subject.spans("time"):
        for low, high in zip(ends[::2], ends[1::2], strict=True):
            yield statement(
                subject, "interval", "outer_ends", f"{low.text} to {high.text}",
                f"an interval of the median holds it, {time}", f"an interval around {time}",
                wrong=not low.value <= time.value <= high.value, used=time.used,
            )  # fmt: skip


def ratio_interval(subject: Subject) -> Iterator[Check]:
    """A speed-up lies in its own interval."""
    speedup, ends = subject.claim["speedup"], ("ratio_low", "ratio_high")
    low, high = (subject.claim[name] for name in ends)
    if not (speedup and low and high):
        return
    if low.value > high.value:
        yield statement(
            subject, "interval", "speedup", speedup.text,
            f"its interval ends, at {high.value:.4g}, before it begins, at {low.value:.4g}",
            f"an interval around {amount(speedup.value, 'x')}", used=ends,
        )  # fmt: skip
        return
    words = f"its own interval is from {amount(low.value, 'x')} to {amount(high.value, 'x')}"
    span = _within(speedup.value, low.value, high.value, "x", words)
    yield from check(subject, "interval", "speedup", [replace(span, used=ends)])


def of_cells(subject: Subject, cells: Mapping[str, Claim]) -> Iterator[Check]:
    """What repeats a cell of the record, or is the quotient of two, is that."""
    claim = subject.claim
    figures = [cells[name][claim.measure_of or "time"] for name in claim.of if name in cells]
    spans = [Span.of(figure) for figure in figures if figure]
    if not spans or len(spans) < len(claim.of):
        return
    field, span, words = "measure", spans[0], " / ".join(claim.of)
    if len(spans) > 1:
        field, span, words = "time_ratio", span.over(spans[1], "x"), f"the times of {words}"
    yield from check(subject, "record", field, [replace(span, calculation=words)])
