"""Claims about peaks: which is meant, what share of it, and nothing above it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from profkit.audit.contradiction import (
    PEAK_SLACK,
    SLACK,
    UNITS,
    Amount,
    Check,
    Words,
    check,
    statement,
)
from profkit.audit.implied import Span, Subject
from profkit.audit.peak_mistakes import likely_peak
from profkit.audit.work import byte_spans, flop_spans

if TYPE_CHECKING:
    from profkit.audit.printed_numbers import Figure

_SHARES = (
    ("flop_share", "flop", "flop_peak"),
    ("byte_share", "byte", "byte_peak"),
    ("held_share", "flop", "held_peak"),
)


def shares(subject: Subject) -> Iterator[Check]:
    """A rate over the claimed peak, or over the datasheet's."""
    claim = subject.claim
    for share, kind, peak in _SHARES:
        rates, used = _rate_spans(subject, kind)
        peaks, slack = _peak_spans(subject, kind, peak)
        if getattr(claim, peak):
            used = (*used, peak)
        spans = [one / other for one in rates for other in peaks]

        def follows(
            span: Span, rates: Sequence[Span] = tuple(rates), unit: str = UNITS[f"{kind}_rate"]
        ) -> Words:
            value = rates[0].value
            return (Amount(value, unit), " / ", Amount(value / span.value, unit), " = ",
                    Amount(span.value, "1"), *lender_words(subject))  # fmt: skip

        yield from check(
            subject, "share of peak", share, spans, follows, used=used, slack=slack,
            should_be=_right_quotient,
        )  # fmt: skip


def _right_quotient(span: Span) -> Words:
    """What rate over peak is, which need not be possible."""
    impossible = span.value > 1 + PEAK_SLACK
    more = (", which is itself above a physical peak",) if impossible else ()
    return (Amount(span.value, "1"), *more)


def _rate_spans(subject: Subject, kind: str) -> tuple[Sequence[Span], tuple[str, ...]]:
    """The claimed rate, else the one that follows from amount and time."""
    rate = getattr(subject.claim, f"{kind}_rate")
    return ([Span.of(rate)], (f"{kind}_rate",)) if rate else _implied(subject, kind)


def _peak_spans(subject: Subject, kind: str, peak: str) -> tuple[Sequence[Span], float]:
    """The claimed peak, else the datasheets' where that is what the share is of; the slack."""
    claimed = getattr(subject.claim, peak)
    if claimed:
        return [Span.of(claimed)], SLACK
    if peak == "held_peak" or subject.claim.peak_of not in ("", "datasheet"):
        return [], SLACK
    return [Span.of(value) for value in _peaks(subject, kind)], PEAK_SLACK


def _implied(subject: Subject, kind: str) -> tuple[Sequence[Span], tuple[str, ...]]:
    """The rates that follow from amount and time."""
    amounts, used = flop_spans(subject) if kind == "flop" else byte_spans(subject)
    if subject.claim.time is None:
        return [], ()
    return [one / Span.of(subject.claim.time) for one in amounts], (*used, "time")


def _peaks(subject: Subject, kind: str) -> tuple[float, ...]:
    if kind == "byte":
        return subject.byte_peaks()
    return tuple(value for values in subject.rate_peaks().values() for value in values)


def lender_words(subject: Subject) -> Words:
    return (f" ({subject.lender})",) if subject.lender else ()


def peak(subject: Subject) -> Iterator[Check]:
    """A peak is the datasheet's; one at a held clock, or measured, is not above it."""
    for _, kind, field in _SHARES:
        claimed = getattr(subject.claim, field)
        peaks = _peaks(subject, kind)
        if claimed is None or not peaks:
            continue
        if field == "held_peak" or subject.claim.peak_of in ("held", "measured"):
            limit = subject.rate_limit() if kind == "flop" else max(peaks)
            spans = [Span(min(claimed.value, limit), 0.0, limit)]
        else:
            spans = [Span.of(value) for value in peaks]

        def cause(_: Span, kind: str = kind, claimed: Figure = claimed) -> Words:
            return _why_peak(subject, kind, claimed)

        def follows(span: Span, kind: str = kind) -> Words:
            return _datasheet_words(subject, kind, span.value)

        def should_be(span: Span, kind: str = kind) -> Words:
            return _right_peak(subject, kind, span.value)

        yield from check(
            subject, "peak", field, spans, follows, cause=cause, should_be=should_be,
            slack=PEAK_SLACK, doubt=_accumulates_in_fp16(subject, claimed),
        )  # fmt: skip


def _accumulates_in_fp16(subject: Subject, claimed: Figure) -> bool:
    """Whether a peak is one of FP16 accumulation, which is right for who accumulates so."""
    if subject.claim.accumulate:
        return False
    return any(
        Span.of(peak.value).allows(claimed, PEAK_SLACK)
        for sheet in subject.sheets
        for key, peak in sheet.f16_accumulate.items()
        if key in subject.rate_peaks()
    )


def _why_peak(subject: Subject, kind: str, claimed: Figure) -> Words:
    keys = tuple(subject.rate_peaks())
    of_bytes = kind == "byte"
    likely = likely_peak(claimed.value, subject.sheets, keys, of_bytes=of_bytes)
    if likely:
        return (likely,)
    for row in subject.rows:
        rate = getattr(row, f"{kind}_rate")
        if rate and Span.of(rate).allows(claimed, SLACK):
            return (f"{row.where} gives it as a rate that was reached, not a peak",)
    return ()


def _datasheet_words(subject: Subject, kind: str, value: float) -> Words:
    """The peak and whose it is; from memory where nobody looked it up."""
    unit = UNITS[f"{kind}_peak"]
    for sheet in subject.sheets:
        for key, peak in sheet.peaks.items():
            if peak.value == value and (key == "dram") == (kind == "byte"):
                what = "memory bandwidth" if key == "dram" else f"dense {key_label(subject, key)}"
                doubt = "" if peak.verified else " (from memory)"
                return (f"{sheet.name}'s {what} is ", Amount(value, unit), doubt)
    claim = subject.claim
    where = f" at {claim.clock.text}" if claim.clock and kind == "flop" else ""
    together = f" ({claim.devices} GPUs)" if claim.devices else ""
    return (f"{names_of(subject)}{together} can reach at most ", Amount(value, unit), where)


def key_label(subject: Subject, key: str) -> str:
    wanted = subject.rate_peaks()
    if key not in wanted:
        key = next(iter(wanted), key)
    return key.replace("tensor_", "tensor ").replace("_", " ").upper().replace("TENSOR", "tensor")


def _right_peak(subject: Subject, kind: str, value: float) -> Words:
    """The right peak, and the share of it that the rate then is."""
    unit = UNITS[f"{kind}_peak"]
    rate = getattr(subject.claim, f"{kind}_rate")
    if rate is None:
        return (Amount(value, unit),)
    return (Amount(value, unit), ", of which ", Amount(rate.value, unit), " is ",
            Amount(rate.value / value, "1"), *lender_words(subject))  # fmt: skip


def above_peak(subject: Subject) -> Iterator[Check]:
    """Nothing is faster than the hardware; where a rate is not claimed, the one that follows."""
    yield from _above_bytes(subject)
    yield from _above_level(subject)
    yield from _above_flop(subject)
    yield from _above_hundred(subject)


def _above_bytes(subject: Subject) -> Iterator[Check]:
    claim, limit = subject.claim, max(subject.byte_peaks(), default=0.0)
    if claim.byte_rate is None or not limit or _from_cache(subject):
        return
    spans = [Span(min(claim.byte_rate.value, limit), 0.0, limit)]

    def follows(_: Span) -> Words:
        return (f"{names_of(subject)}'s memory moves at most ", Amount(limit, "B/s"))

    yield from check(
        subject, "above peak", "byte_rate", spans, follows, cause=lambda _: _cached(subject),
        should_be=lambda _: ("at most ", Amount(limit, "B/s"), " of DRAM traffic"),
        slack=PEAK_SLACK,
    )  # fmt: skip


# Bytes per cycle and SM: out of L1 and shared memory, and into L1 from L2 (architecture
# whitepapers, Volta to Hopper; nothing is published of L2 after that).
_LEVEL_WIDTHS = {"shared_rate": 128, "l2_rate": 64}
_L2_KNOWN_BEFORE = (10, 0)


def _above_level(subject: Subject) -> Iterator[Check]:
    """What an SM takes from shared memory or L2 in a cycle, times SMs, times the clock."""
    clock = subject.claim.clock
    for field, width in _LEVEL_WIDTHS.items():
        sheets = [
            sheet for sheet in subject.sheets if field != "l2_rate" or sheet.cc < _L2_KNOWN_BEFORE
        ]
        if len(sheets) < len(subject.sheets) or not sheets:
            continue
        rates = [
            width * sheet.sm_count * max(sheet.boost, clock.value if clock else 0.0)
            for sheet in sheets
        ]
        limit = max(rates) * max(subject.multiples)

        def follows(_: Span, limit: float = limit, width: int = width) -> Words:
            return (f"{width} B a cycle and SM are at most ", Amount(limit, "B/s"))

        claimed = getattr(subject.claim, field)
        yield from check(
            subject, "above peak", field,
            [Span(min(claimed.value if claimed else limit, limit), 0.0, limit)], follows,
            slack=PEAK_SLACK,
        )  # fmt: skip


def _from_cache(subject: Subject) -> bool:
    """Whether the claim says that L2 held what was read, and it can."""
    works = subject.works
    l2 = max((sheet.l2.value for sheet in subject.sheets), default=0.0)
    return subject.claim.cache == "warm" and (not works or works[0].bytes <= l2)


def _cached(subject: Subject) -> Words:
    moved = subject.works[0].bytes if subject.claim.dtype and subject.works else math.nan
    l2 = max((sheet.l2.value for sheet in subject.sheets), default=0.0)
    if moved <= l2:
        return ("the ", Amount(moved, "B"), " of the shape fit in L2 (", Amount(l2, "B"),
                "): caches served them, bytes over time is not DRAM traffic")  # fmt: skip
    return ("caches served a part, or the byte count is not that of DRAM traffic",)


def _above_flop(subject: Subject) -> Iterator[Check]:
    claim, limit = subject.claim, subject.rate_limit()
    if not limit:
        return

    def follows(_: Span) -> Words:
        return (f"{names_of(subject)} computes at most ", Amount(limit, "FLOP/s"),
                " in this precision, dense, at boost clock")  # fmt: skip

    if claim.flop_rate is not None:
        spans = [Span(min(claim.flop_rate.value, limit), 0.0, limit)]
        yield from check(
            subject, "above peak", "flop_rate", spans, follows,
            cause=lambda _: ("work counted that was not done, another precision or a sparse rate",),
            should_be=lambda _: ("at most ", Amount(limit, "FLOP/s")), slack=PEAK_SLACK,
        )  # fmt: skip
    elif claim.time is not None and (amounts := flop_spans(subject))[0] and amounts[1] != ("flop",):
        flop, least = amounts[0][0].value, amounts[0][0].value / limit
        spans = [Span(max(claim.time.value, least), least, math.inf)]
        yield from check(
            subject, "above peak", "time", spans, lambda _: (Amount(flop, "FLOP"), " / ",
            Amount(limit, "FLOP/s"), " = ", Amount(least, "s")), used=amounts[1],
            should_be=lambda _: ("at least ", Amount(least, "s")), slack=PEAK_SLACK,
        )  # fmt: skip


def names_of(subject: Subject) -> str:
    return " or ".join(sheet.name for sheet in subject.sheets)


def _above_hundred(subject: Subject) -> Iterator[Check]:
    claim = subject.claim
    for field in ("flop_share", "byte_share", "held_share", "share"):
        if field == "byte_share" and _from_cache(subject):
            continue
        limit = _share_limit(subject, field)

        def follows(_: Span, field: str = field) -> Words:
            return _no_more(subject, field)

        def cause(_: Span, field: str = field) -> Words:
            return _why_above(subject, field)

        def should_be(_: Span, field: str = field) -> Words:
            return _right_share(subject, field)

        yield from check(
            subject, "above peak", field, [Span(1.0, 0.0, limit)],
            follows, cause=cause,
            should_be=should_be, doubt=claim.peak_of == "measured",
        )  # fmt: skip


def _no_more(subject: Subject, field: str) -> Words:
    """Why a share can't be above 1."""
    peaks = subject.byte_peaks() if field == "byte_share" else ()
    if len(peaks) != 1:
        return ("no rate is above 100% of a physical peak",)
    return (f"no rate is above 100% of a physical peak: {names_of(subject)}'s memory moves at "
            "most ", Amount(peaks[0], "B/s"))  # fmt: skip


def _share_limit(subject: Subject, field: str) -> float:
    """1, but for tensor peaks that the datasheet states below boost clock."""
    if field in ("byte_share", "held_share") or subject.claim.peak_of == "held":
        return 1 + PEAK_SLACK
    keys = subject.rate_peaks()
    heads = [sheet.highest_headroom(key) for sheet in subject.sheets for key in keys]
    return max(heads, default=1.0) + PEAK_SLACK


def _why_above(subject: Subject, field: str) -> Words:
    kind = field.partition("_")[0]
    claimed = getattr(subject.claim, f"{kind}_peak", None)
    peaks = _peaks(subject, kind) if kind in ("flop", "byte") else ()
    if claimed and peaks and not any(Span.of(peak).allows(claimed, PEAK_SLACK) for peak in peaks):
        return (
            "the peak is wrong: ",
            claimed.text,
            " is not ",
            Amount(peaks[0], UNITS[f"{kind}_peak"]),
        )
    return _cached(subject) if field == "byte_share" else ()


def _right_share(subject: Subject, field: str) -> Words:
    kind = field.partition("_")[0]
    rate = getattr(subject.claim, f"{kind}_rate", None)
    peaks = _peaks(subject, kind) if kind in ("flop", "byte") else ()
    if rate is None or len(peaks) != 1 or rate.value > peaks[0]:
        return ("at most 100%",)
    unit = UNITS[f"{kind}_rate"]
    return (Amount(rate.value / peaks[0], "1"), ": ", Amount(rate.value, unit), " of ",
            Amount(peaks[0], unit), *lender_words(subject))  # fmt: skip


def memory(subject: Subject) -> Iterator[Check]:
    """The kind of memory is the product's."""
    claimed = subject.claim.memory.upper()
    known = {sheet.memory for sheet in subject.sheets if sheet.memory}
    if not claimed or not known:
        return
    if any(kind.upper().startswith(claimed) for kind in known):
        yield Check("memory", ("memory",), None)
        return
    kinds = " or ".join(sorted(known))
    yield statement(subject, "memory", "memory", subject.claim.memory,
                     (f"{names_of(subject)} has {kinds}",), (kinds,))  # fmt: skip
