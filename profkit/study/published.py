"""A baseline's cells beside published figures of the same shapes, by rates and shares of peaks.

What else was published with the figures is held against them, and against datasheets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import as_file, files
from typing import Any

from profkit.audit.audit import Outcome, examine
from profkit.audit.claims import read_claims
from profkit.core.fingerprint import Device
from profkit.core.typed_file import known
from profkit.core.yaml_files import shipped_yaml
from profkit.report.gpus import datasheet_named
from profkit.study.matrix import attention_work
from profkit.study.summary import Row
from profkit.timing.cell import CellStatus
from profkit.timing.latency import POWER_CAP, compute_peak

_RATES = {"tflops": 1e12, "gflops": 1e9}
_SHAPE = ("batch", "heads", "kv_heads", "length", "dim", "dtype", "causal", "backward")
_SAME_DIGITS = 1e-3
_ONE_STEP = 1.5
_NEAR = 0.90
_CLOCK_HELD = 0.98


class Fault(StrEnum):
    """Why samples don't support an interval that was published of them."""

    refused = "the samples support none"
    narrower = "narrower than the samples support"
    one_tick = "one step of the timer wide"


@dataclass(frozen=True)
class Figure:
    """A published figure: a time with its interval (s), a rate (FLOP/s); what lacks is None.

    `share` is that of the dense datasheet peak of `gpu`. `study` has what else was published with
    it, "" where nothing is known.
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
    study: str = ""


@dataclass(frozen=True)
class Shortfall:
    """What the data have on a cell that stays below nine tenths of a figure of its own product.

    `clock` is the cell's SM clock over the chip's highest, `at_highest` its rate over the figure if
    rates grew with the clock up to that; None where a clock is unknown. `power_limit` is in W.
    `capped` counts the blocks under a power cap.
    """

    clock: float | None
    at_highest: float | None
    highest_clock: float | None
    power_limit: float | None
    capped: int
    other_backend: bool
    overtaken: int
    launch_bound: bool

    @property
    def slowed(self) -> bool:
        """Whether the clock was lower than the chip has it."""
        return self.clock is not None and self.clock < _CLOCK_HELD

    @property
    def has_evidence(self) -> bool:
        """Whether anything in the data may have cost time."""
        return self.slowed or self.by_other_means or self.capped > 0

    @property
    def by_other_means(self) -> bool:
        """Whether something may have that no clock makes good."""
        return self.other_backend or self.overtaken > 0 or self.launch_bound

    @property
    def clock_suffices(self) -> bool:
        """Whether the highest clock would bring the cell within a tenth."""
        return self.at_highest is not None and self.at_highest >= _NEAR


@dataclass(frozen=True)
class PublishedPair:
    """A cell beside a published figure of its shape.

    `rate_ratio` is the cell's FLOP rate over the published one, `share_ratio` the same of the
    shares of each GPU's dense datasheet peak (None where one is unknown). `same_gpu`: the product
    is the same. `time_ratio` is published over measured time, for the same product alone, as is
    `shortfall`, None from nine tenths of the figure on. `faults` are of the published interval, for
    cells that were made of the published samples.
    """

    row: Row
    figure: Figure
    rate_ratio: float
    share_ratio: float | None
    same_gpu: bool
    time_ratio: float | None
    same_samples: bool
    faults: tuple[Fault, ...]
    shortfall: Shortfall | None = None


def overclaims(pairs: Iterable[PublishedPair]) -> Counter[str]:
    """How many published intervals of a baseline's own samples are faulty, and by which faults.

    One may have several: dependent samples, by its reasons, and a width of `one_tick` of the timer.
    """
    counts: Counter[str] = Counter()
    for pair in pairs:
        if pair.same_samples and pair.figure.low is not None:
            faulty = bool(pair.faults)
            counts.update(judged=1, faulty=faulty, one_tick=Fault.one_tick in pair.faults)
            counts.update(pair.row.dependence if faulty else ())
    return counts


def wrong_claims(pairs: Iterable[PublishedPair]) -> tuple[Outcome, ...]:
    """What was published with these figures and does not hold, by `profkit audit`."""
    studies = {pair.figure.study for pair in pairs}
    return tuple(
        outcome
        for outcome in _audited()
        if outcome.contradictions and outcome.claim.where.partition(".")[0] in studies
    )


@cache
def _audited() -> tuple[Outcome, ...]:
    with as_file(files("profkit.study").joinpath("published_claims.yaml")) as path:
        return examine(read_claims(path).claims).outcomes


def published_pairs(
    rows: Sequence[Row], gpu: str | None, chip: Device | None = None
) -> tuple[PublishedPair, ...]:
    """Each figure whose shape the baseline has, beside the cell of its backend or the fastest.

    `gpu` is the name of the product's datasheet, `chip` the GPU.
    """
    return tuple(
        _pair(row, figure, gpu, chip or Device())
        for figure in published()
        if (row := _counterpart(rows, figure)) is not None
    )


def _counterpart(rows: Sequence[Row], figure: Figure) -> Row | None:
    same = [
        row
        for row in rows
        if row.flop_rate and all(getattr(row, name) == figure.shape[name] for name in _SHAPE)
    ]
    own = [row for row in same if row.backend == figure.backend]
    return max(own or same, key=lambda row: row.flop_rate or 0.0, default=None)


def _pair(row: Row, figure: Figure, gpu: str | None, chip: Device) -> PublishedPair:
    same_gpu = gpu is not None and figure.gpu == gpu
    rate, seconds = row.flop_rate or 0.0, row.seconds or 0.0
    share = row.share_of_datasheet
    same_samples = (
        same_gpu
        and row.status is CellStatus.imported
        and figure.seconds is not None
        and abs(seconds / figure.seconds - 1) < _SAME_DIGITS
    )
    ratio = rate / figure.flop_rate
    short = same_gpu and not same_samples and ratio < _NEAR
    return PublishedPair(
        row=row,
        figure=figure,
        rate_ratio=ratio,
        share_ratio=share / figure.share if share and figure.share else None,
        same_gpu=same_gpu,
        time_ratio=figure.seconds / seconds if same_gpu and figure.seconds else None,
        same_samples=same_samples,
        faults=tuple(_faults(row, figure)) if same_samples else (),
        shortfall=_shortfall(row, figure, ratio, chip) if short else None,
    )


def _shortfall(row: Row, figure: Figure, ratio: float, chip: Device) -> Shortfall:
    highest = known(chip.sm_clock_max)
    clock = row.sm_clock / highest if row.sm_clock and highest else None
    return Shortfall(
        clock=clock,
        at_highest=ratio / clock if clock else None,
        highest_clock=highest,
        power_limit=known(chip.power_limit),
        capped=row.throttled.get(POWER_CAP, 0),
        other_backend=row.backend != figure.backend,
        overtaken=row.overtaken or 0,
        launch_bound=bool(row.launch_bound),
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
    document = shipped_yaml("profkit.study", "published.yaml")
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
    work = attention_work(shape)
    rate = next(
        (values[name] * unit for name, unit in _RATES.items() if name in values),
        (work.flop if work else 0.0) / (seconds or 1.0),
    )
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
        study=series.get("study", ""),
    )
