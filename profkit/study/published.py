"""A baseline's cells compared with published figures of the same shapes, by rates and shares of
peaks.

Other claims of the same publications are checked against them, and against datasheets.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from importlib.resources import as_file, files

from msgspec import Struct, field

from profkit.audit.audit import Outcome, examine
from profkit.audit.claims import read_claims
from profkit.core.fingerprint import Device
from profkit.core.typed_file import convert, known, part
from profkit.core.yaml_files import shipped_yaml
from profkit.hardware.gpus import datasheet_named
from profkit.study.matrix import attention_work
from profkit.study.summary_format import Row
from profkit.timing.cell import CellStatus
from profkit.timing.latency import compute_peak
from profkit.timing.latency_format import POWER_CAP

_SHAPE = ("batch", "heads", "kv_heads", "length", "dim", "dtype", "causal", "backward")
_SAME_DIGITS = 1e-3  # chosen: published medians have three digits or more
_ONE_STEP = 1.5  # timer ticks, chosen: up to it a width is one tick, rounded
_NEAR = 0.90  # chosen: a cell below 90% of a figure of its own GPU needs a reason
_CLOCK_STABLE = 0.98  # chosen: within 2% of the maximum (latency._CLOCK_MOVED) is not slower


class Fault(StrEnum):
    """Why the samples don't support an interval published for them."""

    refused = "the samples support no interval"
    narrower = "narrower than the samples support"
    one_tick = "one timer tick wide"


class Figure(Struct, frozen=True, kw_only=True):
    """A published figure: a time with its interval (s), a rate (FLOP/s); None is missing.

    `study` names the claims of the same publication, "" without any.
    """

    series: str = field(name="name")
    source: str
    product: str = field(name="gpu")
    backend: str
    dtype: str
    batch: int
    heads: int
    kv_heads: int
    length: int
    dim: int
    causal: bool = False
    backward: bool = False
    median_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    tflops: float | None = None
    gflops: float | None = None
    study: str = ""

    @property
    def gpu(self) -> str:
        """The name of the product's datasheet, else the product as published."""
        sheet = datasheet_named(self.product)
        return sheet.name if sheet else self.product

    @property
    def seconds(self) -> float | None:
        """The median."""
        return self.median_ms and self.median_ms / 1e3

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of its interval."""
        return (self.low_ms / 1e3, self.high_ms / 1e3) if self.low_ms and self.high_ms else None

    @property
    def flop_rate(self) -> float:
        """The published rate (FLOP/s), else that of the declared work in the median."""
        if self.tflops or self.gflops:
            return self.tflops * 1e12 if self.tflops else (self.gflops or 0.0) * 1e9
        work = attention_work(part(self, *_SHAPE))
        return (work.flop if work else 0.0) / (self.seconds or 1.0)

    @property
    def share(self) -> float | None:
        """The share of the GPU's dense datasheet peak."""
        sheet = datasheet_named(self.product)
        key = compute_peak(self.dtype, sheet.peaks) if sheet else ""
        return self.flop_rate / sheet.peaks[key].value if sheet and key else None


class Shortfall(Struct, frozen=True):
    """Why a cell may be below _NEAR of a published figure of its own GPU product.

    `clock` is the cell's SM clock over the maximum (`highest_clock`, Hz), `at_highest` its rate
    over the figure if scaled to that; None where a clock is unknown. `other_backend`: the published
    one is another. `explained`: the data have a possible reason, `partly`: it does not suffice.
    """

    highest_clock: float | None
    clock: float | None
    at_highest: float | None
    slowed: bool
    other_backend: bool
    explained: bool
    partly: bool


class PublishedPair(Struct, frozen=True):
    """A cell and a published figure of its shape.

    `rate_ratio` is the cell's FLOP rate over the published one, `share_ratio` the same of the
    shares of each GPU's dense datasheet peak (None where one is unknown). `same_gpu`: the product
    is the same. `time_ratio` is published over measured time, only for the same product, as is
    `shortfall`, None from _NEAR of the figure on. `faults` are of the published interval, for cells
    of the published samples.
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
    """How many published intervals of a baseline's own samples are faulty, and their faults.

    One may have several: dependent samples, by reason, and a width of `one_tick` of the timer.
    """
    counts: Counter[str] = Counter()
    for pair in pairs:
        if pair.same_samples and pair.figure.interval:
            faulty = bool(pair.faults)
            counts.update(judged=1, faulty=faulty, one_tick=Fault.one_tick in pair.faults)
            counts.update(pair.row.dependence if faulty else ())
    return counts


def wrong_claims(pairs: Iterable[PublishedPair]) -> tuple[Outcome, ...]:
    """Wrong claims of the publications of these figures, by `profkit audit`."""
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
    """Each figure at a shape of the baseline, with the cell of its backend or the fastest.

    `gpu` is the name of the product's datasheet, `chip` the GPU.
    """
    return tuple(
        _pair(row, figure, gpu, chip or Device())
        for figure in published()
        if (row := _counterpart(rows, figure)) is not None
    )


def _counterpart(rows: Sequence[Row], figure: Figure) -> Row | None:
    same = [row for row in rows if row.flop_rate and part(row, *_SHAPE) == part(figure, *_SHAPE)]
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
    at_highest = ratio / clock if clock else None
    slowed = clock is not None and clock < _CLOCK_STABLE
    other_backend = row.backend != figure.backend
    by_other_means = other_backend or bool(row.late_submitted) or bool(row.launch_bound)
    return Shortfall(
        highest,
        clock,
        at_highest,
        slowed,
        other_backend,
        explained=slowed or by_other_means or POWER_CAP in row.throttled,
        partly=not by_other_means and (at_highest or 0.0) < _NEAR,
    )


def _faults(row: Row, figure: Figure) -> Iterator[Fault]:
    """The faults of an interval published for the samples."""
    if figure.interval is None:
        return
    width = figure.interval[1] - figure.interval[0]
    if row.refused:
        yield Fault.refused
    elif row.low is not None and row.high is not None and width < row.high - row.low:
        yield Fault.narrower
    if row.tick and width <= _ONE_STEP * row.tick:
        yield Fault.one_tick


@cache
def published() -> tuple[Figure, ...]:
    """profkit's published figures, in their order."""
    document = shipped_yaml("profkit.study", "published.yaml")
    return tuple(
        convert({"kv_heads": values["heads"], **series, **values}, Figure)
        for series in document["series"]
        for cell in series["cells"]
        for values in [dict(zip(series["columns"], cell, strict=True))]
    )
