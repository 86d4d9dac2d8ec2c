"""Claimed figures held against each other and against datasheets.

Each rule takes what is claimed in one place, works out what follows from the rest of it, and says
where the two differ by more than the printed digits allow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from profkit.analysis.claimed import Span, Subject, sheets_of, subjects
from profkit.analysis.gpus import Datasheet
from profkit.analysis.peak_mistakes import likely_peak, likely_ratio
from profkit.capture.work import Work
from profkit.ingest.claims import SHAPE, Claim
from profkit.ingest.printed import Figure

_SLACK = 1e-3
_PEAK_SLACK = 0.02
_CLOSE = 0.02
_GRID_DIMENSIONS = 3
_TICKS = (1.024e-6, 0.5e-6)
_CHANCE = 1e-6
_NEARLY_ALL = 0.8
_UNITS = {
    "flop": "FLOP", "bytes": "B", "intensity": "FLOP/B", "flop_rate": "FLOP/s", "byte_rate": "B/s",
    "flop_share": "1", "byte_share": "1", "share": "1", "flop_peak": "FLOP/s", "byte_peak": "B/s",
    "time": "s", "baseline": "s", "low": "s", "high": "s", "lower_end": "s", "upper_end": "s",
    "speedup": "x", "peak_ratio": "x", "advantage": "x",
}  # fmt: skip


@dataclass(frozen=True)
class Amount:
    """A quantity within words; `unit` is "1" for a share, "x" for a ratio."""

    value: float
    unit: str


Words = tuple[str | Amount, ...]


@dataclass(frozen=True)
class Contradiction:
    """A claim that the rest of what is claimed, or a datasheet, contradicts.

    `claimed` is as it was written. `follows` is the calculation, `cause` what likely went wrong
    (empty where nothing is known), `should_be` what would be right. `value` and `expected` are the
    same as numbers in `unit`, NaN where the claim is no number. A `doubt` is no contradiction:
    what is claimed may be right, but does not say what it seems to.
    """

    where: str
    text: str
    rule: str
    field: str
    claimed: str
    follows: Words
    cause: Words
    should_be: Words
    value: float = math.nan
    expected: float = math.nan
    unit: str = ""
    doubt: bool = False


@dataclass(frozen=True)
class Check:
    """A rule that could be held against a claim: the fields it used, and what it found."""

    rule: str
    used: tuple[str, ...]
    found: Contradiction | None


@dataclass(frozen=True)
class Outcome:
    """A claim, what was checked of it, and what was not, with the reason."""

    claim: Claim
    checks: tuple[Check, ...]
    unchecked: tuple[str, ...]

    @property
    def found(self) -> tuple[Contradiction, ...]:
        """Contradictions and doubts, in the order of the rules."""
        return tuple(check.found for check in self.checks if check.found)


@dataclass(frozen=True)
class Audit:
    """The outcome of every claim, in their order."""

    outcomes: tuple[Outcome, ...]

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        return tuple(one for outcome in self.outcomes for one in outcome.found if not one.doubt)

    @property
    def doubts(self) -> tuple[Contradiction, ...]:
        return tuple(one for outcome in self.outcomes for one in outcome.found if one.doubt)


def audit(claims: Sequence[Claim], gpu: str = "") -> tuple[Contradiction, ...]:
    """The contradictions in claims; `gpu` is the product of those that name none."""
    return examine(claims, gpu).contradictions


def examine(claims: Sequence[Claim], gpu: str = "") -> Audit:
    """Every claim with what was checked, what contradicts it and what could not be checked."""
    rows = [claim for claim in claims if not claim.text]
    outcomes = [_outcome(claim, rows, gpu) for claim in claims]
    ticks = _ticks(rows)
    return Audit(
        tuple(
            replace(outcome, checks=(*outcome.checks, ticks[outcome.claim.where]))
            if outcome.claim.where in ticks
            else outcome
            for outcome in outcomes
        )
    )


def _outcome(claim: Claim, rows: Sequence[Claim], gpu: str) -> Outcome:
    """Of the rows that a sentence may speak of, the one that contradicts it least counts."""
    tried = []
    for subject in subjects(claim, rows, gpu):
        checks = tuple(check for rule in _RULES for check in rule(subject))
        tried.append(checks)
    checks = min(tried, key=lambda one: sum(check.found is not None for check in one))
    return Outcome(claim, checks, _unchecked(claim, checks, gpu))


def _unchecked(claim: Claim, checks: Sequence[Check], gpu: str) -> tuple[str, ...]:
    used = {name for check in checks for name in check.used}
    left = [figure.text or name for name, figure in claim.figures.items() if name not in used]
    left += [
        name for name in ("bound", "memory") if getattr(claim, name) and name not in used
    ]
    why = []
    if left:
        known = bool(sheets_of(claim, gpu))
        named = claim.gpus[0] if claim.gpus else ""
        reason = "nothing to hold it against"
        if not known:
            reason += f", {named} is not in the GPU table" if named else ", no GPU named"
        why.append(f"{', '.join(left)}: {reason}")
    if claim.unread:
        why.append(f"not understood: {', '.join(claim.unread)}")
    if not checks and not why:
        why.append("no claim understood")
    return tuple(why)


_Rule = Callable[[Subject], Iterator[Check]]


def _check(
    subject: Subject,
    rule: str,
    field: str,
    expected: Sequence[Span],
    follows: Callable[[Span], Words],
    *,
    used: tuple[str, ...] = (),
    cause: Callable[[Span], Words] = lambda _: (),
    should_be: Callable[[Span], Words] | None = None,
    slack: float = _SLACK,
    doubt: bool = False,
) -> Iterator[Check]:
    """A claimed field against what it should be, any of `expected`; nothing for a borrowed one."""
    claimed = getattr(subject.claim, field)
    if field in subject.borrowed or not isinstance(claimed, Figure) or not expected:
        return
    fields = (field, *used)
    if any(span.allows(claimed, slack) for span in expected):
        yield Check(rule, fields, None)
        return
    nearest = min(expected, key=lambda span: abs(math.log(span.value / claimed.value)))
    unit = _UNITS[field]
    right = should_be(nearest) if should_be else (Amount(nearest.value, unit),)
    found = Contradiction(
        where=subject.claim.where,
        text=subject.claim.text,
        rule=rule,
        field=field,
        claimed=_shown(claimed, field),
        follows=follows(nearest),
        cause=cause(nearest),
        should_be=right,
        value=claimed.value,
        expected=nearest.value,
        unit=unit,
        doubt=doubt,
    )
    yield Check(rule, fields, found)


def _statement(
    subject: Subject, rule: str, field: str, claimed: str, follows: Words, should_be: Words,
    cause: Words = (), *, doubt: bool = False, used: tuple[str, ...] = (),
) -> Check:  # fmt: skip
    """A contradiction of what is no number."""
    claim = subject.claim
    found = Contradiction(
        claim.where, claim.text, rule, field, claimed, follows, cause, should_be, doubt=doubt
    )
    return Check(rule, (field, *used), found)


def _shown(figure: Figure, field: str) -> str:
    return figure.text or f"{figure.value:.6g} {_UNITS[field].strip('1')}".strip()


def _flop_of_shape(subject: Subject) -> Iterator[Check]:
    """4 B H S² D, half of it where causal."""
    works = subject.works[:1]

    def follows(span: Span) -> Words:
        half = " / 2 (causal)" if subject.claim.causal else ""
        return (f"4 x B x H x S² x D{half}{_more(subject)} = {_sizes(subject)} = ",
                Amount(span.value, "FLOP"))  # fmt: skip

    def cause(span: Span) -> Words:
        claimed = subject.claim.flop
        ratio = claimed.value / span.value if claimed else math.nan
        if _near(ratio, 0.5):
            return ("half: a causal mask that is not declared, or multiply-adds counted as one",)
        if _near(ratio, 2.0):
            return ("twice as many: the causal half counted in full, or products twice",)
        return ()

    spans = [Span.of(work.flop) for work in works]
    yield from _check(subject, "flop of shape", "flop", spans, follows, used=SHAPE, cause=cause)


def _bytes_of_shape(subject: Subject) -> Iterator[Check]:
    """Q, K, V read once, O written once."""

    def follows(span: Span) -> Words:
        return (*_bytes_words(subject, span.value),)

    def cause(span: Span) -> Words:
        claimed = subject.claim.bytes
        ratio = claimed.value / span.value if claimed else math.nan
        if _near(ratio, 0.75):
            return ("three quarters: the output is left out",)
        if _near(ratio, 2.0) or _near(ratio, 0.5):
            return ("a factor of 2: another element size",)
        if ratio < 1:
            return ("fewer bytes than inputs and output have can't be all that is moved",)
        return ("more than once read or written: traffic of caches, not the least of the shape",)

    spans = [Span.of(work.bytes) for work in subject.works]
    yield from _check(subject, "bytes of shape", "bytes", spans, follows, used=SHAPE, cause=cause)


def _sizes(subject: Subject) -> str:
    claim = subject.claim
    return f"4 x {claim.batch} x {claim.heads} x {claim.length}² x {claim.dim}"


def _more(subject: Subject) -> str:
    return " x 2.5 (backward)" if subject.claim.backward else ""


def _bytes_words(subject: Subject, value: float) -> Words:
    claim = subject.claim
    size = next((work for work in subject.works if work.bytes == value), None)
    if size is None or claim.kv_heads or claim.backward:
        return ("inputs and outputs of the shape, each moved once: ", Amount(value, "B"))
    elements = 4 * (claim.batch or 0) * (claim.heads or 0) * (claim.length or 0) * (claim.dim or 0)
    return (
        f"inputs and output, 4 x B x H x S x D x {value / elements:.0f} B = 4 x {claim.batch} x "
        f"{claim.heads} x {claim.length} x {claim.dim} x {value / elements:.0f} = ",
        Amount(value, "B"),
    )


def _flop(subject: Subject) -> tuple[list[Span], tuple[str, ...]]:
    """FLOP by the shape, else as claimed."""
    if subject.works:
        return [Span.of(subject.works[0].flop)], SHAPE
    return ([Span.of(subject.claim.flop)], ("flop",)) if subject.claim.flop else ([], ())


def _bytes(subject: Subject) -> tuple[list[Span], tuple[str, ...]]:
    """Bytes by the shape, else as claimed."""
    if subject.works:
        return [Span.of(work.bytes) for work in subject.works], SHAPE
    return ([Span.of(subject.claim.bytes)], ("bytes",)) if subject.claim.bytes else ([], ())


def _rates(subject: Subject) -> Iterator[Check]:
    """Amount over time."""
    claim = subject.claim
    if claim.time is None:
        return
    time = Span.of(claim.time)
    for field, (amounts, used), unit in (
        ("flop_rate", _flop(subject), "FLOP"),
        ("byte_rate", _bytes(subject), "B"),
    ):
        spans = [amount / time for amount in amounts]

        def follows(span: Span, unit: str = unit) -> Words:
            amount = span.value * time.value
            return (Amount(amount, unit), " / ", Amount(time.value, "s"), " = ",
                    Amount(span.value, f"{unit}/s"))  # fmt: skip

        def cause(span: Span, field: str = field) -> Words:
            return _factor(getattr(claim, field).value / span.value)

        yield from _check(subject, "amount over time", field, spans, follows,
                          used=("time", *used), cause=cause)  # fmt: skip


def _factor(ratio: float) -> Words:
    for factor, why in (
        (2.0, "twice as much: the work counted double, or a causal half in full"),
        (0.5, "half as much: multiply-adds counted as one, or a causal mask not declared"),
        (1e3, "a factor of 1,000: a unit"),
        (1e-3, "a factor of 1,000: a unit"),
        (1e6, "a factor of a million: a unit"),
        (1e-6, "a factor of a million: a unit"),
        (1e9 / 2**30, "binary for decimal units"),
        (1e12 / 2**40, "binary for decimal units"),
    ):
        if _near(ratio, factor):
            return (why,)
    return ()


def _near(ratio: float, factor: float) -> bool:
    return abs(ratio / factor - 1) < _CLOSE


def _intensity(subject: Subject) -> Iterator[Check]:
    """FLOP over bytes: of the shape where there is one, and as claimed."""
    (flop, flop_used), (moved, moved_used) = _flop(subject), _bytes(subject)
    spans = [flop[0] / one for one in moved] if flop else []

    def follows(span: Span) -> Words:
        return (Amount(flop[0].value, "FLOP"), " / ", Amount(flop[0].value / span.value, "B"),
                " = ", Amount(span.value, "FLOP/B"))  # fmt: skip

    def cause(_: Span) -> Words:
        claim = subject.claim
        if not (claim.flop and claim.bytes and claim.intensity):
            return ()
        own = Span.of(claim.flop) / Span.of(claim.bytes)
        if not own.allows(claim.intensity, _SLACK):
            return ()
        return (f"it follows from the claimed {claim.flop.text} and {claim.bytes.text}, which "
                "are not those of the shape",)  # fmt: skip

    used = (*flop_used, *moved_used)
    yield from _check(subject, "intensity", "intensity", spans, follows, used=used, cause=cause)


def _shares(subject: Subject) -> Iterator[Check]:
    """A rate over the claimed peak, or over the datasheet's."""
    claim = subject.claim
    for kind in ("flop", "byte"):
        rate, peak = getattr(claim, f"{kind}_rate"), getattr(claim, f"{kind}_peak")
        rates, used = ([Span.of(rate)], (f"{kind}_rate",)) if rate else _implied(subject, kind)
        if peak:
            peaks, slack = [Span.of(peak)], _SLACK
            used = (*used, f"{kind}_peak")
        else:
            peaks, slack = [Span.of(value) for value in _peaks(subject, kind)], _PEAK_SLACK
            if claim.peak_of not in ("", "datasheet"):
                continue
        spans = [one / other for one in rates for other in peaks]
        first = rates[0] if rates else None

        def follows(span: Span, first: Span | None = first, kind: str = kind) -> Words:
            unit = _UNITS[f"{kind}_rate"]
            value = first.value if first else math.nan
            return (Amount(value, unit), " / ", Amount(value / span.value, unit), " = ",
                    Amount(span.value, "1"), *_lender(subject))  # fmt: skip

        yield from _check(subject, "share of peak", f"{kind}_share", spans, follows, used=used,
                          slack=slack)  # fmt: skip


def _implied(subject: Subject, kind: str) -> tuple[list[Span], tuple[str, ...]]:
    """The rates that follow from amount and time."""
    amounts, used = _flop(subject) if kind == "flop" else _bytes(subject)
    if subject.claim.time is None:
        return [], ()
    return [one / Span.of(subject.claim.time) for one in amounts], (*used, "time")


def _peaks(subject: Subject, kind: str) -> tuple[float, ...]:
    if kind == "byte":
        return subject.byte_peaks()
    return tuple(value for values in subject.rate_peaks().values() for value in values)


def _lender(subject: Subject) -> Words:
    return (f" ({subject.lender})",) if subject.lender else ()


def _peak(subject: Subject) -> Iterator[Check]:
    """A peak is the datasheet's; one at a held clock, or measured, is not above it."""
    claim = subject.claim
    for kind in ("flop", "byte"):
        claimed = getattr(claim, f"{kind}_peak")
        peaks = _peaks(subject, kind)
        if claimed is None or not peaks:
            continue
        field = f"{kind}_peak"
        if claim.peak_of in ("held", "measured"):
            limit = subject.rate_limit() if kind == "flop" else max(peaks)
            value = min(claimed.value, limit)
            spans = [Span(value, 0.0, limit)]
        else:
            spans = [Span.of(value) for value in peaks]

        def cause(_: Span, kind: str = kind, claimed: Figure = claimed) -> Words:
            return _why_peak(subject, kind, claimed)

        def follows(span: Span, kind: str = kind) -> Words:
            return _datasheet_words(subject, kind, span.value)

        def should_be(span: Span, kind: str = kind) -> Words:
            return _right_peak(subject, kind, span.value)

        yield from _check(subject, "peak", field, spans, follows, cause=cause,
                          should_be=should_be, slack=_PEAK_SLACK)  # fmt: skip


def _why_peak(subject: Subject, kind: str, claimed: Figure) -> Words:
    keys = tuple(subject.rate_peaks())
    of_bytes = kind == "byte"
    likely = likely_peak(claimed.value, subject.sheets, keys, of_bytes=of_bytes)
    if likely:
        return (likely,)
    for row in subject.rows:
        rate = getattr(row, f"{kind}_rate")
        if rate and Span.of(rate).allows(claimed, _SLACK):
            return (f"{row.where} gives it as a rate that was reached, not a peak",)
    return ()


def _datasheet_words(subject: Subject, kind: str, value: float) -> Words:
    """The peak and whose it is; from memory where nobody looked it up."""
    unit = _UNITS[f"{kind}_peak"]
    for sheet in subject.sheets:
        for key, peak in sheet.peaks.items():
            if peak.value == value and (key == "dram") == (kind == "byte"):
                what = "memory bandwidth" if key == "dram" else f"dense {_key_label(subject, key)}"
                doubt = "" if peak.verified else " (from memory)"
                return (f"{sheet.name}'s {what} is ", Amount(value, unit), doubt)
    return (f"at most {' or '.join(sheet.name for sheet in subject.sheets)}'s ",
            Amount(value, unit))  # fmt: skip


def _key_label(subject: Subject, key: str) -> str:
    wanted = subject.rate_peaks()
    if key not in wanted:
        key = next(iter(wanted), key)
    return key.replace("tensor_", "tensor ").replace("_", " ").upper().replace("TENSOR", "tensor")


def _right_peak(subject: Subject, kind: str, value: float) -> Words:
    """The right peak, and the share of it that the rate then is."""
    unit = _UNITS[f"{kind}_peak"]
    rate = getattr(subject.claim, f"{kind}_rate")
    if rate is None:
        return (Amount(value, unit),)
    return (Amount(value, unit), ", of which ", Amount(rate.value, unit), " is ",
            Amount(rate.value / value, "1"), *_lender(subject))  # fmt: skip


def _above_peak(subject: Subject) -> Iterator[Check]:
    """Nothing is faster than the hardware; where a rate is not claimed, the one that follows."""
    yield from _above_bytes(subject)
    yield from _above_flop(subject)
    yield from _above_hundred(subject)


def _above_bytes(subject: Subject) -> Iterator[Check]:
    claim, limit = subject.claim, max(subject.byte_peaks(), default=0.0)
    if claim.byte_rate is None or not limit or _from_cache(subject):
        return
    spans = [Span(min(claim.byte_rate.value, limit), 0.0, limit)]

    def follows(_: Span) -> Words:
        return (f"{_names(subject)}'s memory moves at most ", Amount(limit, "B/s"))

    yield from _check(
        subject, "above peak", "byte_rate", spans, follows, cause=lambda _: _cached(subject),
        should_be=lambda _: ("at most ", Amount(limit, "B/s"), " of DRAM traffic"),
        slack=_PEAK_SLACK,
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
        return (f"{_names(subject)} computes at most ", Amount(limit, "FLOP/s"),
                " in this precision, dense, at boost clock")  # fmt: skip

    if claim.flop_rate is not None:
        spans = [Span(min(claim.flop_rate.value, limit), 0.0, limit)]
        yield from _check(
            subject, "above peak", "flop_rate", spans, follows,
            cause=lambda _: ("work counted that was not done, another precision or a sparse rate",),
            should_be=lambda _: ("at most ", Amount(limit, "FLOP/s")), slack=_PEAK_SLACK,
        )  # fmt: skip
    elif claim.time is not None and (works := subject.works):
        least = works[0].flop / limit
        spans = [Span(max(claim.time.value, least), least, math.inf)]
        yield from _check(
            subject, "above peak", "time", spans, lambda _: (Amount(works[0].flop, "FLOP"), " / ",
            Amount(limit, "FLOP/s"), " = ", Amount(least, "s")), used=SHAPE,
            should_be=lambda _: ("at least ", Amount(least, "s")), slack=_PEAK_SLACK,
        )  # fmt: skip


def _names(subject: Subject) -> str:
    return " or ".join(sheet.name for sheet in subject.sheets)


def _above_hundred(subject: Subject) -> Iterator[Check]:
    claim = subject.claim
    for field in ("flop_share", "byte_share", "share"):
        if field == "byte_share" and _from_cache(subject):
            continue
        limit = _share_limit(subject, field)

        def cause(_: Span, field: str = field) -> Words:
            return _why_above(subject, field)

        def should_be(_: Span, field: str = field) -> Words:
            return _right_share(subject, field)

        yield from _check(
            subject, "above peak", field, [Span(1.0, 0.0, limit)],
            lambda _: ("no rate is above 100% of a physical peak",), cause=cause,
            should_be=should_be, doubt=claim.peak_of == "measured",
        )  # fmt: skip


def _share_limit(subject: Subject, field: str) -> float:
    """1, but for tensor peaks that the datasheet states below boost clock."""
    if field == "byte_share" or subject.claim.peak_of == "held":
        return 1 + _PEAK_SLACK
    keys = subject.rate_peaks()
    heads = [sheet.clock_headroom(key) for sheet in subject.sheets for key in keys]
    return max(heads, default=1.0) + _PEAK_SLACK


def _why_above(subject: Subject, field: str) -> Words:
    kind = field.partition("_")[0]
    claimed = getattr(subject.claim, f"{kind}_peak", None)
    peaks = _peaks(subject, kind) if kind in ("flop", "byte") else ()
    if claimed and peaks and not any(Span.of(peak).allows(claimed, _PEAK_SLACK) for peak in peaks):
        return ("the peak is wrong: ", claimed.text, " is not ", Amount(peaks[0], f"{_UNITS[field[:4] + '_peak']}"))
    return _cached(subject) if field == "byte_share" else ()


def _right_share(subject: Subject, field: str) -> Words:
    kind = field.partition("_")[0]
    rate = getattr(subject.claim, f"{kind}_rate", None)
    peaks = _peaks(subject, kind) if kind in ("flop", "byte") else ()
    if rate is None or len(peaks) != 1 or rate.value > peaks[0]:
        return ("at most 100%",)
    unit = _UNITS[f"{kind}_rate"]
    return (Amount(rate.value / peaks[0], "1"), ": ", Amount(rate.value, unit), " of ",
            Amount(peaks[0], unit), *_lender(subject))  # fmt: skip


def _bound(subject: Subject) -> Iterator[Check]:
    """Compute-bound lies right of the ridge, memory-bound left of it."""
    claim = subject.claim
    if not claim.bound or "bound" in subject.borrowed:
        return
    intensity, used = _best_intensity(subject)
    ridges = _ridges(subject)
    if not intensity or not ridges:
        return
    low, high = min(ridges), max(ridges)
    used = ("bound", *used)
    left = intensity[0].high * (1 + _PEAK_SLACK) < low
    right = intensity[-1].low * (1 - _PEAK_SLACK) > high
    wrong = left if claim.bound == "compute" else right
    if not wrong:
        yield Check("bound", used, None)
        return
    value, ridge = intensity[0].value, low if left else high
    side = "left" if left else "right"
    follows: Words = (Amount(value, "FLOP/B"), f" lies {side} of the ridge, ", *_ridge_words(subject, ridge))
    should_be = "memory-bound by the roofline" if left else "compute-bound by the roofline"
    yield _statement(
        subject, "bound", "bound", f"{claim.bound}-bound", follows, (should_be,),
        _why_bound(subject, value) if left else
        ("unless more is moved than the least of the shape",), doubt=right, used=used,
    )  # fmt: skip


def _best_intensity(subject: Subject) -> tuple[list[Span], tuple[str, ...]]:
    """By the shape (largest first, where the element size is open), else as claimed."""
    if subject.works:
        return sorted((Span.of(work.intensity) for work in subject.works),
                      key=lambda span: -span.value), SHAPE  # fmt: skip
    claimed = subject.claim.intensity
    return ([Span.of(claimed)], ("intensity",)) if claimed else ([], ())


def _ridges(subject: Subject) -> tuple[float, ...]:
    """FLOP/B where the roofs meet: of the claim's peaks at a held clock, else of the datasheets."""
    claim = subject.claim
    if claim.peak_of in ("held", "measured"):
        if claim.flop_peak and claim.byte_peak:
            return (claim.flop_peak.value / claim.byte_peak.value,)
        return ()
    keys = subject.rate_peaks()
    return tuple(
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
                return (Amount(sheet.peaks[key].value, "FLOP/s"), " / ", Amount(dram, "B/s"),
                        " = ", Amount(ridge, "FLOP/B"), f" ({_key_label(subject, key)})")  # fmt: skip
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


def _interval(subject: Subject) -> Iterator[Check]:
    """An estimate lies in its interval."""
    claim = subject.claim
    if not (claim.low and claim.high) or "low" in subject.borrowed:
        return
    ends = f"[{_shown(claim.low, 'low')}, {_shown(claim.high, 'high')}]"
    if claim.low.low > claim.high.high:
        yield _statement(subject, "interval", "low", ends, ("its lower end is above its upper",),
                         ("the ends the other way round",), used=("high",))  # fmt: skip
    elif claim.time is None:
        return
    elif claim.time.high < claim.low.low or claim.time.low > claim.high.high:
        side = "below" if claim.time.value < claim.low.value else "above"
        yield _statement(
            subject, "interval", "time", _shown(claim.time, "time"),
            (f"{_shown(claim.time, 'time')} lies {side} its own interval {ends}",),
            (f"a value within {ends}, or another interval",),
            ("estimate and interval come from different samples, or one is mistyped",),
            used=("low", "high"),
        )  # fmt: skip
    else:
        yield Check("interval", ("time", "low", "high"), None)


def _labelled_end(subject: Subject) -> Iterator[Check]:
    """What is called an end of an interval is that end of one in the study."""
    for field, end, other in (("upper_end", "high", "low"), ("lower_end", "low", "high")):
        claimed = getattr(subject.claim, field)
        rows = [row for row in subject.rows if row.low and row.high]
        if claimed is None or not rows:
            continue
        if any(_same(getattr(row, end), claimed) for row in rows):
            yield Check("interval end", (field,), None)
            continue
        row = next((row for row in rows if _same(getattr(row, other), claimed)), None)
        if row is None or row.low is None or row.high is None:
            continue
        name = "upper" if end == "high" else "lower"
        wrong = "lower" if end == "high" else "upper"
        yield _statement(
            subject, "interval end", field, f"{_shown(claimed, field)} as the {name} end",
            (f"{_shown(claimed, field)} is the {wrong} end of "
             f"[{_shown(row.low, 'low')}, {_shown(row.high, 'high')}] ({row.where})",),
            (_shown(getattr(row, end), end),), ("the ends were confused",),
        )  # fmt: skip


def _same(figure: Figure, claimed: Figure) -> bool:
    return Span.of(figure).allows(claimed, 0.0)


def _speedup(subject: Subject) -> Iterator[Check]:
    """Time before over time after."""
    claim = subject.claim
    if claim.baseline is None or claim.time is None:
        return
    before, after = Span.of(claim.baseline), Span.of(claim.time)

    def follows(span: Span) -> Words:
        return (Amount(before.value, "s"), " / ", Amount(after.value, "s"), " = ",
                Amount(span.value, "x"))  # fmt: skip

    yield from _check(subject, "speed-up", "speedup", [before / after], follows,
                      used=("baseline", "time"))  # fmt: skip


def _pair(subject: Subject) -> tuple[Datasheet, Datasheet] | None:
    """The two products that a claim compares, each by what its name may mean first."""
    names = dict.fromkeys(
        [side.gpu for side in subject.claim.sides] or subject.claim.gpus
    )
    sheets = [found for name in names if (found := sheets_of(Claim(gpus=(name,))))]
    return (sheets[0][0], sheets[1][0]) if len(sheets) > 1 else None


def _ratio_of_peaks(subject: Subject, pair: tuple[Datasheet, Datasheet]) -> list[Span]:
    """The ratios of the dense peaks of the claim's precision, the larger over the smaller."""
    keys = replace(subject, sheets=pair).rate_peaks()
    one, other = (sheet.peaks for sheet in pair)
    both = [(one[key].value, other[key].value) for key in keys if key in one and key in other]
    return [Span.of(max(rates) / min(rates)) for rates in both]


def _ratios(subject: Subject) -> Iterator[Check]:
    """Ratios of peaks are of one precision; an advantage is what time does not explain by them."""
    claim, pair = subject.claim, _pair(subject)
    if pair is None or not (claim.peak_ratio or claim.advantage):
        return
    ratios = _ratio_of_peaks(subject, pair)

    def follows(span: Span) -> Words:
        rates = {key: values for key, values in replace(subject, sheets=pair).rate_peaks().items()}
        key = next(
            (key for key in rates if _near(_of(pair, key), span.value)), next(iter(rates), "")
        )
        one, other = (sheet.peaks[key].value for sheet in pair)
        return (f"dense {_key_label(replace(subject, sheets=pair), key)} peaks: ",
                Amount(max(one, other), "FLOP/s"), " / ", Amount(min(one, other), "FLOP/s"),
                " = ", Amount(span.value, "x"))  # fmt: skip

    def cause(_: Span) -> Words:
        ratio = claim.peak_ratio
        likely = likely_ratio(ratio.value, pair, tuple(subject.rate_peaks())) if ratio else ""
        return (likely,) if likely else ()

    yield from _check(subject, "ratio of peaks", "peak_ratio", ratios, follows, cause=cause,
                      used=("sides",), slack=_PEAK_SLACK)  # fmt: skip
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
            if own.allows(claim.advantage, _SLACK):
                return (f"it follows from the claimed ratio of {claim.peak_ratio.text}",)
        return ()

    yield from _check(subject, "advantage", "advantage", [ratio / times for ratio in ratios],
                      follows, cause=cause, used=("sides",), slack=_PEAK_SLACK)  # fmt: skip


def _memory(subject: Subject) -> Iterator[Check]:
    """The kind of memory is the product's."""
    claimed = subject.claim.memory.upper()
    known = {sheet.memory for sheet in subject.sheets if sheet.memory}
    if not claimed or not known:
        return
    if any(kind.upper().startswith(claimed) for kind in known):
        yield Check("memory", ("memory",), None)
        return
    kinds = " or ".join(sorted(known))
    yield _statement(subject, "memory", "memory", subject.claim.memory,
                     (f"{_names(subject)} has {kinds}",), (kinds,))  # fmt: skip


def _grid(subject: Subject) -> Iterator[Check]:
    """A CUDA grid has three dimensions."""
    claimed = subject.claim.grid_dimensions
    if claimed is None:
        return
    if claimed <= _GRID_DIMENSIONS:
        yield Check("grid", ("grid_dimensions",), None)
        return
    yield _statement(
        subject, "grid", "grid_dimensions", f"a grid of {claimed} dimensions",
        ("a CUDA grid has three dimensions at most: x, y, z",),
        ("three dimensions, two of the four folded into one" if claimed == 4 else
         "three dimensions, the others folded into them",),
    )  # fmt: skip


def _apart(subject: Subject) -> Iterator[Check]:
    """Intervals tell alternatives apart, not different work; and whether they overlap is seen."""
    rows = [row for row in subject.rows if row.low and row.high]
    if subject.claim.apart is None or len(rows) < 2:
        return
    overlapping = [(one, other) for one, other in combinations(rows, 2) if _overlap(one, other)]
    different = len({tuple(getattr(row, name) for name in SHAPE) for row in rows}) > 1
    if not overlapping and not different:
        yield Check("overlap", ("apart",), None)
        return
    follows: tuple[str, ...] = ()
    if overlapping:
        one, other = overlapping[0]
        more = f", and {len(overlapping) - 1} more" if len(overlapping) > 1 else ""
        follows += (f"{_ends(one)} of {one.where} and {_ends(other)} of {other.where} overlap{more}",)
    if different:
        follows += (f"{'; ' if follows else ''}the intervals are of different shapes",)
    yield _statement(
        subject, "overlap", "apart", "intervals that do not overlap", follows,
        ("intervals compared between alternatives for the same shape",),
        ("of different work, overlap says nothing: neither that results differ nor that they hold",)
        if different else (),
    )  # fmt: skip


def _overlap(one: Claim, other: Claim) -> bool:
    if not (one.low and one.high and other.low and other.high):
        return False
    return max(one.low.value, other.low.value) < min(one.high.value, other.high.value)


def _ends(row: Claim) -> str:
    return f"[{row.low.text if row.low else ''}, {row.high.text if row.high else ''}]"


_RULES: tuple[_Rule, ...] = (
    _flop_of_shape, _bytes_of_shape, _intensity, _rates, _shares, _peak, _above_peak, _bound,
    _interval, _labelled_end, _speedup, _ratios, _memory, _grid, _apart,
)  # fmt: skip


def _ticks(rows: Sequence[Claim]) -> dict[str, Check]:
    """By study, the rows whose interval is one tick of the timer wide."""
    found: dict[str, Check] = {}
    for study in dict.fromkeys(row.study for row in rows):
        own = [row for row in rows if row.study == study and row.low and row.high and row.time]
        tick = next((tick for tick in _TICKS if _on_grid(own, tick)), None)
        narrow = [row for row in own if tick and _one_tick(row, tick)]
        if tick and narrow:
            found[narrow[0].where] = _narrow(narrow, tick)
    return found


def _on_grid(rows: Sequence[Claim], tick: float) -> bool:
    """Whether nearly all times lie on the grid of a timer (half ticks too: a median of two), more
    of them than chance would have."""
    figures = [one for row in rows for one in (row.time, row.low, row.high) if one]
    times = {(figure.value, figure.half) for figure in figures}
    step = tick / 2
    on = sum(abs(value - round(value / step) * step) <= half for value, half in times)
    by_chance = max((min(1.0, 2 * half / step) for _, half in times), default=1.0)
    return on >= _NEARLY_ALL * len(times) and _tail(len(times), on, by_chance) < _CHANCE


def _tail(n: int, least: int, share: float) -> float:
    """The probability of `least` or more of n (binomial)."""
    return sum(
        math.comb(n, hit) * share**hit * (1 - share) ** (n - hit) for hit in range(least, n + 1)
    )


def _one_tick(row: Claim, tick: float) -> bool:
    if not (row.low and row.high):
        return False
    width, hidden = row.high.value - row.low.value, row.high.half + row.low.half
    return abs(width - tick) <= hidden * (1 + _SLACK)


def _narrow(rows: Sequence[Claim], tick: float) -> Check:
    first = rows[0]
    others = ", ".join(row.where for row in rows[1:])
    subject = Subject(first, ())
    return _statement(
        subject, "timer tick", "low", f"an interval {_ends(first)}",
        ("nearly all times of the study lie on a grid of ", Amount(tick, "s"), ", and the interval is "
         "one step of it wide", f" (so in {others})" if others else ""),
        ("the interval widened by a tick, or calls grouped in one pair of events",),
        ("the timer ticks: what varies below a tick is not in these samples",),
        doubt=True, used=("high",),
    )  # fmt: skip
