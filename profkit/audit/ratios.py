"""Claims about two GPUs: the ratio of their peaks, and what of a speed-up it explains."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from profkit.audit.claims import Claim
from profkit.audit.contradiction import PEAK_SLACK, SLACK, Amount, Check, Words, check, near
from profkit.audit.implied import Span, Subject, sheets_of
from profkit.audit.peak_mistakes import likely_ratio
from profkit.audit.peaks import key_label

if TYPE_CHECKING:
    from profkit.report.gpus import Datasheet


def _pair(subject: Subject) -> tuple[Datasheet, Datasheet] | None:
    """The two products that a claim compares, each by what its name may mean first."""
    names = dict.fromkeys([side.gpu for side in subject.claim.sides] or subject.claim.gpus)
    sheets = [found for name in names if (found := sheets_of(Claim(gpus=(name,))))]
    return (sheets[0][0], sheets[1][0]) if len(sheets) > 1 else None


def _ratio_of_peaks(subject: Subject, pair: tuple[Datasheet, Datasheet]) -> list[Span]:
    """The ratios of the dense peaks of the claim's precision, the larger over the smaller."""
    keys = replace(subject, sheets=pair).rate_peaks()
    one, other = (sheet.peaks for sheet in pair)
    both = [(one[key].value, other[key].value) for key in keys if key in one and key in other]
    return [Span.of(max(rates) / min(rates)) for rates in both]


def ratios(subject: Subject) -> Iterator[Check]:
    """Ratios of peaks are of one precision; an advantage is what time does not explain by them."""
    claim, pair = subject.claim, _pair(subject)
    if pair is None or not (claim.peak_ratio or claim.advantage):
        return
    ratios = _ratio_of_peaks(subject, pair)

    def follows(span: Span) -> Words:
        rates = replace(subject, sheets=pair).rate_peaks()
        key = next(
            (key for key in rates if near(_of(pair, key), span.value)), next(iter(rates), "")
        )
        one, other = (sheet.peaks[key].value for sheet in pair)
        return (f"dense {key_label(replace(subject, sheets=pair), key)} peaks: ",
                Amount(max(one, other), "FLOP/s"), " / ", Amount(min(one, other), "FLOP/s"),
                " = ", Amount(span.value, "x"))  # fmt: skip

    def cause(_: Span) -> Words:
        ratio = claim.peak_ratio
        likely = likely_ratio(ratio.value, pair, tuple(subject.rate_peaks())) if ratio else ""
        return (likely,) if likely else ()

    yield from check(subject, "ratio of peaks", "peak_ratio", ratios, follows, cause=cause,
                      used=("sides",), slack=PEAK_SLACK)  # fmt: skip
    yield from _advantage(subject, ratios)


def _of(pair: tuple[Datasheet, Datasheet], key: str) -> float:
    one, other = (sheet.peaks[key].value if key in sheet.peaks else math.nan for sheet in pair)
    return max(one, other) / min(one, other)


def _advantage(subject: Subject, ratios: list[Span]) -> Iterator[Check]:
    """Ratio of peaks over ratio of times, for the same amount of work on both sides."""
    sides = subject.claim.sides
    if len(sides) != 2 or math.prod(sides[0].shape.values()) != math.prod(sides[1].shape.values()):
        return
    slow, fast = sorted((side.time for side in sides), key=lambda time: -time.value)
    times = Span.of(slow) / Span.of(fast)

    def follows(span: Span) -> Words:
        return (Amount(span.value * times.value, "x"), " by peaks / ", Amount(times.value, "x"),
                " by time = ", Amount(span.value, "x"))  # fmt: skip

    def cause(_: Span) -> Words:
        claim = subject.claim
        if claim.peak_ratio and claim.advantage:
            own = Span.of(claim.peak_ratio) / times
            if own.allows(claim.advantage, SLACK):
                return (f"it follows from the claimed ratio of {claim.peak_ratio.text}",)
        return ()

    yield from check(subject, "advantage", "advantage", [ratio / times for ratio in ratios],
                      follows, cause=cause, used=("sides",), slack=PEAK_SLACK)  # fmt: skip
