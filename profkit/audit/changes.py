"""Claims about changes: how many times, how many per cent; parts of a whole; products; tokens."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from profkit.audit.contradiction import Amount, Check, Words, check, statement
from profkit.audit.implied import Span, Subject

if TYPE_CHECKING:
    from profkit.audit.claim_relations import Change, Product
    from profkit.audit.printed_numbers import Figure

# People round ratios in prose: 2.3x for 2.25, "about" by a tenth; percentages by a point.
_SLACK = 0.03
_HEDGED = 0.1
_POINT = 0.01
_POINTS_HEDGED = 0.05


def changes(subject: Subject) -> Iterator[Check]:
    """A factor or a percentage between two quantities is their quotient."""
    for change in subject.claim.changes:
        ratio = _ratio(change)
        expected = _expected(change.meaning, ratio)
        used = ("changes", "speedup", "peak_ratio", "advantage")
        if any(_fits(change.claimed, span, hedged=change.hedged) for span in expected):
            yield Check("change", used, None)
            continue
        first = expected[0]
        percent = change.claimed.text.endswith("%")
        calculation: Words = (
            Amount(_larger(change).value, change.kind), " / ",
            Amount(_smaller(change).value, change.kind), " = ", Amount(ratio.value, "x"),
        )  # fmt: skip
        other = _other_convention(change, ratio)
        yield statement(
            subject, "change", "changes", change.claimed.text,
            (*calculation, *_percent_words(change.meaning, first)),
            (Amount(first.value, "1" if percent else "x"),), other, doubt=bool(other), used=used,
        )  # fmt: skip


def _larger(change: Change) -> Figure:
    return max(change.first, change.second, key=lambda figure: figure.value)


def _smaller(change: Change) -> Figure:
    return min(change.first, change.second, key=lambda figure: figure.value)


def _ratio(change: Change) -> Span:
    return Span.of(_larger(change)) / Span.of(_smaller(change))


def _expected(meaning: str, ratio: Span) -> list[Span]:
    """What the number may be: "3x more" is said of three and of four times as much."""
    more = Span(ratio.value - 1, ratio.low - 1, ratio.high - 1)
    if meaning == "times":
        return [ratio]
    if meaning == "more times":
        return [ratio, more]
    return [_less(ratio)] if meaning == "less" else [more]


def _less(ratio: Span) -> Span:
    return Span(1 - 1 / ratio.value, 1 - 1 / ratio.low, 1 - 1 / ratio.high)


def _fits(claimed: Figure, span: Span, *, hedged: bool) -> bool:
    slack = _HEDGED if hedged else _SLACK
    points = 0.0
    if claimed.text.endswith("%"):
        points = _POINTS_HEDGED if hedged else _POINT
    low, high = span.low * (1 - slack) - points, span.high * (1 + slack) + points
    return claimed.low <= high and claimed.high >= low


def _other_convention(change: Change, ratio: Span) -> Words:
    """`30% faster` of what takes 30% less time: 43% by the usual meaning."""
    if change.meaning == "worth" and _fits(change.claimed, _less(ratio), hedged=change.hedged):
        return ("that is by how much it takes less, not by how much it is faster",)
    return ()


def _percent_words(meaning: str, span: Span) -> Words:
    if meaning.endswith("times"):
        return ()
    return (", i.e. ", Amount(span.value, "1"), " less" if meaning == "less" else " more")


def parts(subject: Subject) -> Iterator[Check]:
    """A percentage of a whole is the part over it."""
    for share in subject.claim.parts:
        span = Span.of(share.part) / Span.of(share.whole)
        if _fits(share.claimed, span, hedged=share.hedged):
            yield Check("part", ("parts",), None)
            continue
        yield statement(
            subject, "part", "parts", share.claimed.text,
            (f"{share.part.text} / {share.whole.text} = ", Amount(span.value, "1")),
            (Amount(span.value, "1"),), used=("parts",),
        )  # fmt: skip


def products(subject: Subject) -> Iterator[Check]:
    """A product is that of its factors; units that a factor leaves out are powers of 1,000."""
    for product in subject.claim.products:
        value = math.prod(factor.value for factor in product.factors)
        if _same_product(product, value):
            yield Check("product", ("products",), None)
            continue
        unit = product.claimed.value / value
        scaled = value * 1000.0 ** round(math.log(unit, 1000))
        yield statement(
            subject, "product", "products", product.claimed.text,
            (f"{product.text.rpartition('=')[0].strip() or 'the product'} = {scaled:.4g}",),
            (f"{scaled:.4g}",), used=("products",),
        )  # fmt: skip


def _same_product(product: Product, value: float) -> bool:
    ratio = product.claimed.value / value
    scale = 1000.0 ** round(math.log(ratio, 1000))
    half = product.claimed.half / product.claimed.value
    return any(
        abs(ratio / (scale * bits) - 1) <= _SLACK + half for bits in (1.0, 8.0, 1 / 8, 1024 / 1000)
    )


def tokens(subject: Subject) -> Iterator[Check]:
    """Tokens/s times what a token takes is a rate; tokens over time are tokens/s."""
    claim = subject.claim
    for field, per_token, peaks in (
        ("flop_rate", claim.flop_per_token, _compute_peaks(subject)),
        ("byte_rate", claim.bytes_per_token, list(subject.byte_peaks())),
    ):
        if per_token is None:
            continue
        name = "flop_per_token" if field == "flop_rate" else "bytes_per_token"
        yield from _rate_of_tokens(subject, field, name, per_token)
        yield from _below_peak(subject, name, per_token, peaks)
        yield from _limit(subject, field, name, per_token, peaks)
    yield from _tokens_over_time(subject)


def _compute_peaks(subject: Subject) -> list[float]:
    limit = subject.rate_limit()
    return [limit] if limit else []


def _rate_of_tokens(subject: Subject, field: str, name: str, per_token: Figure) -> Iterator[Check]:
    rate = subject.claim.token_rate
    if rate is None:
        return
    span = Span.of(rate) * Span.of(per_token)
    unit = "FLOP" if field == "flop_rate" else "B"

    def follows(span: Span) -> Words:
        return (f"{rate.text} x ", Amount(per_token.value, unit), " = ",
                Amount(span.value, f"{unit}/s"))  # fmt: skip

    yield from check(
        subject, "tokens", field, [span], follows, used=("token_rate", name), slack=_SLACK
    )


def _below_peak(
    subject: Subject, name: str, per_token: Figure, peaks: list[float]
) -> Iterator[Check]:
    """A token without batching reads its bytes itself; its FLOP are its own in any case."""
    claim = subject.claim
    shared = name == "bytes_per_token" and (claim.batch or 1) > 1
    if claim.token_rate is None or not peaks or shared:
        return
    most = max(peaks) / per_token.low
    unit = "FLOP" if name == "flop_per_token" else "B"
    yield from check(
        subject, "above peak", "token_rate", [Span(min(claim.token_rate.value, most), 0.0, most)],
        lambda _: ("at most ", Amount(max(peaks), f"{unit}/s"), " / ",
                   Amount(per_token.value, unit), f" = {most:,.4g} tokens/s"),
        used=(name,), slack=_SLACK,
        should_be=lambda _: (f"at most {most:,.4g} tokens/s",),
    )  # fmt: skip


def _limit(
    subject: Subject, field: str, name: str, per_token: Figure, peaks: list[float]
) -> Iterator[Check]:
    """What bounds tokens/s is a rate or a peak over what a token takes."""
    claim = subject.claim
    kind = field.partition("_")[0]
    own = [getattr(claim, f"{kind}_peak"), getattr(claim, field)]
    spans = [Span.of(figure) / Span.of(per_token) for figure in own if figure]
    spans = spans or [Span.of(peak) / Span.of(per_token) for peak in peaks]
    yield from check(
        subject, "tokens", "token_limit", spans,
        lambda span: (f"a rate over {per_token.text} for a token is {span.value:,.4g} tokens/s",),
        used=(name, f"{kind}_peak", field), slack=_SLACK,
        should_be=lambda span: (f"{span.value:,.4g} tokens/s",),
    )  # fmt: skip


def _tokens_over_time(subject: Subject) -> Iterator[Check]:
    claim = subject.claim
    if claim.tokens is None or claim.time is None or claim.token_rate is None:
        return
    span = Span.of(claim.tokens) / Span.of(claim.time)
    batch = Span(span.value * (claim.batch or 1), span.low * (claim.batch or 1),
                 span.high * (claim.batch or 1))  # fmt: skip
    yield from check(
        subject, "tokens", "token_rate", [span, batch],
        lambda span: (f"{claim.tokens.text if claim.tokens else ''} / ",
                      Amount(claim.time.value if claim.time else 0.0, "s"),
                      f" = {span.value:,.4g} tokens/s"),
        used=("tokens", "time"), slack=_SLACK,
        should_be=lambda span: (f"{span.value:,.4g} tokens/s",),
    )  # fmt: skip
