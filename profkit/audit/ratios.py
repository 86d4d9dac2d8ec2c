"""Claims about two GPUs: the ratio of their peaks, and what of a speed-up it explains."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from profkit.audit.contradiction import PEAK_SLACK, SLACK, Check, check
from profkit.audit.implied import Subject, sheets_of
from profkit.audit.peak_mistakes import likely_ratio
from profkit.audit.span import Span


def ratios(subject: Subject) -> Iterator[Check]:
    """Ratios of peaks are of one precision; an advantage is what time does not explain by them."""
    claim = subject.claim
    names = dict.fromkeys([side.gpu for side in claim.sides] or claim.gpus)
    sheets = [found[0] for name in names if (found := sheets_of([name]))]
    if len(sheets) < 2:
        return
    pair, claimed, cause = (sheets[0], sheets[1]), claim["peak_ratio"], ""
    if claimed:
        cause = likely_ratio(claimed.value, pair, tuple(subject.rate_peaks()))
    spans = _ratios_of_peaks(replace(subject, sheets=pair))
    yield from check(subject, "ratio_of_peaks", "peak_ratio", spans, cause=cause, slack=PEAK_SLACK)
    yield from _advantage(subject, spans)


def _ratios_of_peaks(both: Subject) -> list[Span]:
    """The ratios of the dense peaks of the claim's precision, the larger over the smaller."""
    spans = []
    for key in both.rate_peaks():
        peaks = [sheet.peaks[key].value for sheet in both.sheets if key in sheet.peaks]
        if len(peaks) == 2:
            large, small = (Span.exactly(end(peaks), "FLOP/s") for end in (max, min))
            words = f"dense {both.key_label(key)} peaks: {large} / {small} = {{}}"
            spans.append(replace(large.over(small, "x", words), used=("sides",)))
    return spans


def _advantage(subject: Subject, ratios: list[Span]) -> Iterator[Check]:
    """Ratio of peaks over ratio of times, for the same amount of work on both sides."""
    sides = subject.claim.sides
    if len(sides) != 2 or math.prod(sides[0].shape.values()) != math.prod(sides[1].shape.values()):
        return
    fast, slow = sorted((Span.of(side.time) for side in sides), key=lambda span: span.value)
    times = slow.over(fast, "x")
    claimed, own = subject.claim["advantage"], subject.spans("peak_ratio")
    cause = ""
    if claimed and own and own[0].over(times, "x").allows(claimed, SLACK):
        cause = f"it follows from the claimed ratio of {subject.text('peak_ratio')}"
    spans = [
        ratio.over(times, "x", f"{ratio} by peaks / {times} by time = {{}}") for ratio in ratios
    ]
    yield from check(subject, "advantage", "advantage", spans, cause=cause, slack=PEAK_SLACK)
