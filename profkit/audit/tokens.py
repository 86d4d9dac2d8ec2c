"""Claims about tokens: what a token takes, tokens over time, and what bounds tokens/s."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.audit.contradiction import Check, check
from profkit.audit.implied import Subject
from profkit.audit.span import Span, amount

# People round in prose: 2.3 for 2.25.
_SLACK = 0.03
_TAKES = (("flop", "flop_per_token", "FLOP"), ("byte", "bytes_per_token", "B"))


def tokens(subject: Subject) -> Iterator[Check]:
    """Tokens/s times what a token takes is a rate; tokens over time are tokens/s."""
    for kind, field, unit in _TAKES:
        for takes in subject.spans(field):
            yield from _rate(subject, kind, takes, unit)
            peaks = _peaks(subject, kind)
            yield from _below_peak(subject, takes, peaks, unit)
            yield from _limit(subject, kind, takes, peaks)
    yield from _over_time(subject)


def _peaks(subject: Subject, kind: str) -> tuple[float, ...]:
    if kind == "byte":
        return subject.peaks(kind)
    limit = subject.rate_limit()
    return (limit,) if limit else ()


def _rate(subject: Subject, kind: str, takes: Span, unit: str) -> Iterator[Check]:
    words = f"{subject.text('token_rate')} x {takes} = {{}}"
    spans = [rate.times(takes, f"{unit}/s", words) for rate in subject.spans("token_rate")]
    yield from check(subject, "tokens", f"{kind}_rate", spans, slack=_SLACK)


def _below_peak(
    subject: Subject, takes: Span, peaks: tuple[float, ...], unit: str
) -> Iterator[Check]:
    """A token without batching reads its bytes itself; its FLOP are its own in any case."""
    if not peaks or (unit == "B" and (subject.claim.batch or 1) > 1):
        return
    words = f"at most {amount(max(peaks), f'{unit}/s')} / {takes} = {{}}"
    most = Span.up_to(max(peaks) / takes.low, "tokens/s", words, takes.used)
    yield from check(
        subject, "above_peak", "token_rate", [most], slack=_SLACK, should_be="at most {}".format
    )


def _limit(subject: Subject, kind: str, takes: Span, peaks: tuple[float, ...]) -> Iterator[Check]:
    """What bounds tokens/s is a rate or a peak over what a token takes."""
    claimed = [*subject.spans(f"{kind}_peak"), *subject.spans(f"{kind}_rate")]
    words = f"a rate over {subject.text(*takes.used)} for a token is {{}}"
    spans = [rate.over(takes, "tokens/s", words) for rate in claimed or map(Span.exactly, peaks)]
    yield from check(subject, "tokens", "token_limit", spans, slack=_SLACK)


def _over_time(subject: Subject) -> Iterator[Check]:
    """Tokens over time, of one sequence or of each of a batch."""
    spans = [
        tokens.times(Span.exactly(size), "").over(
            time, "tokens/s", f"{subject.text('tokens')} / {time} = {{}}"
        )
        for tokens in subject.spans("tokens")
        for time in subject.spans("time")
        for size in (1, subject.claim.batch or 1)
    ]
    yield from check(subject, "tokens", "token_rate", spans, slack=_SLACK)


def row_tokens(subject: Subject) -> Iterator[Check]:
    """Of a row with a shape: batch times length is what a call takes of tokens."""
    claim = subject.claim
    if not claim.text and claim.batch and claim.length:
        tokens = Span.exactly(claim.batch * claim.length, used=("batch", "length"))
        words = f"{claim.batch} x {claim.length} tokens in a call: {{}}"
        spans = [tokens.over(time, "tokens/s", words) for time in subject.spans("time")]
        yield from check(subject, "tokens", "token_rate", spans)
