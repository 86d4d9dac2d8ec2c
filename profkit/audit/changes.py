"""Claims about changes: how many times, how many per cent; parts of a whole; products."""

from __future__ import annotations

import math
from collections.abc import Iterator

from profkit.audit.claim import Change, Product, Share
from profkit.audit.contradiction import Check, statement
from profkit.audit.implied import Subject
from profkit.audit.span import Span, amount

# People round ratios in prose: 2.3x for 2.25, "about" by a tenth; percentages by a point.
_SLACK = 0.03
_HEDGED = 0.1
_POINT = 0.01
_POINTS_HEDGED = 0.05


def changes(subject: Subject) -> Iterator[Check]:
    """A factor or a percentage between two quantities is their quotient."""
    for change in subject.claim.changes:
        small, large = sorted((change.first, change.second), key=lambda figure: figure.value)
        ratio = Span.of(large, change.kind).over(Span.of(small, change.kind), "x")
        less = Span(1 - 1 / ratio.value, 1 - 1 / ratio.low, 1 - 1 / ratio.high)
        more = Span(ratio.value - 1, ratio.low - 1, ratio.high - 1)
        expected = {"times": ratio, "less": less}.get(change.meaning, more)
        words, cause = ratio.calculation, ""
        if change.meaning != "times":
            which = "less" if change.meaning == "less" else "more"
            words += f", i.e. {amount(expected.value, '1')} {which}"
        if change.meaning == "worth" and _fits(change, less):
            cause = "that is by how much it takes less, not by how much it is faster"
        yield statement(
            subject, "change", "changes", change.claimed.text, words,
            amount(expected.value, "1" if change.claimed.text.endswith("%") else "x"), cause,
            wrong=not _fits(change, expected), doubt=bool(cause),
            used=("speedup", "peak_ratio", "advantage"),
        )  # fmt: skip


def _fits(change: Change | Share, span: Span) -> bool:
    claimed, slack = change.claimed, _HEDGED if change.hedged else _SLACK
    points = 0.0
    if claimed.text.endswith("%"):
        points = _POINTS_HEDGED if change.hedged else _POINT
    low, high = span.low * (1 - slack) - points, span.high * (1 + slack) + points
    return claimed.low <= high and claimed.high >= low


def parts(subject: Subject) -> Iterator[Check]:
    """A percentage of a whole is the part over it."""
    for share in subject.claim.parts:
        span = Span.of(share.part).over(
            Span.of(share.whole), "1", f"{share.part.text} / {share.whole.text} = {{}}"
        )
        yield statement(
            subject, "part", "parts", share.claimed.text, span.calculation, str(span),
            wrong=not _fits(share, span),
        )  # fmt: skip


def products(subject: Subject) -> Iterator[Check]:
    """A product is that of its factors; units that a factor leaves out are powers of 1,000."""
    for product in subject.claim.products:
        value = math.prod(factor.value for factor in product.factors)
        ratio = product.claimed.value / value
        scale = 1000.0 ** round(math.log(ratio, 1000))
        right = f"{value * scale:.4g}"
        words = product.text.rpartition("=")[0].strip() or "the product"
        yield statement(
            subject, "product", "products", product.claimed.text, f"{words} = {right}", right,
            wrong=not _same_but_for_bits(product, ratio / scale),
        )  # fmt: skip


def _same_but_for_bits(product: Product, ratio: float) -> bool:
    """Whether a product differs from the claimed one by no more than bits and bytes, or KiB."""
    half = product.claimed.half / product.claimed.value
    return any(abs(ratio / bits - 1) <= _SLACK + half for bits in (1.0, 8.0, 1 / 8, 1024 / 1000))
