"""Measured roofs of a GPU: rates from samples, and whether they can be what they are called."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from profkit.capture.gpu import Moment
from profkit.core.yaml_files import shipped_yaml
from profkit.report.gpus import Datasheet
from profkit.timing.statistics import summarize

BYTES, FLOP, OPERATIONS = "B/s", "FLOP/s", "op/s"
MMA_SYNC = "_mma_sync"

LABELS: Mapping[str, str] = shipped_yaml("profkit.roofline", "roofs.yaml")
"""Every roof that can be measured, and what people call it."""

_SETTINGS = (
    "name", "uuid", "multiprocessors", "memory_bytes", "mig", "ecc", "power_limit", "sm_clock_max",
    "sm_clock_application",
)  # fmt: skip


SLOW_TO_RISE = 0.02
"""By how much of it a steady rate may exceed a burst's before the burst is doubted."""

_L1_FILL = 64  # bytes a cycle and multiprocessor from L2, on every GPU from Volta on


@dataclass(frozen=True)
class Measured:
    """A load as it was timed: seconds a call, the GPU at the start of each block of samples.

    `samples` and `moments` are of bursts after pauses, those of `steady` of a load that had been
    on for long; empty where it was not. `amount` is what a call moves or computes, `how` says in
    words what was called.
    """

    how: str
    amount: float
    samples: tuple[float, ...]
    moments: tuple[Moment, ...]
    steady_samples: tuple[float, ...] = ()
    steady_moments: tuple[Moment, ...] = ()


@dataclass(frozen=True)
class Ceiling:
    """The rate that was reached, and how.

    `rate` is what a short burst reaches: `amount` (bytes, FLOP or operations of a call) over the
    median time of a call, in `unit` ("B/s", "FLOP/s", "op/s"); `low` and `high` come from the ends
    of the median's interval, NaN where it has none, and `level` is the coverage that it claims, NaN
    for none. `sm_clock` (Hz) is the median over the bursts, as counted or else as the driver told
    it, `sm_clock_low` and `sm_clock_high` the lowest and the highest; `power` (W) and `temperature`
    (degrees C) are medians of what the driver told, NaN where it told nothing; `throttled_by`
    are the reasons for which it held the clock down. `steady` is the rate of the same calls once
    they have been on for long enough to settle at the clock that the power cap leaves, NaN where
    that was not measured, and `steady_clock` (Hz), `steady_power` (W) and `steady_throttled_by`
    what the driver told then.
    `peak` is the datasheet's, NaN where none applies, `verified` as there. `problem` says why the
    rate can't be what it is called; "" where nothing speaks against it.
    """

    name: str
    rate: float
    low: float
    high: float
    unit: str
    how: str
    amount: float
    samples: int
    level: float
    sm_clock: float
    power: float
    temperature: float
    throttled_by: tuple[str, ...]
    peak: float
    verified: bool
    problem: str
    sm_clock_low: float = math.nan
    sm_clock_high: float = math.nan
    steady: float = math.nan
    steady_clock: float = math.nan
    steady_power: float = math.nan
    steady_throttled_by: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What people call it."""
        return LABELS[self.name]

    @property
    def share(self) -> float:
        """Of the datasheet's peak; NaN where none applies."""
        return self.rate / self.peak

    @property
    def doubtful(self) -> bool:
        """Whether a steady load did better, so that the bursts were over before the clock rose."""
        return self.steady > self.rate * (1 + SLOW_TO_RISE)


@dataclass(frozen=True)
class Ceilings:
    """Measured roofs of one GPU.

    `gpu` is its name, `uuid` its UUID ("" unknown), `rates` the roofs by name, `left_out` those
    that this GPU or its software can't do, and why. `created` is the UTC time; `fingerprint` the
    surroundings, of which "gpu" holds the settings that the roofs depend on. `neighbours` counts
    the processes of others that were on the GPU.
    """

    gpu: str
    uuid: str
    rates: Mapping[str, Ceiling]
    created: str = ""
    seconds: float = 0.0
    left_out: Mapping[str, str] = field(default_factory=dict)
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    neighbours: int = 0

    @property
    def plain(self) -> Mapping[str, float]:
        """The rates alone, by name; those that can't be are left out."""
        return {name: one.rate for name, one in self.rates.items() if not one.problem}


def unit_of(name: str) -> str:
    """The unit of a roof."""
    if name in {"dram", "dram_read", "l2"}:
        return BYTES
    return OPERATIONS if "int8" in name else FLOP


def ceiling(name: str, ways: Sequence[Measured], sheet: Datasheet | None, sm_count: int) -> Ceiling:
    """A roof from the way to reach it whose bursts are fastest; raises BadInput for bad samples.

    `sheet` is the GPU's datasheet, None where none applies.
    """
    summaries = [summarize(way.samples) for way in ways]
    rates = [way.amount / one.median for way, one in zip(ways, summaries, strict=True)]
    best = max(range(len(ways)), key=rates.__getitem__)
    way, summary, rate = ways[best], summaries[best], rates[best]
    interval = summary.interval
    clocks = _clocks(way.moments)
    clock = _median(clocks)
    peak = sheet.peaks.get(_physical(name)) if sheet else None
    boost = sheet.boost if sheet else math.nan
    return Ceiling(
        name=name,
        rate=rate,
        low=way.amount / interval.high if interval else math.nan,
        high=way.amount / interval.low if interval else math.nan,
        unit=unit_of(name),
        how=way.how if len(ways) == 1 else f"{way.how} (the fastest of {len(ways)} ways)",
        amount=way.amount,
        samples=summary.n,
        level=(interval.level if interval else None) or math.nan,
        sm_clock=clock,
        power=_median(_powers(way.moments)),
        temperature=_median(_known(way.moments, lambda moment: moment.temperature)),
        throttled_by=_reasons(way.moments),
        peak=peak.value if peak else math.nan,
        verified=peak.verified if peak else False,
        problem=_problem(name, rate, peak.value if peak else math.nan, boost, clock, sm_count),
        sm_clock_low=min(clocks, default=math.nan),
        sm_clock_high=max(clocks, default=math.nan),
        steady=way.amount / _median(way.steady_samples),
        steady_clock=_median(_clocks(way.steady_moments)),
        steady_power=_median(_powers(way.steady_moments)),
        steady_throttled_by=_reasons(way.steady_moments),
    )


def held_together(rates: Mapping[str, Ceiling]) -> Mapping[str, Ceiling]:
    """The roofs, each with what another one says against it."""
    dram = max((rates[name].rate for name in ("dram", "dram_read") if name in rates), default=0.0)
    l2 = rates.get("l2")
    if l2 is None or l2.problem or l2.rate > dram:
        return rates
    problem = "no faster than DRAM: what was read did not stay in L2"
    return {**rates, "l2": replace(l2, problem=problem)}


def _problem(name: str, rate: float, peak: float, boost: float, clock: float, sm_count: int) -> str:
    """Why a rate is impossible; "" where it is not known to be.

    `peak` is the datasheet's at `boost` (Hz): units that run faster may do so much more.
    """
    if unit_of(name) == BYTES:
        if rate > peak:
            return "above the datasheet's peak: not all of it came from DRAM"
        if name == "l2" and rate > _L1_FILL * sm_count * clock:
            return f"above {_L1_FILL} B a cycle and SM: not all of it came from L2"
        return ""
    faster = clock / boost
    if rate > peak * max(1.0, faster if math.isfinite(faster) else 1.0):
        return "above the datasheet's peak at the clock that it ran at: the count can't be right"
    return ""


def _physical(name: str) -> str:
    """The datasheet's name for what a roof can't exceed."""
    return "dram" if name == "dram_read" else name.removesuffix(MMA_SYNC)


def _clocks(moments: Sequence[Moment]) -> list[float]:
    return _known(moments, lambda moment: moment.sm_clock)


def _powers(moments: Sequence[Moment]) -> list[float]:
    return _known(moments, lambda moment: moment.power)


def _known(moments: Sequence[Moment], told: Callable[[Moment], float | None]) -> list[float]:
    return [value for moment in moments if (value := told(moment)) is not None]


def _reasons(moments: Sequence[Moment]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reason for moment in moments for reason in moment.throttled_by))


def _median(values: Sequence[float]) -> float:
    return median(values) if values else math.nan


def unfit(ceilings: Ceilings, gpu: Mapping[str, Any]) -> tuple[str, ...]:
    """Why these are not the roofs of a report's GPU, empty where nothing known speaks against it.

    `gpu` is a fingerprint's device, or as much of one as is known: "name", "uuid",
    "multiprocessors", "memory_bytes", "power_limit" (W), "ecc", "mig", clocks (Hz). What either
    side does not know is not compared.
    """
    measured = {
        **(ceilings.fingerprint.get("gpu") or {}),
        "name": ceilings.gpu,
        "uuid": ceilings.uuid or None,
    }
    return tuple(
        f"{name.replace('_', ' ')} {measured[name]} when measured, {gpu[name]} in the report"
        for name in _SETTINGS
        if measured.get(name) is not None
        and gpu.get(name) is not None
        and measured[name] != gpu[name]
    )
