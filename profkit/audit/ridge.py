"""Claims about what bounds: an intensity left or right of the ridge of the roofline."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.audit.claims import SHAPE
from profkit.audit.contradiction import PEAK_SLACK, Amount, Check, Words, check, statement
from profkit.audit.implied import Span, Subject
from profkit.audit.peaks import key_label


def bound(subject: Subject) -> Iterator[Check]:
    """Compute-bound lies right of the ridge, memory-bound left of it."""
    claim = subject.claim
    if not claim.bound or "bound" in subject.borrowed:
        return
    intensity, used = _best_intensity(subject)
    ridges = _ridges(subject)
    if not intensity or not ridges:
        return
    low, high = min(ridges), max(ridges)
    used = (*used, "ridge") if claim.ridge else used
    used = ("bound", *used)
    left = intensity[0].high * (1 + PEAK_SLACK) < low
    right = intensity[-1].low * (1 - PEAK_SLACK) > high
    wrong = left if claim.bound == "compute" else right
    if not wrong:
        yield Check("bound", used, None)
        return
    value, ridge = intensity[0].value, low if left else high
    side = "left" if left else "right"
    follows: Words = (
        Amount(value, "FLOP/B"),
        f" lies {side} of the ridge, ",
        *_ridge_words(subject, ridge),
    )
    should_be = "memory-bound by the roofline" if left else "compute-bound by the roofline"
    yield statement(
        subject, "bound", "bound", f"{claim.bound}-bound", follows, (should_be,),
        _why_bound(subject, value) if left else
        ("unless more is moved than the least of the shape",), doubt=right, used=used,
    )  # fmt: skip


def ridge(subject: Subject) -> Iterator[Check]:
    """A claimed ridge is where the roofs meet."""
    spans = [Span.of(value) for value in _meeting(subject)]

    def follows(span: Span) -> Words:
        return ("compute peak / memory bandwidth = ", *_ridge_words(subject, span.value))

    yield from check(subject, "ridge", "ridge", spans, follows, slack=PEAK_SLACK)


def _best_intensity(subject: Subject) -> tuple[list[Span], tuple[str, ...]]:
    """By the shape (largest first, where the element size is open), else as claimed."""
    if subject.works:
        return sorted((Span.of(work.intensity) for work in subject.works),
                      key=lambda span: -span.value), SHAPE  # fmt: skip
    claimed = subject.claim.intensity
    return ([Span.of(claimed)], ("intensity",)) if claimed else ([], ())


def _ridges(subject: Subject) -> tuple[float, ...]:
    """FLOP/B to hold an intensity against: the claimed ridge, else where the roofs meet."""
    claimed = subject.claim.ridge
    return (claimed.value,) if claimed else _meeting(subject)


def _meeting(subject: Subject) -> tuple[float, ...]:
    """FLOP/B where roofs meet: those of the claim at a held clock, else those of the datasheets."""
    claim = subject.claim
    held = claim.held_peak or (claim.flop_peak if claim.peak_of in ("held", "measured") else None)
    own = (held.value / claim.byte_peak.value,) if held and claim.byte_peak else ()
    if claim.peak_of in ("held", "measured"):
        return own
    keys = subject.rate_peaks()
    return own + tuple(
        peak.value / sheet.peaks["dram"].value
        for sheet in subject.sheets
        for key, peak in sheet.peaks.items()
        if key in keys
    )


def _ridge_words(subject: Subject, ridge: float) -> Words:
    for sheet in subject.sheets:
        dram = sheet.peaks["dram"].value
        for key in subject.rate_peaks():
            if key in sheet.peaks and sheet.peaks[key].value / dram == ridge:
                return (
                    Amount(sheet.peaks[key].value, "FLOP/s"),
                    " / ",
                    Amount(dram, "B/s"),
                    " = ",
                    Amount(ridge, "FLOP/B"),
                    f" ({key_label(subject, key)})",
                )
    return (Amount(ridge, "FLOP/B"),)


def _why_bound(subject: Subject, intensity: float) -> Words:
    """Which lower peak would put the ridge left of it."""
    for sheet in subject.sheets:
        dram = sheet.peaks["dram"].value
        for key in ("fp32", *sheet.peaks):
            lower = sheet.peaks[key].value / dram
            if key != "dram" and key not in subject.rate_peaks() and lower < intensity:
                return (f"held against {key.upper().replace('_', ' ')}'s peak the ridge would be ",
                        Amount(lower, "FLOP/B"))  # fmt: skip
    return ()
