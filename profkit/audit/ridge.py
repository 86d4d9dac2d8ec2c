"""Claims about what bounds: an intensity left or right of the ridge of the roofline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from profkit.audit.claim import SHAPE
from profkit.audit.contradiction import PEAK_SLACK, Check, check, statement
from profkit.audit.implied import Subject
from profkit.audit.span import Span, amount
from profkit.report.gpus import Datasheet


def bound(subject: Subject) -> Iterator[Check]:
    """Compute-bound lies right of the ridge, memory-bound left of it."""
    claim = subject.claim
    intensity = _best_intensity(subject) if claim.bound else []
    ridges = intensity and (subject.spans("ridge") or _ridges(subject))
    if "bound" in subject.borrowed or not ridges:
        return
    low, high = (end(span.value for span in ridges) for end in (min, max))
    left = intensity[0].high * (1 + PEAK_SLACK) < low
    right = intensity[-1].low * (1 - PEAK_SLACK) > high
    side, ridge = ("left", low) if left else ("right", high)
    known = (span.calculation for span in _ridges(subject) if span.value == ridge)
    yield statement(
        subject, "bound", "bound", f"{claim.bound}-bound",
        f"{intensity[0]} lies {side} of the ridge, {next(known, amount(ridge, 'FLOP/B'))}",
        f"{'memory' if left else 'compute'}-bound by the roofline",
        _lower_ridge(subject, intensity[0].value) if left else
        "unless more is moved than the least of the shape",
        wrong=left if claim.bound == "compute" else right, doubt=right,
        used=(*intensity[0].used, *ridges[0].used),
    )  # fmt: skip


def ridge(subject: Subject) -> Iterator[Check]:
    """A claimed ridge is where the roofs meet."""
    spans = [
        replace(span, calculation=f"compute peak / memory bandwidth = {span.calculation}")
        for span in _ridges(subject)
    ]
    yield from check(subject, "ridge", "ridge", spans, slack=PEAK_SLACK)


def _best_intensity(subject: Subject) -> list[Span]:
    """By the shape (largest first, where the element size is open), else as claimed."""
    values = sorted((work.intensity for work in subject.works), reverse=True)
    spans = [Span.exactly(value, "FLOP/B", used=SHAPE) for value in values]
    return spans or subject.spans("intensity")


def _ridges(subject: Subject) -> list[Span]:
    """FLOP/B where roofs meet: those of the datasheets, and of the claim at a held clock."""
    claim = subject.claim
    only_held = claim.peak_of in ("held", "measured")
    keys = () if only_held else subject.rate_peaks()
    spans = [
        _meeting(subject, sheet, key)
        for sheet in subject.sheets
        for key in keys
        if key in sheet.peaks
    ]
    held = claim["held_peak"] or (claim["flop_peak"] if only_held else None)
    if held and (dram := claim["byte_peak"]):
        spans.append(Span.exactly(held.value / dram.value, "FLOP/B"))
    return spans


def _meeting(subject: Subject, sheet: Datasheet, key: str) -> Span:
    compute = Span.exactly(sheet.peaks[key].value, "FLOP/s")
    meeting = compute.over(Span.exactly(sheet.peaks["dram"].value, "B/s"), "FLOP/B")
    return replace(meeting, calculation=f"{meeting.calculation} ({subject.key_label(key)})")


def _lower_ridge(subject: Subject, intensity: float) -> str:
    """Which lower peak would put the ridge left of an intensity."""
    for sheet in subject.sheets:
        for key in ("fp32", *sheet.peaks):
            lower = sheet.peaks[key].value / sheet.peaks["dram"].value
            if key != "dram" and key not in subject.rate_peaks() and lower < intensity:
                name = key.upper().replace("_", " ")
                return f"held against {name}'s peak the ridge would be {amount(lower, 'FLOP/B')}"
    return ""
