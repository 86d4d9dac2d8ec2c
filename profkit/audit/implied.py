"""What follows from a claim: its work, its GPU's peaks, each with what rounding leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from profkit.audit.claims import SHAPE, Claim
from profkit.audit.printed_numbers import Figure
from profkit.capture.work import Work
from profkit.report.gpus import Datasheet, datasheets_named

ELEMENT_BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
_WORK = ("dtype", "kv_heads", "causal", "backward", *SHAPE)
_MEASURED = ("time", "flop", "bytes", "intensity", "flop_rate", "byte_rate")


@dataclass(frozen=True)
class Span:
    """A quantity that follows from claimed ones, and the range that their rounding leaves."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float | Figure) -> Span:
        if isinstance(value, Figure):
            return cls(value.value, value.low, value.high)
        return cls(value, value, value)

    def __mul__(self, other: Span) -> Span:
        return Span(self.value * other.value, self.low * other.low, self.high * other.high)

    def __truediv__(self, other: Span) -> Span:
        return Span(self.value / other.value, self.low / other.high, self.high / other.low)

    def allows(self, claimed: Figure, slack: float) -> bool:
        """Whether a claimed quantity may be this one, `slack` (a share) aside."""
        return claimed.low <= self.high * (1 + slack) and claimed.high >= self.low * (1 - slack)


@dataclass(frozen=True)
class Subject:
    """A claim with what it can be held against.

    `sheets` are the products that its GPU's name may mean, `rows` the numbers of its study.
    `borrowed` are fields that come from one of these rows, `lender`, of which the claim speaks.
    """

    claim: Claim
    sheets: tuple[Datasheet, ...]
    rows: Sequence[Claim] = ()
    borrowed: frozenset[str] = frozenset()
    lender: str = ""

    def claims(self, *names: str) -> bool:
        """Whether the claim itself, or the row that it speaks of, has all of these fields."""
        return all(getattr(self.claim, name) not in (None, "", ()) for name in names)

    @property
    def works(self) -> tuple[Work, ...]:
        """The work of the shape, one for each element size that the claim leaves possible."""
        claim = self.claim
        if not self.claims(*SHAPE) or claim.operation not in ("", "attention"):
            return ()
        known = ELEMENT_BYTES.get(claim.dtype)
        sizes = (known,) if known else tuple(sorted(set(ELEMENT_BYTES.values())))
        return tuple(_attention(claim, size) for size in sizes)

    @property
    def multiples(self) -> tuple[int, ...]:
        """How many GPUs a figure may be of: one, or all that the claim tells of."""
        return (1, self.claim.devices) if self.claim.devices else (1,)

    def rate_peaks(self) -> dict[str, tuple[float, ...]]:
        """FLOP/s that the peaks which the claim's precision may mean can have.

        Those of the datasheets; at a claimed SM clock those that units do at it, where it is not
        the clock of the datasheet's figure; of one GPU, or of those that the claim tells of.
        """
        keys = _peak_keys(self.claim)
        found: dict[str, set[float]] = {}
        for sheet in self.sheets:
            for key in sheet.peaks:
                if key != "dram" and (keys is None or key in keys):
                    peaks = _peaks_of(sheet, key, self.claim)
                    values = {peak * count for peak in peaks for count in self.multiples}
                    found.setdefault(key, set()).update(values)
        return {key: tuple(sorted(values)) for key, values in found.items()}

    def byte_peaks(self) -> tuple[float, ...]:
        """B/s of the datasheets' DRAM, of one GPU or of those that the claim tells of."""
        peaks = {sheet.peaks["dram"].value for sheet in self.sheets}
        return tuple(sorted(peak * count for peak in peaks for count in self.multiples))

    def rate_limit(self) -> float:
        """FLOP/s that can't be passed: peaks at the boost clock, or at the claimed one if that is
        lower, accumulating either way; 0 where unknown."""
        keys = self.rate_peaks()
        rates = [
            peak.value * self._headroom(sheet, key)
            for sheet in self.sheets
            for table in (sheet.peaks, sheet.f16_accumulate)
            for key, peak in table.items()
            if key in keys
        ]
        return max(rates, default=0.0) * max(self.multiples)

    def _headroom(self, sheet: Datasheet, key: str) -> float:
        clock = self.claim.clock
        if clock is None or key in sheet.limited:
            return sheet.highest_headroom(key)
        return max(clock.value, sheet.clock_of(key) if clock.value > sheet.boost else 0.0) / (
            sheet.clock_of(key)
        )


# A claimed clock this near the datasheet's own is that: both are rounded.
_SAME_CLOCK = 0.98


def _peaks_of(sheet: Datasheet, key: str, claim: Claim) -> list[float]:
    """FLOP/s of one GPU at the claimed clock, else of the datasheet, with the sums as claimed."""
    table = sheet.peaks
    if claim.accumulate == "fp16" and key in sheet.f16_accumulate:
        table = sheet.f16_accumulate
    value = table[key].value
    if claim.clock is None:
        return [value] if table is sheet.f16_accumulate else [value, *sheet.also.get(key, ())]
    at_clock = sheet.rate_at(key, claim.clock.value) * value / sheet.peaks[key].value
    near_own = sheet.clock_of(key) * _SAME_CLOCK <= claim.clock.value
    return [at_clock, value] if near_own else [at_clock]


def _attention(claim: Claim, element_bytes: int) -> Work:
    """Of K and V there may be fewer heads than of Q: half of the traffic each."""

    def work(heads: int) -> Work:
        return Work.attention(
            claim.batch or 0, heads, claim.length or 0, claim.dim or 0,
            element_bytes=element_bytes, causal=bool(claim.causal), backward=bool(claim.backward),
        )  # fmt: skip

    full = work(claim.heads or 0)
    fewer = work(claim.kv_heads or claim.heads or 0)
    return structs.replace(full, bytes=(full.bytes + fewer.bytes) / 2)


def _peak_keys(claim: Claim) -> tuple[str, ...] | None:
    """The peaks that a precision and path may mean; None for all."""
    if not claim.dtype:
        return None
    tensor = ("tensor_tf32" if claim.dtype == "fp32" else f"tensor_{claim.dtype}",)
    vector = (claim.dtype,) if claim.dtype in ("fp32", "fp64") else ()
    if claim.path:
        return tensor if claim.path == "tensor" else vector
    return vector + tensor


def sheets_of(claim: Claim, gpu: str = "") -> tuple[Datasheet, ...]:
    """The products that a claim's GPU may be: the first name that the table knows, else `gpu`."""
    for name in (*claim.gpus, gpu):
        if name and (found := datasheets_named(name)):
            return found
    return ()


def _sheets_meant(claim: Claim, gpu: str) -> tuple[Datasheet, ...]:
    """The products that figures may be of: all that a sentence names; none for several GPUs of
    unknown number, together."""
    if claim.text and claim.devices == 0:
        return ()
    named = [name for name in claim.gpus if name and name in claim.text]
    told = [sheet for name in named for sheet in datasheets_named(name)]
    return tuple(dict.fromkeys(told)) if told else sheets_of(claim, gpu)


def subjects(claim: Claim, rows: Sequence[Claim], gpu: str = "") -> Iterator[Subject]:
    """A claim as it is; a sentence once for each row of its study that it may speak of."""
    sheets = _sheets_meant(claim, gpu)
    spoken_of = [row for row in rows if claim.text and _speaks_of(claim, row)]
    for row in spoken_of:
        names = _WORK if claim.time else (*_WORK, *_MEASURED)
        taken = {name: getattr(row, name) for name in names if getattr(claim, name) in (None, "")}
        yield Subject(replace(claim, **taken), sheets, rows, frozenset(taken), row.where)
    if not spoken_of:
        yield Subject(claim, sheets, rows)


def _speaks_of(claim: Claim, row: Claim) -> bool:
    named = [name for name in SHAPE if getattr(claim, name) is not None]
    whole = all(getattr(row, name) is not None for name in SHAPE)
    return (
        whole and bool(named) and all(getattr(claim, name) == getattr(row, name) for name in named)
    )
