"""What a claim is checked against: its work, its GPU's peaks, the rows of its study."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, structs

from profkit.audit.check import Check, Contradiction, Rule, Span, amount
from profkit.audit.claim import SHAPE, UNITS, Claim
from profkit.audit.printed_numbers import Figure
from profkit.core.work import Work
from profkit.hardware.gpus import Datasheet, datasheets_named

ELEMENT_BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
SLACK = 1e-3  # chosen: beyond what rounding of the printed digits leaves
PEAK_SLACK = 0.02  # chosen: datasheet figures of one product differ by as much between documents
_CLOSE = 0.02  # chosen: how near a ratio has to be to an exact one to name its cause
_WORK = ("dtype", "kv_heads", "causal", "backward", *SHAPE)
_MEASURED = ("time", "flop", "bytes", "intensity", "flop_rate", "byte_rate")
# A claimed clock this near the datasheet's own is that: both are rounded.
_SAME_CLOCK = 0.98


class Subject(Struct, frozen=True):
    """A claim with what it is checked against.

    `sheets` are the products that its GPU's name may mean, `rows` the numbers of its study.
    `borrowed` are fields that come from one of these rows, `lender`, of which the claim speaks.
    """

    claim: Claim
    sheets: tuple[Datasheet, ...]
    rows: Sequence[Claim] = ()
    borrowed: frozenset[str] = frozenset()
    lender: str = ""

    def check(
        self,
        rule: Rule,
        field: str,
        expected: Sequence[Span],
        *,
        cause: Mapping[float, str] | str = "",
        should_be: Callable[[Span], str] | str = "{}",
        slack: float = SLACK,
        doubt: bool = False,
    ) -> Iterator[Check]:
        """A claimed figure against what it should be, any of `expected`; none if it is borrowed.

        `cause` may depend on the ratio of the claimed figure to the right one: its keys are exact
        ratios, then 0 for any below 1 and infinity for any above.
        """
        claimed = self.claim[field]
        if field in self.borrowed or claimed is None or not expected:
            return
        used = (field, *(name for span in expected for name in span.used))
        if any(span.allows(claimed, slack) for span in expected):
            yield Check(rule, used)
            return
        right = min(expected, key=lambda span: abs(math.log(span.value / claimed.value)))
        why = cause if isinstance(cause, str) else _cause(cause, claimed.value / right.value)
        correct = should_be.format(right) if isinstance(should_be, str) else should_be(right)
        contradiction = Contradiction(
            self.claim.where, self.claim.text, rule, field, figure_words(claimed, field),
            right.calculation, why or None, correct, claimed.value, right.value,
            UNITS[field] or None,
        )  # fmt: skip
        yield Check(rule, used, contradiction, doubt)

    def statement(
        self,
        rule: Rule,
        field: str,
        claimed: str,
        follows: str,
        should_be: str,
        cause: str = "",
        *,
        used: tuple[str, ...] = (),
        wrong: bool = True,
        doubt: bool = False,
    ) -> Check:
        """What is claimed without being a figure, and is contradicted where it is `wrong`."""
        contradiction = Contradiction(
            self.claim.where, self.claim.text, rule, field, claimed, follows, cause or None,
            should_be,
        )  # fmt: skip
        return Check(rule, (field, *used), contradiction if wrong else None, doubt)

    def spans(self, quantity: str) -> list[Span]:
        """The claimed figure; none where it is not claimed."""
        figure = self.claim[quantity]
        return [Span.around(figure, UNITS[quantity], (quantity,))] if figure else []

    def text(self, quantity: str) -> str:
        """The claimed figure as it was written."""
        figure = self.claim[quantity]
        return figure.text if figure else ""

    @property
    def lender_words(self) -> str:
        return f" ({self.lender})" if self.lender else ""

    @property
    def gpu_names(self) -> str:
        return " or ".join(sheet.name for sheet in self.sheets)

    @property
    def works(self) -> tuple[Work, ...]:
        """The work of the shape, one for each element size that the claim leaves possible."""
        claim = self.claim
        if None in claim.shape or claim.operation not in ("", "attention"):
            return ()
        known = ELEMENT_BYTES.get(claim.dtype)
        sizes = (known,) if known else sorted(set(ELEMENT_BYTES.values()))
        return tuple(_attention(claim, size) for size in sizes)

    @property
    def multiples(self) -> tuple[int, ...]:
        """How many GPUs a figure may be of: one, or all that the claim tells of."""
        return (1, self.claim.devices) if self.claim.devices else (1,)

    def peaks(self, kind: str) -> tuple[float, ...]:
        """FLOP/s ("flop") or B/s of DRAM ("byte") of the datasheets that the claim may mean; none
        for another kind."""
        if kind == "byte":
            peaks = {sheet.peaks["dram"].value for sheet in self.sheets}
            return tuple(sorted(peak * count for peak in peaks for count in self.multiples))
        rates = self.rate_peaks() if kind == "flop" else {}
        return tuple(value for values in rates.values() for value in values)

    def rate_peaks(self) -> dict[str, tuple[float, ...]]:
        """FLOP/s that the peaks which the claim's precision may mean can have.

        Those of the datasheets; at a claimed SM clock those that units do at it, where it is not
        the clock of the datasheet's figure; of one GPU, or of those that the claim tells of.
        """
        rates: dict[str, set[float]] = {}
        for sheet in self.sheets:
            for key in (key for key in sheet.peaks if _is_meant(key, self.claim)):
                peaks = _peaks(sheet, key, self.claim)
                rates.setdefault(key, set()).update(
                    peak * count for peak in peaks for count in self.multiples
                )
        return {key: tuple(sorted(values)) for key, values in rates.items()}

    def rate_limit(self) -> float:
        """FLOP/s that can't be passed: peaks at the boost clock, or at the claimed one if that is
        lower, accumulating either way; 0 where unknown."""
        return self._highest_rate()[0]

    def rate_limit_words(self) -> str:
        """The peaks behind `rate_limit`, with {} for it: of the datasheet, and at which clock."""
        limit, datasheet, kind = self._highest_rate()
        names = f"{max(self.multiples)} x {self.gpu_names}"
        names = self.gpu_names if max(self.multiples) == 1 else names
        if limit <= datasheet * (1 + SLACK) and self.claim["clock"] is None:
            return f"the {kind} peak of {names} is {{}} (datasheet)"
        clock = f"at {self.text('clock')}" if self.claim["clock"] else "at the max SM clock"
        shown = amount(datasheet, "FLOP/s")
        return f"the {kind} peak of {names} is {shown} (datasheet), {{}} {clock}"

    def _highest_rate(self) -> tuple[float, float, str]:
        """The rate limit, the datasheet's peak behind it, and which peak that is."""
        keys, count = self.rate_peaks(), max(self.multiples)
        rates = [
            (
                count * peak.value * self._headroom(sheet, key), count * peak.value,
                peak_label(key) + " (FP16 accumulation)" * (table is sheet.f16_accumulate),
            )
            for sheet in self.sheets
            for table in (sheet.peaks, sheet.f16_accumulate)
            for key, peak in table.items()
            if key in keys
        ]  # fmt: skip
        return max(rates, default=(0.0, 0.0, ""))

    def _headroom(self, sheet: Datasheet, key: str) -> float:
        clock, own = self.claim["clock"], sheet.clock_of(key)
        if clock is None or key in sheet.limited:
            return sheet.highest_headroom(key)
        return max(clock.value, own if clock.value > sheet.boost else 0.0) / own


def key_label(key: str) -> str:
    """How people write a peak of the datasheets: `tensor FP16`."""
    return key.replace("_", " ").upper().replace("TENSOR", "tensor")


def peak_label(key: str) -> str:
    """A compute peak of a datasheet: `dense tensor FP16`, `FP32`."""
    return "dense " * key.startswith("tensor_") + key_label(key)


def _cause(causes: Mapping[float, str], ratio: float) -> str:
    near = (why for factor, why in causes.items() if abs(ratio - factor) < _CLOSE * factor)
    return next(near, causes.get(0.0 if ratio < 1 else math.inf, ""))


def figure_words(figure: Figure, field: str) -> str:
    """A figure as it was written, else in the unit of its field."""
    return figure.text or f"{figure.value:.6g} {UNITS[field].strip('1')}".strip()


def _peaks(sheet: Datasheet, key: str, claim: Claim) -> list[float]:
    """FLOP/s of one GPU at the claimed clock, else of the datasheet, with the sums as claimed."""
    half = claim.accumulate == "fp16" and key in sheet.f16_accumulate
    value = (sheet.f16_accumulate if half else sheet.peaks)[key].value
    clock = claim["clock"]
    if clock is None:
        return [value] if half else [value, *sheet.also.get(key, ())]
    at_clock = sheet.rate_at(key, clock.value) * value / sheet.peaks[key].value
    return [at_clock, value] if sheet.clock_of(key) * _SAME_CLOCK <= clock.value else [at_clock]


def _attention(claim: Claim, element_bytes: int) -> Work:
    """Of K and V there may be fewer heads than of Q: half of the traffic each."""
    batch, heads, length, dim = (size or 0 for size in claim.shape)
    work = Work.attention(
        batch, heads, length, dim,
        element_bytes=element_bytes, causal=bool(claim.causal), backward=bool(claim.backward),
    )  # fmt: skip
    shared = claim.kv_heads or heads
    return structs.replace(work, bytes=work.bytes * (heads + shared) / (2 * heads))


def _is_meant(key: str, claim: Claim) -> bool:
    """Whether a claim's precision and path may mean a compute peak of a datasheet."""
    if not claim.dtype:
        return key != "dram"
    if key == ("tensor_tf32" if claim.dtype == "fp32" else f"tensor_{claim.dtype}"):
        return claim.path in ("", "tensor")
    return claim.path != "tensor" and key == claim.dtype and key in ("fp32", "fp64")


def sheets_of(names: Sequence[str]) -> tuple[Datasheet, ...]:
    """The products that the first of these names which the table knows may mean."""
    return next((sheets for name in names if name and (sheets := datasheets_named(name))), ())


def subjects(claim: Claim, rows: Sequence[Claim], gpu: str = "") -> Iterator[Subject]:
    """A claim as it is; a sentence once for each row of its study that it may speak of.

    Its figures may be of all products that it names, but of several GPUs of unknown number none.
    """
    named = [name for name in claim.gpus if name and name in claim.text]
    sheets = tuple(dict.fromkeys(sheet for name in named for sheet in datasheets_named(name)))
    if claim.text and claim.devices == 0:
        sheets = ()
    elif not sheets:
        sheets = sheets_of((*claim.gpus, gpu))
    related = [row for row in rows if claim.text and _speaks_of(claim, row)]
    for row in related:
        names = _WORK if claim["time"] else (*_WORK, *_MEASURED)
        open_names = [name for name in names if claim.value(name) in (None, "")]
        completed = claim.over(row.only(*open_names))
        yield Subject(completed, sheets, rows, frozenset(open_names), row.where)
    if not related:
        yield Subject(claim, sheets, rows)


def _speaks_of(claim: Claim, row: Claim) -> bool:
    """Whether a row has a whole shape, and the sizes that a sentence names."""
    named = [(size, own) for size, own in zip(claim.shape, row.shape, strict=True) if size]
    return None not in row.shape and bool(named) and all(size == own for size, own in named)
