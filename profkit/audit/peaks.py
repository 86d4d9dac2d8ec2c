"""Claims about peaks: which is meant, what share of it, and nothing above it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from profkit.audit.contradiction import PEAK_SLACK, SLACK, Check, check, statement
from profkit.audit.implied import Subject
from profkit.audit.peak_mistakes import likely_peak
from profkit.audit.printed_numbers import Figure
from profkit.audit.span import Span, amount, quotients
from profkit.audit.work import byte_spans, flop_spans

_SHARES = (
    ("flop_share", "flop", "flop_peak"),
    ("byte_share", "byte", "byte_peak"),
    ("held_share", "flop", "held_peak"),
)
_UNITS = {"flop": "FLOP/s", "byte": "B/s"}


def shares(subject: Subject) -> Iterator[Check]:
    """A rate over the claimed peak, or over the datasheet's."""
    for share, kind, peak in _SHARES:
        peaks, slack = subject.spans(peak), SLACK
        if not peaks and peak != "held_peak" and subject.claim.peak_of in ("", "datasheet"):
            values = subject.peaks(kind)
            peaks, slack = [Span.exactly(value, _UNITS[kind]) for value in values], PEAK_SLACK
        spans = [
            replace(span, calculation=span.calculation + subject.lender_words)
            for span in quotients(_rates(subject, kind), peaks, "1")
        ]
        yield from check(
            subject, "share_of_peak", share, spans, should_be=_right_quotient, slack=slack
        )


def _rates(subject: Subject, kind: str) -> list[Span]:
    """The claimed rate, else the one that follows from amount and time."""
    amounts = flop_spans(subject) if kind == "flop" else byte_spans(subject)
    return subject.spans(f"{kind}_rate") or quotients(amounts, subject.spans("time"), _UNITS[kind])


def _right_quotient(span: Span) -> str:
    """What rate over peak is, which need not be possible."""
    impossible = span.value > 1 + PEAK_SLACK
    return f"{span}{', which is itself above a physical peak' if impossible else ''}"


def peak(subject: Subject) -> Iterator[Check]:
    """A peak is the datasheet's; one at a held clock, or measured, is not above it."""
    for _, kind, field in _SHARES:
        claimed, peaks = subject.claim[field], subject.peaks(kind)
        if claimed is None or not peaks:
            continue
        if field == "held_peak" or subject.claim.peak_of in ("held", "measured"):
            limit = subject.rate_limit() if kind == "flop" else max(peaks)
            spans = [Span.up_to(limit, "", _datasheet_words(subject, kind, limit))]
        else:
            spans = [Span.exactly(one, "", _datasheet_words(subject, kind, one)) for one in peaks]
        yield from check(
            subject, "peak", field, spans, cause=_why_peak(subject, kind, claimed),
            should_be=partial(_right_peak, subject, kind), slack=PEAK_SLACK,
            doubt=_accumulates_in_fp16(subject, claimed),
        )  # fmt: skip


def _accumulates_in_fp16(subject: Subject, claimed: Figure) -> bool:
    """Whether a peak is one of FP16 accumulation, which is right for who accumulates so."""
    return not subject.claim.accumulate and any(
        _close(peak.value, claimed)
        for sheet in subject.sheets
        for key, peak in sheet.f16_accumulate.items()
        if key in subject.rate_peaks()
    )


def _why_peak(subject: Subject, kind: str, claimed: Figure) -> str:
    keys = tuple(subject.rate_peaks())
    likely = likely_peak(claimed.value, subject.sheets, keys, of_bytes=kind == "byte")
    reached = (
        f"{row.where} gives it as a rate that was reached, not a peak"
        for row in subject.rows
        if (rate := row[f"{kind}_rate"]) and Span.of(rate).allows(claimed, SLACK)
    )
    return likely or next(reached, "")


def _datasheet_words(subject: Subject, kind: str, value: float) -> str:
    """The peak and whose it is; from memory where nobody looked it up."""
    shown = amount(value, _UNITS[kind])
    for sheet in subject.sheets:
        for key, peak in sheet.peaks.items():
            if peak.value == value and (key == "dram") == (kind == "byte"):
                what = "memory bandwidth" if key == "dram" else f"dense {subject.key_label(key)}"
                doubt = "" if peak.verified else " (from memory)"
                return f"{sheet.name}'s {what} is {shown}{doubt}"
    claim, clock = subject.claim, subject.text("clock")
    where = f" at {clock}" if clock and kind == "flop" else ""
    together = f" ({claim.devices} GPUs)" if claim.devices else ""
    return f"{subject.gpu_names}{together} can reach at most {shown}{where}"


def _right_peak(subject: Subject, kind: str, span: Span) -> str:
    """The right peak, and the share of it that the rate then is."""
    shown = amount(span.value, _UNITS[kind])
    for rate in subject.spans(f"{kind}_rate"):
        share = amount(rate.value / span.value, "1")
        return f"{shown}, of which {rate} is {share}{subject.lender_words}"
    return shown


def above_bytes(subject: Subject) -> Iterator[Check]:
    """DRAM moves no more than its peak; caches may."""
    limit = max(subject.peaks("byte"), default=0.0)
    if limit and not _from_cache(subject):
        span = Span.up_to(limit, "B/s", f"{subject.gpu_names}'s memory moves at most {{}}")
        yield from check(
            subject, "above_peak", "byte_rate", [span], cause=_cached(subject),
            should_be="at most {} of DRAM traffic".format, slack=PEAK_SLACK,
        )  # fmt: skip


# Bytes per cycle and SM: out of L1 and shared memory, and into L1 from L2 (architecture
# whitepapers, Volta to Hopper; nothing is published of L2 after that).
_LEVEL_WIDTHS = {"shared_rate": 128, "l2_rate": 64}
_L2_KNOWN_BEFORE = (10, 0)


def above_level(subject: Subject) -> Iterator[Check]:
    """What an SM takes from shared memory or L2 in a cycle, times SMs, times the clock."""
    clock = subject.claim["clock"]
    for field, width in _LEVEL_WIDTHS.items():
        sheets = [
            sheet for sheet in subject.sheets if field != "l2_rate" or sheet.cc < _L2_KNOWN_BEFORE
        ]
        if sheets and len(sheets) == len(subject.sheets):
            clocks = (max(sheet.boost, clock.value if clock else 0.0) for sheet in sheets)
            cycles = max(sheet.sm_count * each for sheet, each in zip(sheets, clocks, strict=True))
            words = f"{width} B a cycle and SM are at most {{}}"
            span = Span.up_to(width * cycles * max(subject.multiples), "B/s", words)
            yield from check(subject, "above_peak", field, [span], slack=PEAK_SLACK)


def _l2(subject: Subject) -> float:
    return max((sheet.l2.value for sheet in subject.sheets), default=0.0)


def _from_cache(subject: Subject) -> bool:
    """Whether the claim says that L2 held what was read, and it can."""
    works = subject.works
    return subject.claim.cache == "warm" and (not works or works[0].bytes <= _l2(subject))


def _cached(subject: Subject) -> str:
    moved = subject.works[0].bytes if subject.claim.dtype and subject.works else math.nan
    if moved <= _l2(subject):
        return (f"the {amount(moved, 'B')} of the shape fit in L2 ({amount(_l2(subject), 'B')}): "
                "caches served them, bytes over time is not DRAM traffic")  # fmt: skip
    return "caches served a part, or the byte count is not that of DRAM traffic"


def above_flop(subject: Subject) -> Iterator[Check]:
    """Nothing computes faster than the hardware; by the time where no rate is claimed."""
    limit, flop = subject.rate_limit(), flop_spans(subject)
    if limit and subject.claim["flop_rate"]:
        words = (
            f"{subject.gpu_names} computes at most {{}} in this precision, dense, at boost clock"
        )
        yield from check(
            subject, "above_peak", "flop_rate", [Span.up_to(limit, "FLOP/s", words)],
            cause="work counted that was not done, another precision or a sparse rate",
            should_be="at most {}".format, slack=PEAK_SLACK,
        )  # fmt: skip
    elif limit and flop and flop[0].used != ("flop",):
        least = replace(flop[0].over(Span.exactly(limit, "FLOP/s"), "s"), high=math.inf)
        yield from check(
            subject, "above_peak", "time", [least], should_be="at least {}".format,
            slack=PEAK_SLACK,
        )  # fmt: skip


def above_hundred(subject: Subject) -> Iterator[Check]:
    """No share of a physical peak is above 1."""
    claim = subject.claim
    for field in ("flop_share", "byte_share", "held_share", "share"):
        kind = field.partition("_")[0]
        of_bytes, peaks = kind == "byte", subject.peaks(kind)
        if of_bytes and _from_cache(subject):
            continue
        words, cause = "no rate is above 100% of a physical peak", _cached(subject) * of_bytes
        if of_bytes and len(peaks) == 1:
            words += f": {subject.gpu_names}'s memory moves at most {amount(peaks[0], 'B/s')}"
        claimed = claim[f"{kind}_peak"]
        if claimed and peaks and not any(_close(peak, claimed) for peak in peaks):
            right = amount(peaks[0], _UNITS[kind])
            cause = f"the peak is wrong: {claimed.text} is not {right}"
        span = Span(1.0, 0.0, _share_limit(subject, field), "1", words)
        yield from check(
            subject, "above_peak", field, [span], cause=cause,
            should_be=partial(_right_share, subject, kind), doubt=claim.peak_of == "measured",
        )  # fmt: skip


def _close(peak: float, claimed: Figure) -> bool:
    return Span.exactly(peak).allows(claimed, PEAK_SLACK)


def _share_limit(subject: Subject, field: str) -> float:
    """1, but for tensor peaks that the datasheet states below boost clock."""
    if field in ("byte_share", "held_share") or subject.claim.peak_of == "held":
        return 1 + PEAK_SLACK
    keys = subject.rate_peaks()
    heads = [sheet.highest_headroom(key) for sheet in subject.sheets for key in keys]
    return max(heads, default=1.0) + PEAK_SLACK


def _right_share(subject: Subject, kind: str, _: Span) -> str:
    peaks = subject.peaks(kind)
    for rate in subject.spans(f"{kind}_rate"):
        if len(peaks) == 1 and rate.value <= peaks[0]:
            peak = Span.exactly(peaks[0], rate.unit)
            return f"{amount(rate.value / peak.value, '1')}: {rate} of {peak}{subject.lender_words}"
    return "at most 100%"


def memory(subject: Subject) -> Iterator[Check]:
    """The kind of memory is the product's."""
    claimed = subject.claim.memory
    known = sorted({sheet.memory for sheet in subject.sheets if sheet.memory})
    kinds = " or ".join(known)
    if claimed and known:
        yield statement(
            subject, "memory", "memory", claimed, f"{subject.gpu_names} has {kinds}", kinds,
            wrong=not any(kind.upper().startswith(claimed.upper()) for kind in known),
        )  # fmt: skip
