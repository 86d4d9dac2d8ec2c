"""What a wrong peak probably is: another precision's, a sparse one, another product's."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.report.gpus import Datasheet, all_datasheets
from profkit.report.resources import PRECISIONS

_CLOSE = 0.02
_SPARSE = 2.0
# Products whose figure a wrong peak is: more names than a reader goes through help nobody.
_FEW = 6


def likely_peak(
    value: float, sheets: tuple[Datasheet, ...], keys: tuple[str, ...], *, of_bytes: bool
) -> str:
    """What a claimed peak (FLOP/s or B/s) is instead of what `keys` name; "" where nothing fits.

    A bandwidth is also held against the digits of the compute peaks: 242 GB/s, 242 TFLOP/s.
    """
    for sheet in sheets:
        found = _of_product(value, sheet, keys, of_bytes=of_bytes)
        if found:
            return found
    wanted = ("dram",) if of_bytes else keys
    others = [
        sheet.name
        for sheet in all_datasheets()
        if any(_close(value, peak.value) for key, peak in sheet.peaks.items() if key in wanted)
    ]
    return f"that is the figure of {' and '.join(others)}" if 0 < len(others) <= _FEW else ""


def _of_product(value: float, sheet: Datasheet, keys: tuple[str, ...], *, of_bytes: bool) -> str:
    digits = value * 1e3 if of_bytes else value
    for what, rate in _figures(sheet, keys):
        if _close(digits, rate):
            shown = f"{rate / 1e12:.4g} TFLOP/s is {sheet.name}'s {what} peak"
            return f"{shown}, which is no bandwidth" if of_bytes else shown
    if not of_bytes and _close(value / 1e3, sheet.peaks["dram"].value):
        return f"{value / 1e12:.4g} are {sheet.name}'s GB/s, which is no compute peak"
    return ""


def _figures(sheet: Datasheet, keys: tuple[str, ...]) -> Iterator[tuple[str, float]]:
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
    found: list[tuple[bool, float, str]] = []
    for one, other in (pair, pair[::-1]):
        for what, rate in _figures(one, keys):
            for what_else, other_rate in _figures(other, keys):
                error = abs(rate / other_rate / value - 1)
                if what != what_else and error < _CLOSE:
                    wanted = any(PRECISIONS.get(key, key) in what for key in keys)
                    plain = "sparse" not in what + what_else
                    told = (
                        f"{one.name}'s {what} peak ({rate / 1e12:.4g} TFLOP/s) divided by "
                        f"{other.name}'s {what_else} peak ({other_rate / 1e12:.4g} TFLOP/s)"
                    )
                    found.append((not (wanted and plain), error, told))
    return min(found)[2] if found else ""


def _close(value: float, other: float) -> bool:
    return abs(value - other) <= _CLOSE * other
