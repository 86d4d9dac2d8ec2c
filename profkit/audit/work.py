"""Claims about work and time: FLOP, bytes, intensity, rates, speed-ups."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from profkit.audit.claim import SHAPE, UNITS
from profkit.audit.contradiction import SLACK, Check, by_factor, check
from profkit.audit.implied import Subject
from profkit.audit.span import Span, quotients

# What sentences round away beside their digits.
_PROSE_SLACK = 0.01
# Cycles are the median over calls, the clock that over blocks: their product is not the same.
_MEDIANS = 0.05
_WRONG_FLOP = by_factor({
    0.5: "half: a causal mask that is not declared, or multiply-adds counted as one",
    2.0: "twice as many: the causal half counted in full, or products twice",
})  # fmt: skip
_WRONG_BYTES = by_factor({
    0.75: "three quarters: the output is left out",
    2.0: "a factor of 2: another element size",
    0.5: "a factor of 2: another element size",
})  # fmt: skip
_WRONG_RATE = by_factor({
    2.0: "twice as much: the work counted double, or a causal half in full",
    0.5: "half as much: multiply-adds counted as one, or a causal mask not declared",
    1e3: "a factor of 1,000: a unit",
    1e-3: "a factor of 1,000: a unit",
    1e6: "a factor of a million: a unit",
    1e-6: "a factor of a million: a unit",
    1e9 / 2**30: "binary for decimal units",
    1e12 / 2**40: "binary for decimal units",
})  # fmt: skip


def flop_of_shape(subject: Subject) -> Iterator[Check]:
    """Of attention, and of a product of matrices, which prose rounds: 137 GFLOP for 137.4."""
    for spans, slack in ((_shape_flop(subject), SLACK), (_product_flop(subject), _PROSE_SLACK)):
        yield from check(subject, "flop_of_shape", "flop", spans, cause=_WRONG_FLOP, slack=slack)


def bytes_of_shape(subject: Subject) -> Iterator[Check]:
    """Every input read once, the output written once."""
    spans = [
        replace(span, calculation=span.calculation + _same_by_rate(subject, span))
        for span in _shape_bytes(subject)
    ]
    yield from check(subject, "bytes_of_shape", "bytes", spans, cause=_why_bytes)


def _why_bytes(ratio: float) -> str:
    if why := _WRONG_BYTES(ratio):
        return why
    if ratio < 1:
        return "fewer bytes than inputs and output have can't be all that is moved"
    return "more than once read or written: traffic of caches, not the least of the shape"


def flop_spans(subject: Subject) -> list[Span]:
    """FLOP by the shape, else as claimed."""
    return _shape_flop(subject) or _product_flop(subject) or subject.spans("flop")


def byte_spans(subject: Subject) -> list[Span]:
    """Bytes by the shape, else as claimed."""
    return _shape_bytes(subject) or subject.spans("bytes")


def _shape_flop(subject: Subject) -> list[Span]:
    """4 B H S² D, half of it where causal."""
    claim = subject.claim
    more = " / 2 (causal)" * bool(claim.causal) + " x 2.5 (backward)" * bool(claim.backward)
    words = (f"4 x B x H x S² x D{more} = 4 x {claim.batch} x {claim.heads} x {claim.length}² x "
             f"{claim.dim} = {{}}")  # fmt: skip
    return [Span.exactly(work.flop, "FLOP", words, SHAPE) for work in subject.works[:1]]


def _product_flop(subject: Subject) -> list[Span]:
    """2 M N K."""
    edges = subject.claim.matrices
    words = f"2 x {' x '.join(map(str, edges))} = {{}}"
    return [Span.exactly(2.0 * math.prod(edges), "FLOP", words, ("matrices",))] if edges else []


def _shape_bytes(subject: Subject) -> list[Span]:
    """Q, K, V read once, O written once."""
    claim = subject.claim
    words = "inputs and outputs of the shape, each moved once: {}"
    spans = []
    for work in subject.works:
        if not (claim.kv_heads or claim.backward):
            size = work.bytes / (4 * math.prod(edge or 0 for edge in claim.shape))
            edges = f"{claim.batch} x {claim.heads} x {claim.length} x {claim.dim} x {size:.0f}"
            words = f"inputs and output, 4 x B x H x S x D x {size:.0f} B = 4 x {edges} = {{}}"
        spans.append(Span.exactly(work.bytes, "B", words, SHAPE))
    return spans


def _same_by_rate(subject: Subject, moved: Span) -> str:
    """That bandwidth times time, claimed in the same place, gives as many bytes."""
    for rate in subject.spans("byte_rate"):
        for time in subject.spans("time"):
            product = rate.times(time, "B")
            if product.low <= moved.value <= product.high:
                where = f" of {subject.lender}" if subject.lender else ""
                return f"; {rate} x {time}{where} is as much"
    return ""


def rates(subject: Subject) -> Iterator[Check]:
    """Amount over time."""
    for field, amounts in (("flop_rate", flop_spans(subject)), ("byte_rate", byte_spans(subject))):
        spans = quotients(amounts, subject.spans("time"), UNITS[field])
        yield from check(subject, "amount_over_time", field, spans, cause=_WRONG_RATE)


def rate_ends(subject: Subject) -> Iterator[Check]:
    """The interval of a rate is work over the ends of the interval of the time."""
    for field, end in (("flop_rate_low", "high"), ("flop_rate_high", "low")):
        spans = [
            replace(rate, used=(*rate.used, "low", "high"))
            for rate in quotients(flop_spans(subject), subject.spans(end), "FLOP/s")
        ]
        yield from check(subject, "amount_over_time", field, spans)


def intensity(subject: Subject) -> Iterator[Check]:
    """FLOP over bytes: of the shape where there is one, and as claimed."""
    claimed, flop, moved = (subject.claim[name] for name in ("intensity", "flop", "bytes"))
    own = quotients(subject.spans("flop"), subject.spans("bytes"), "FLOP/B")
    cause = ""
    if flop and moved and claimed and own[0].allows(claimed, SLACK):
        cause = (f"it follows from the claimed {flop.text} and {moved.text}, which are not those "
                 "of the shape")  # fmt: skip
    spans = quotients(flop_spans(subject), byte_spans(subject), "FLOP/B")
    yield from check(subject, "intensity", "intensity", spans, cause=cause)


def speedup(subject: Subject) -> Iterator[Check]:
    """Time before over time after."""
    spans = quotients(subject.spans("baseline"), subject.spans("time"), "x")
    yield from check(subject, "speed_up", "speedup", spans)


def cycles(subject: Subject) -> Iterator[Check]:
    """Cycles are time times the clock that was held."""
    spans = [
        time.times(clock, "cycles", "time x clock = {}")
        for time in subject.spans("time")
        for clock in subject.spans("held_clock")
    ]
    yield from check(subject, "cycles", "cycles", spans, slack=_MEDIANS)
