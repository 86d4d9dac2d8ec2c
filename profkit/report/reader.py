"""An Nsight Compute report as columns: one row per kernel launch, values in SI units."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from profkit.core.errors import BadInput
from profkit.core.regular_file import open_regular
from profkit.report.action import Action, ReportFile
from profkit.report.framing import REPEAT, Framing, Kind, Record, check, decoding, walk
from profkit.report.launch_message import (
    DEMANGLED,
    FUNCTION,
    LaunchMessage,
    Metric,
    RuleResult,
    rule_results,
)
from profkit.report.names import without_homes
from profkit.report.session import Session, decode

if TYPE_CHECKING:
    from profkit.core.columns import Column, Mask

_DIVISORS = {"%": 100.0, "ns": 1e9}
# Some versions of ncu give such a metric the unit of what it is a share of.
_PERCENTAGE = re.compile(r"\.pct(?:_of_peak_\w+)?$|_pct(?:_occupancy_per_block_size)?$")
_LONGEST = 1e15  # ns, 12 days, chosen
_LARGEST_ATTRIBUTE = 1e15  # chosen: a thousand times the bytes of memory of any GPU
_TIME = re.compile(r"__(?:pmsampler_interval_time$|time_duration\.)")


@dataclass(frozen=True)
class Launch:
    """A recorded kernel launch.

    `nvtx` are the enclosing NVTX ranges, outermost first; `rule_results` those of ncu's rules, as
    they were recorded.
    """

    index: int
    name: str
    function: str
    workload: str
    nvtx: tuple[str, ...]
    rule_results: tuple[bytes, ...] = field(repr=False)
    breakdowns: Mapping[str, Mapping[str, float]]
    device: Mapping[str, str | float]

    @cached_property
    def rules(self) -> tuple[RuleResult, ...]:
        """The results of ncu's rules."""
        return rule_results(self.rule_results)


@dataclass(frozen=True)
class RawReport:
    """A report as recorded.

    `columns` has for each metric asked for that any launch recorded a float64 value for each
    launch, in SI (shares for %, seconds for ns), NaN where there is none; `recorded` tells whether
    the launch had the metric at all. `actions` are for what is read of launches later (per
    instruction, over time); they hold the file open and can't leave the process.
    """

    path: Path
    framing: Framing
    session: Session
    launches: tuple[Launch, ...]
    columns: Mapping[str, Column]
    recorded: Mapping[str, Mask]
    actions: tuple[Action, ...] = field(repr=False, compare=False)


class Request(Struct, frozen=True):
    """What to read of each launch, by ncu's names; breakdowns and device under names to give.

    A breakdown is a metric and the metric that holds its keys, "" where it brings its own.
    """

    metrics: Sequence[str]
    breakdowns: Mapping[str, tuple[str, str]]
    device: Mapping[str, str]


def read(
    path: Path, request: Request, progress: Callable[[int, int], None] | None = None
) -> RawReport:
    """Check and read a report, one launch at a time.

    `progress` is called with (launches read, launches in all). Raises BadInput for whatever is not
    a whole report, as `framing.check` says, and for launches that can't be decoded.
    """
    import numpy as np

    framing = check(path)
    with decoding(path):
        session = decode(framing.session)
    units = {name: unit_of(name) for name in request.metrics}
    launches: list[Launch] = []
    actions: list[Action] = []
    columns = defaultdict[str, "Column"](lambda: np.full(framing.launches, _ABSENT))

    def visit(record: Record) -> None:
        if record.kind is Kind.source:
            file.add_source(record)
            return
        index = len(launches)
        message = LaunchMessage(path, record.kind, record.data, file.names)
        for name in units.keys() & message.metrics.keys():
            value = _number(message.metric_by_name(name), units[name])
            if value != _ABSENT:
                columns[name][index] = value
        launches.append(_launch(index, message, request))
        actions.append(Action(file, record, message))
        if progress:
            progress(index + 1, framing.launches)

    with open_regular(path) as source:
        file = ReportFile(path, source, framing.names)
        walk(path, source, visit)
    if len(launches) < framing.launches:
        raise BadInput(f"{path}: the report was changed while it was read", REPEAT)
    recorded = {name: column != _ABSENT for name, column in columns.items()}
    values = {name: np.where(recorded[name], column, np.nan) for name, column in columns.items()}
    return RawReport(path, framing, session, tuple(launches), values, recorded, tuple(actions))


def every_metric(action: Action) -> Mapping[str, tuple[str, float | str | None]]:
    """Every metric of a launch as ncu names it: (ncu's unit, value as recorded or None)."""
    units, message = action.units(), action.message
    named = {}
    for name in sorted(message.metrics):
        metric = message.metric_by_name(name)
        value = metric.value() if metric else None
        named[name] = units.get(name, ""), without_homes(value) if isinstance(value, str) else value
    return named


def unit_of(name: str) -> str:
    """The unit of a metric as far as it decides its value in SI: %, ns or none.

    The format has no units. ncu's reader infers them from names by tables of its own.
    """
    if _PERCENTAGE.search(name):
        return "%"
    return "ns" if _TIME.search(name) else ""


def to_si(value: float, unit: str) -> float:
    """A value in a unit of `unit_of` as SI: % to a share, ns to s."""
    return value / _DIVISORS.get(unit, 1.0)


Values = dict[int, float]
"""The values of a metric by program counter."""


def by_address(action: Action | LaunchMessage, metric_name: str) -> Values | None:
    """The values (SI) of a metric by program counter; None where the launch has none."""
    metric = action.metric_by_name(metric_name)
    if metric is None or not metric.instances.ids:
        return None
    unit = unit_of(metric_name)
    values: Values = {}
    for address, value in zip(metric.addresses(), metric.numbers(least=0), strict=True):
        values[address] = values.get(address, 0.0) + to_si(value, unit)
    return values


_ABSENT = float("-inf")


def _number(metric: Metric | None, unit: str) -> float:
    """The value in SI; NaN where the counter gave none, or an invalid time, `_ABSENT` where the
    metric is not there."""
    if metric is None:
        return _ABSENT
    value = metric.value()
    if value is None:
        return _ABSENT if metric.instances.values else float("nan")
    if isinstance(value, str):
        return _ABSENT
    return to_si(float(value), unit) if unit != "ns" or 1 <= value < _LONGEST else float("nan")


def _launch(index: int, message: LaunchMessage, request: Request) -> Launch:
    device = {
        key: value
        for key, name in request.device.items()
        if (value := _attribute(key, message.metric_by_name(name))) is not None
    }
    return Launch(
        index=index,
        name=message.kernel_name(DEMANGLED),
        function=message.kernel_name(FUNCTION),
        workload=message.kind.value,
        nvtx=message.nvtx(),
        rule_results=message.rules(),
        breakdowns={
            name: _breakdown(message, metric, keys)
            for name, (metric, keys) in request.breakdowns.items()
        },
        device=device,
    )


def _attribute(key: str, metric: Metric | None) -> float | str | None:
    """A device attribute: a text, a number from 0 on or above 0, as its key has it; else None."""
    value = metric.value() if metric else None
    if key == "name" or isinstance(value, str | None):
        return value if key == "name" and isinstance(value, str) else None
    return value if (0 if key.startswith("cc_") else 1) <= value < _LARGEST_ATTRIBUTE else None


KERNEL = Kind.kernel.value
"""The workload of a single launch."""


def _breakdown(message: LaunchMessage, metric_name: str, key_metric: str) -> Mapping[str, float]:
    """The values of a metric by its own keys, or their sums for each value of another metric."""
    metric = message.metric_by_name(metric_name)
    if metric is None or (key_metric and message.metric_by_name(key_metric) is None):
        return {}
    if key_metric:
        return _sums(by_address(message, metric_name), by_address(message, key_metric))
    return dict(zip(map(str, metric.instances.ids), metric.numbers(least=0), strict=False))


def _sums(values: Values | None, keys: Values | None) -> Mapping[str, float]:
    if values is None or keys is None:
        return {"": 0.0}
    sums: dict[str, float] = {}
    for address, value in values.items():
        key = f"{keys[address]:.0f}" if address in keys else ""
        sums[key] = sums.get(key, 0.0) + value
    return sums
