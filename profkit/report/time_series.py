"""What was sampled while a launch ran (PM sampling): one value an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from profkit.report.reader import to_si


@dataclass(frozen=True)
class Series:
    """Samples of one metric: `times` in seconds since the first sample, `values` in SI units.

    A time is that of the start of the interval that the value is for. `stamp` is the first sample's
    in nanoseconds: series of the same pass have the same.
    """

    times: tuple[float, ...]
    values: tuple[float, ...]
    stamp: int


def series(action: Any, ending: str) -> Series | None:
    """The time series whose ncu name ends with `ending`; None where the launch has none.

    ncu puts the counter domain and the trigger group in front of a sampled metric's name. The first
    sample carries no time stamp of its own (0): it opens the first interval and is left out.
    """
    for name in action.metric_names():
        prefix, separator, rest = name.rpartition(ending)
        sampled = prefix == "pmsampling:" or ("Triage" in prefix and prefix.endswith("."))
        if not (separator and not rest and sampled):
            continue
        metric = action.metric_by_name(name)
        if metric.num_instances() and metric.has_correlation_ids():
            return _read(metric)
    return None


def _read(metric: Any) -> Series:
    stamps, unit = metric.correlation_ids(), metric.unit()
    samples = [
        (stamp, to_si(metric.as_double(index), unit))
        for index in range(metric.num_instances())
        if (stamp := stamps.as_uint64(index)) > 0
    ]
    first = samples[0][0] if samples else 0
    return Series(
        times=tuple((stamp - first) / 1e9 for stamp, _ in samples),
        values=tuple(value for _, value in samples),
        stamp=first,
    )
