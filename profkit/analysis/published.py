"""A baseline's cells beside published figures of the same shapes, by rates and shares of peaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from profkit.analysis.baseline import Row
from profkit.analysis.gpus import datasheet_named
from profkit.analysis.latency import compute_peak
from profkit.capture.work import Work
from profkit.ingest.cell import Status

_ELEMENT_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
_SHAPE = ("batch", "heads", "kv_heads", "length", "dim", "dtype", "causal", "backward")
_SAME_DIGITS = 1e-3
_ONE_STEP = 1.5


class Fault(StrEnum):
    """Why samples don't support an interval that was published of them."""

    refused = "the samples support none"
    narrower = "narrower than the samples support"
    one_tick = "one step of the timer wide"


@dataclass(frozen=True)
class Figure:
    """A published figure: a time with its interval (s), or a rate (FLOP/s); what lacks is None.

    `share` is that of the dense datasheet peak of `gpu`.
    """

    series: str
    source: str
    gpu: str
    backend: str
    shape: Mapping[str, Any] = field(hash=False)
    seconds: float | None
    low: float | None
    high: float | None
    flop_rate: float
    share: float | None


@dataclass(frozen=True)
class Against:
    """A cell beside a published figure of its shape.

    `rate_ratio` is the cell's FLOP rate over the published one, `share_ratio` the same of the
    shares of each GPU's dense datasheet peak (None where one is unknown). `same_gpu`: the product
    is the same; `same_backend`: so is what ran. `time_ratio` is published over measured time, for
    the same product alone. `faults` are of the published interval, for cells that were made of the
    published samples.
    """

    row: Row
    figure: Figure
    rate_ratio: float
    share_ratio: float | None
    same_gpu: bool
    same_backend: bool
    time_ratio: float | None
    same_samples: bool
    faults: tuple[Fault, ...]


def against_published(rows: Sequence[Row], gpu: str | None) -> tuple[Against, ...]:
    """Each figure whose shape the baseline has, beside the cell of its backend or the fastest.

    `gpu` is the name of the product's datasheet.
    """
    found = []
    for figure in published():
        row = _counterpart(rows, figure)
        if row is not None:
            found.append(_against(row, figure, gpu))
    return tuple(found)


def _counterpart(rows: Sequence[Row], figure: Figure) -> Row | None:
    same = [
        row
        for row in rows
        if row.flop_rate and all(getattr(row, name) == figure.shape[name] for name in _SHAPE)
    ]
    own = [row for row in same if row.backend == figure.backend]
    return max(own or same, key=lambda row: row.flop_rate or 0.0, default=None)


def _against(row: Row, figure: Figure, gpu: str | None) -> Against:
    same_gpu = gpu is not None and figure.gpu == gpu
    rate, seconds = row.flop_rate or 0.0, row.seconds or 0.0
    share = row.share_of_datasheet
    same_samples = (
        same_gpu
        and row.status is Status.imported
        and figure.seconds is not None
        and abs(seconds / figure.seconds - 1) < _SAME_DIGITS
    )
    return Against(
        row=row,
        figure=figure,
        rate_ratio=rate / figure.flop_rate,
        share_ratio=share / figure.share if share and figure.share else None,
        same_gpu=same_gpu,
        same_backend=row.backend == figure.backend,
        time_ratio=figure.seconds / seconds if same_gpu and figure.seconds else None,
        same_samples=same_samples,
        faults=tuple(_faults(row, figure)) if same_samples else (),
    )


def _faults(row: Row, figure: Figure) -> Iterator[Fault]:
    """What the samples say against an interval that was published of them."""
    if figure.low is None or figure.high is None:
        return
    width = figure.high - figure.low
    if row.refused:
        yield Fault.refused
    elif row.low is not None and row.high is not None and width < row.high - row.low:
        yield Fault.narrower
    if row.tick and width <= _ONE_STEP * row.tick:
        yield Fault.one_tick


@cache
def published() -> tuple[Figure, ...]:
    """The figures that come with profkit, in their order."""
    text = files("profkit.analysis").joinpath("published.yaml").read_text(encoding="utf-8")
    document = yaml.safe_load(text)
    return tuple(
        _figure(series, dict(zip(series["columns"], values, strict=True)))
        for series in document["series"]
        for values in series["cells"]
    )


def _figure(series: Mapping[str, Any], values: Mapping[str, Any]) -> Figure:
    shape = {
        "kv_heads": values["heads"],
        "dtype": series["dtype"],
        "causal": series.get("causal", False),
        "backward": series.get("backward", False),
    } | {name: value for name, value in values.items() if name in _SHAPE}
    seconds, low, high = (
        values[name] / 1e3 if name in values else None
        for name in ("median_ms", "low_ms", "high_ms")
    )
    rate = values["tflops"] * 1e12 if "tflops" in values else _flop(shape) / (seconds or 1.0)
    sheet = datasheet_named(series["gpu"])
    key = compute_peak(series["dtype"], sheet.peaks) if sheet else ""
    return Figure(
        series=series["name"],
        source=series["source"],
        gpu=sheet.name if sheet else series["gpu"],
        backend=series["backend"],
        shape=shape,
        seconds=seconds,
        low=low,
        high=high,
        flop_rate=rate,
        share=rate / sheet.peaks[key].value if sheet and key else None,
    )


def _flop(shape: Mapping[str, Any]) -> float:
    sizes = (shape[name] for name in ("batch", "heads", "length", "dim"))
    return Work.attention(
        *sizes,
        element_bytes=_ELEMENT_BYTES[shape["dtype"]],
        causal=shape["causal"],
        backward=shape["backward"],
        kv_heads=shape["kv_heads"],
    ).flop
