"""Claims about work and time: FLOP, bytes, intensity, rates, speed-ups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from profkit.audit.claims import SHAPE
from profkit.audit.contradiction import SLACK, Amount, Check, Words, check, near
from profkit.audit.implied import Span, Subject

# What sentences round away beside their digits.
_PROSE_SLACK = 0.01


def flop_of_shape(subject: Subject) -> Iterator[Check]:
    """4 B H S² D, half of it where causal."""
    works = subject.works[:1]

    def follows(span: Span) -> Words:
        half = " / 2 (causal)" if subject.claim.causal else ""
        return (f"4 x B x H x S² x D{half}{_more(subject)} = {_sizes(subject)} = ",
                Amount(span.value, "FLOP"))  # fmt: skip

    def cause(span: Span) -> Words:
        claimed = subject.claim.flop
        ratio = claimed.value / span.value if claimed else math.nan
        if near(ratio, 0.5):
            return ("half: a causal mask that is not declared, or multiply-adds counted as one",)
        if near(ratio, 2.0):
            return ("twice as many: the causal half counted in full, or products twice",)
        return ()

    spans = [Span.of(work.flop) for work in works]
    yield from check(subject, "flop of shape", "flop", spans, follows, used=SHAPE, cause=cause)
    yield from _flop_of_matrices(subject, cause)


def _flop_of_matrices(subject: Subject, cause: Callable[[Span], Words]) -> Iterator[Check]:
    """2 M N K; prose rounds it: 137 GFLOP for 137.4."""
    edges = subject.claim.matrices
    if edges:
        yield from check(
            subject, "flop of shape", "flop", [Span.of(2.0 * math.prod(edges))],
            lambda span: (f"2 x {' x '.join(map(str, edges))} = ", Amount(span.value, "FLOP")),
            cause=cause, used=("matrices",), slack=_PROSE_SLACK,
        )  # fmt: skip


def bytes_of_shape(subject: Subject) -> Iterator[Check]:
    """Q, K, V read once, O written once."""

    def follows(span: Span) -> Words:
        return (*_bytes_words(subject, span.value), *_same_by_rate(subject, span))

    def cause(span: Span) -> Words:
        claimed = subject.claim.bytes
        ratio = claimed.value / span.value if claimed else math.nan
        if near(ratio, 0.75):
            return ("three quarters: the output is left out",)
        if near(ratio, 2.0) or near(ratio, 0.5):
            return ("a factor of 2: another element size",)
        if ratio < 1:
            return ("fewer bytes than inputs and output have can't be all that is moved",)
        return ("more than once read or written: traffic of caches, not the least of the shape",)

    spans = [Span.of(work.bytes) for work in subject.works]
    yield from check(subject, "bytes of shape", "bytes", spans, follows, used=SHAPE, cause=cause)


def _same_by_rate(subject: Subject, moved: Span) -> Words:
    """That bandwidth times time, claimed in the same place, gives as many bytes."""
    claim = subject.claim
    if not (claim.byte_rate and claim.time):
        return ()
    product = Span.of(claim.byte_rate) * Span.of(claim.time)
    if not product.low <= moved.value <= product.high:
        return ()
    where = f" of {subject.lender}" if subject.lender else ""
    return ("; ", Amount(claim.byte_rate.value, "B/s"), " x ", Amount(claim.time.value, "s"),
            f"{where} is as much")  # fmt: skip


def _sizes(subject: Subject) -> str:
    claim = subject.claim
    return f"4 x {claim.batch} x {claim.heads} x {claim.length}² x {claim.dim}"


def _more(subject: Subject) -> str:
    return " x 2.5 (backward)" if subject.claim.backward else ""


def _bytes_words(subject: Subject, value: float) -> Words:
    claim = subject.claim
    size = next((work for work in subject.works if work.bytes == value), None)
    if size is None or claim.kv_heads or claim.backward:
        return ("inputs and outputs of the shape, each moved once: ", Amount(value, "B"))
    elements = 4 * (claim.batch or 0) * (claim.heads or 0) * (claim.length or 0) * (claim.dim or 0)
    return (
        f"inputs and output, 4 x B x H x S x D x {value / elements:.0f} B = 4 x {claim.batch} x "
        f"{claim.heads} x {claim.length} x {claim.dim} x {value / elements:.0f} = ",
        Amount(value, "B"),
    )


def flop_spans(subject: Subject) -> tuple[list[Span], tuple[str, ...]]:
    """FLOP by the shape, else as claimed."""
    if subject.works:
        return [Span.of(subject.works[0].flop)], SHAPE
    if subject.claim.matrices:
        return [Span.of(2.0 * math.prod(subject.claim.matrices))], ("matrices",)
    return ([Span.of(subject.claim.flop)], ("flop",)) if subject.claim.flop else ([], ())


def byte_spans(subject: Subject) -> tuple[list[Span], tuple[str, ...]]:
    """Bytes by the shape, else as claimed."""
    if subject.works:
        return [Span.of(work.bytes) for work in subject.works], SHAPE
    return ([Span.of(subject.claim.bytes)], ("bytes",)) if subject.claim.bytes else ([], ())


def rates(subject: Subject) -> Iterator[Check]:
    """Amount over time."""
    claim = subject.claim
    if claim.time is None:
        return
    time = Span.of(claim.time)
    for field, (amounts, used), unit in (
        ("flop_rate", flop_spans(subject), "FLOP"),
        ("byte_rate", byte_spans(subject), "B"),
    ):
        spans = [amount / time for amount in amounts]

        def follows(span: Span, unit: str = unit) -> Words:
            amount = span.value * time.value
            return (Amount(amount, unit), " / ", Amount(time.value, "s"), " = ",
                    Amount(span.value, f"{unit}/s"))  # fmt: skip

        def cause(span: Span, field: str = field) -> Words:
            return _factor(getattr(claim, field).value / span.value)

        yield from check(subject, "amount over time", field, spans, follows,
                          used=("time", *used), cause=cause)  # fmt: skip


def _factor(ratio: float) -> Words:
    for factor, why in (
        (2.0, "twice as much: the work counted double, or a causal half in full"),
        (0.5, "half as much: multiply-adds counted as one, or a causal mask not declared"),
        (1e3, "a factor of 1,000: a unit"),
        (1e-3, "a factor of 1,000: a unit"),
        (1e6, "a factor of a million: a unit"),
        (1e-6, "a factor of a million: a unit"),
        (1e9 / 2**30, "binary for decimal units"),
        (1e12 / 2**40, "binary for decimal units"),
    ):
        if near(ratio, factor):
            return (why,)
    return ()


def intensity(subject: Subject) -> Iterator[Check]:
    """FLOP over bytes: of the shape where there is one, and as claimed."""
    (flop, flop_used), (moved, moved_used) = flop_spans(subject), byte_spans(subject)
    spans = [flop[0] / one for one in moved] if flop else []

    def follows(span: Span) -> Words:
        return (Amount(flop[0].value, "FLOP"), " / ", Amount(flop[0].value / span.value, "B"),
                " = ", Amount(span.value, "FLOP/B"))  # fmt: skip

    def cause(_: Span) -> Words:
        claim = subject.claim
        if not (claim.flop and claim.bytes and claim.intensity):
            return ()
        own = Span.of(claim.flop) / Span.of(claim.bytes)
        if not own.allows(claim.intensity, SLACK):
            return ()
        return (f"it follows from the claimed {claim.flop.text} and {claim.bytes.text}, which "
                "are not those of the shape",)  # fmt: skip

    used = (*flop_used, *moved_used)
    yield from check(subject, "intensity", "intensity", spans, follows, used=used, cause=cause)


def speedup(subject: Subject) -> Iterator[Check]:
    """Time before over time after."""
    claim = subject.claim
    if claim.baseline is None or claim.time is None:
        return
    before, after = Span.of(claim.baseline), Span.of(claim.time)

    def follows(span: Span) -> Words:
        return (Amount(before.value, "s"), " / ", Amount(after.value, "s"), " = ",
                Amount(span.value, "x"))  # fmt: skip

    yield from check(subject, "speed-up", "speedup", [before / after], follows,
                      used=("baseline", "time"))  # fmt: skip
