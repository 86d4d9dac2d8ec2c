"""Claims about peaks: which is meant, what share of it, nothing above it, ratios of two GPUs."""

import math
from collections.abc import Iterator
from functools import partial
from itertools import product

from msgspec.structs import replace

from profkit.audit.check import Check, Span, amount, quotients
from profkit.audit.printed_numbers import Figure
from profkit.audit.subject import (
    PEAK_SLACK,
    SLACK,
    Subject,
    key_label,
    peak_label,
    sheets_of,
)
from profkit.audit.work import byte_spans, flop_spans
from profkit.hardware.gpus import Datasheet, all_datasheets
from profkit.hardware.precisions import PRECISIONS

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
        yield from subject.check("share_of_peak", share, spans, should_be=_quotient, slack=slack)


def _rates(subject: Subject, kind: str) -> list[Span]:
    """The claimed rate, else the one that follows from amount and time."""
    amounts = flop_spans(subject) if kind == "flop" else byte_spans(subject)
    return subject.spans(f"{kind}_rate") or quotients(amounts, subject.spans("time"), _UNITS[kind])


def _quotient(span: Span) -> str:
    """What rate over peak is, which need not be possible."""
    return f"{span}{', which itself exceeds the peak' if span.value > 1 + PEAK_SLACK else ''}"


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
            spans = [
                Span.exactly(value, "", _datasheet_words(subject, kind, value)) for value in peaks
            ]
            if not any(span.allows(claimed, PEAK_SLACK) for span in spans):
                spans = _current(subject, spans)
        yield from subject.check(
            "peak", field, spans, cause=_why_peak(subject, kind, claimed),
            should_be=partial(_right_peak, subject, kind), slack=PEAK_SLACK,
            doubt=_accumulates_in_fp16(subject, claimed),
        )  # fmt: skip


def _current(subject: Subject, spans: list[Span]) -> list[Span]:
    """The peaks without those that only other documents of the products give."""
    others = {
        value * count
        for sheet in subject.sheets
        for values in sheet.also.values()
        for value in values
        for count in subject.multiples
    }
    return [span for span in spans if span.value not in others] or spans


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
        f"{row.where} has it as an achieved rate, not a peak"
        for row in subject.rows
        if (rate := row[f"{kind}_rate"]) and Span.around(rate).allows(claimed, SLACK)
    )
    return likely or next(reached, "")


def _datasheet_words(subject: Subject, kind: str, value: float) -> str:
    """The peak and its product; marked where the datasheet figure is unverified."""
    shown = amount(value, _UNITS[kind])
    own = subject.claim.dtype  # before the tensor units' TF32 that FP32 may mean
    keys = ["dram"] if kind == "byte" else sorted(subject.rate_peaks(), key=lambda key: key != own)
    for sheet, key, count in product(subject.sheets, keys, subject.multiples):
        peak = sheet.peaks.get(key)
        if peak and peak.value * count == value:
            what = "memory bandwidth" if key == "dram" else f"{peak_label(key)} peak"
            doubt = "" if peak.verified else " (unverified)"
            name = sheet.name if count == 1 else f"{count} x {sheet.name}"
            return f"{name}'s {what} is {shown}{doubt}"
    clock = subject.text("clock") if kind == "flop" else ""
    names = subject.gpu_names
    if subject.claim.devices:
        names = f"{subject.claim.devices} x {names}"
    where = f" at {clock}" if clock else " at the max SM clock" * (kind == "flop")
    return f"{names} can reach at most {shown}{where}"


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
        span = Span.up_to(
            limit, "B/s", f"the DRAM bandwidth of {subject.gpu_names} is at most {{}}"
        )
        yield from subject.check(
            "above_peak", "byte_rate", [span], cause=_cached(subject),
            should_be="at most {} of DRAM traffic".format, slack=PEAK_SLACK,
        )  # fmt: skip


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
                "cache hits, so bytes over time is not DRAM bandwidth")  # fmt: skip
    return "partly cache hits, or the byte count is not DRAM traffic"


def above_flop(subject: Subject) -> Iterator[Check]:
    """Nothing computes faster than the hardware; by the time where no rate is claimed."""
    limit, flop = subject.rate_limit(), flop_spans(subject)
    if limit and subject.claim["flop_rate"]:
        words = subject.rate_limit_words()
        yield from subject.check(
            "above_peak", "flop_rate", [Span.up_to(limit, "FLOP/s", words)],
            cause="work counted that was not executed, another precision, or a sparse rate",
            should_be="at most {}", slack=PEAK_SLACK,
        )  # fmt: skip
    elif limit and flop and flop[0].used != ("flop",):
        least = replace(flop[0].over(Span.exactly(limit, "FLOP/s"), "s"), high=math.inf)
        yield from subject.check(
            "above_peak", "time", [least], should_be="at least {}",
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
        words, cause = "no rate exceeds 100% of a physical peak", _cached(subject) * of_bytes
        if of_bytes and len(peaks) == 1:
            words += (
                f": the DRAM bandwidth of {subject.gpu_names} is at most {amount(peaks[0], 'B/s')}"
            )
        claimed = claim[f"{kind}_peak"]
        if claimed and peaks and not any(_close(peak, claimed) for peak in peaks):
            right = amount(peaks[0], _UNITS[kind])
            cause = f"the peak is wrong: {claimed.text} is not {right}"
        span = Span(1.0, 0.0, _share_limit(subject, field), "1", words)
        yield from subject.check(
            "above_peak", field, [span], cause=cause,
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
        yield subject.statement(
            "memory", "memory", claimed, f"{subject.gpu_names} has {kinds}", kinds,
            wrong=not any(kind.upper().startswith(claimed.upper()) for kind in known),
        )  # fmt: skip


_CLOSE = 0.02  # chosen: datasheets round to three digits, and prose rounds further
_SPARSE = 2.0  # 2:4 structured sparsity doubles the dense rate
# Products whose figure a wrong peak is: more names than a reader goes through help nobody.
_FEW = 6


def likely_peak(
    value: float, sheets: tuple[Datasheet, ...], keys: tuple[str, ...], *, of_bytes: bool
) -> str:
    """What a claimed peak (FLOP/s or B/s) is instead of what `keys` name; "" where nothing fits.

    A bandwidth is also held against the digits of the compute peaks: 242 GB/s, 242 TFLOP/s.
    """
    for sheet in sheets:
        if mistake := _of_product(value, sheet, keys, of_bytes=of_bytes):
            return mistake
    wanted = ("dram",) if of_bytes else keys
    others = [
        sheet.name
        for sheet in all_datasheets()
        if any(_is_near(value, peak.value) for key, peak in sheet.peaks.items() if key in wanted)
    ]
    return f"this is the figure of {' and '.join(others)}" if 0 < len(others) <= _FEW else ""


def _of_product(value: float, sheet: Datasheet, keys: tuple[str, ...], *, of_bytes: bool) -> str:
    digits = value * 1e3 if of_bytes else value
    for label, rate in _product_peaks(sheet, keys):
        if _is_near(digits, rate):
            shown = f"{rate / 1e12:.4g} TFLOP/s is {sheet.name}'s {label} peak"
            return f"{shown}, not a bandwidth" if of_bytes else shown
    if not of_bytes and _is_near(value / 1e3, sheet.peaks["dram"].value):
        return f"{value / 1e12:.4g} are {sheet.name}'s GB/s, not a compute peak"
    return ""


def _product_peaks(sheet: Datasheet, keys: tuple[str, ...]) -> Iterator[tuple[str, float]]:
    """The compute figures that go round of a product, those of the wanted precisions first."""
    order = sorted((key for key in sheet.peaks if key != "dram"), key=lambda key: key not in keys)
    for key in order:
        label = PRECISIONS.get(key, key)
        yield f"dense {label}" if key.startswith("tensor_") else label, sheet.peaks[key].value
        if key in sheet.f16_accumulate:
            yield f"{label} (FP16 accumulation)", sheet.f16_accumulate[key].value
        if key.startswith("tensor_"):
            yield f"sparse {label}", _SPARSE * sheet.peaks[key].value


def likely_ratio(value: float, pair: tuple[Datasheet, Datasheet], keys: tuple[str, ...]) -> str:
    """Peaks of different precisions of two products whose ratio is `value`; "" for none."""
    causes: list[tuple[bool, float, str]] = []
    for above, below in (pair, pair[::-1]):
        for (label, rate), (other, base) in product(
            _product_peaks(above, keys), _product_peaks(below, keys)
        ):
            error = abs(rate / base / value - 1)
            if label != other and error < _CLOSE:
                wanted = any(PRECISIONS.get(key, key) in label for key in keys)
                causes.append((
                    not wanted or "sparse" in label + other, error,
                    f"{above.name}'s {label} peak ({rate / 1e12:.4g} TFLOP/s) divided by "
                    f"{below.name}'s {other} peak ({base / 1e12:.4g} TFLOP/s)",
                ))  # fmt: skip
    return min(causes)[2] if causes else ""


def _is_near(value: float, other: float) -> bool:
    return abs(value - other) <= _CLOSE * other


def ratios(subject: Subject) -> Iterator[Check]:
    """Ratios of peaks are of one precision; an advantage is what time does not explain by them."""
    claim = subject.claim
    names = dict.fromkeys([side.gpu for side in claim.sides] or claim.gpus)
    sheets = [known[0] for name in names if (known := sheets_of([name]))]
    if len(sheets) < 2:
        return
    pair, claimed, cause = (sheets[0], sheets[1]), claim["peak_ratio"], ""
    if claimed:
        cause = likely_ratio(claimed.value, pair, tuple(subject.rate_peaks()))
    spans = _ratios_of_peaks(replace(subject, sheets=pair))
    yield from subject.check("ratio_of_peaks", "peak_ratio", spans, cause=cause, slack=PEAK_SLACK)
    yield from _advantage(subject, spans)


def _ratios_of_peaks(both: Subject) -> list[Span]:
    """The ratios of the dense peaks of the claim's precision, the larger over the smaller."""
    spans = []
    for key in both.rate_peaks():
        peaks = [sheet.peaks[key].value for sheet in both.sheets if key in sheet.peaks]
        if len(peaks) == 2:
            large, small = (Span.exactly(end(peaks), "FLOP/s") for end in (max, min))
            words = f"dense {key_label(key)} peaks: {large} / {small} = {{}}"
            spans.append(replace(large.over(small, "x", words), used=("sides",)))
    return spans


def _advantage(subject: Subject, ratios: list[Span]) -> Iterator[Check]:
    """Ratio of peaks over ratio of times, for the same amount of work on both sides."""
    sides = subject.claim.sides
    if len(sides) != 2 or sides[0].size != sides[1].size:
        return
    fast, slow = sorted((Span.around(side.time) for side in sides), key=lambda span: span.value)
    times = slow.over(fast, "x")
    claimed, own = subject.claim["advantage"], subject.spans("peak_ratio")
    cause = ""
    if claimed and own and own[0].over(times, "x").allows(claimed, SLACK):
        cause = f"computed from the claimed ratio of {subject.text('peak_ratio')}"
    spans = [
        ratio.over(times, "x", f"{ratio} by peaks / {times} by time = {{}}") for ratio in ratios
    ]
    yield from subject.check("advantage", "advantage", spans, cause=cause, slack=PEAK_SLACK)
