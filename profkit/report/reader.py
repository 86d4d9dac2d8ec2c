"""An Nsight Compute report as columns: one row per kernel launch, values in SI units.

The vendor's `ncu_report` module does the reading; opening a launch costs it about 14 ms and 23 MB,
reading values almost nothing, so that a report is opened once and read in one pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profkit.core.errors import BadInput
from profkit.core.regular_file import open_regular
from profkit.report.framing import REPEAT, ZSTD_MAGIC, Framing, check
from profkit.report.memory import Unpacked, available, ensure_room, too_large, try_reading
from profkit.report.paths import without_homes
from profkit.report.session import Session, decode

if TYPE_CHECKING:
    from profkit.core.columns import Column, Mask

_DIVISORS = {
    "%": 100.0,
    "ns": 1e9, "nsecond": 1e9, "us": 1e6, "usecond": 1e6, "ms": 1e3, "msecond": 1e3,
}  # fmt: skip
_MULTIPLES = {
    "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12,
    "Kbyte/s": 1e3, "Mbyte/s": 1e6, "Gbyte/s": 1e9, "Tbyte/s": 1e12,
    "Khz": 1e3, "Mhz": 1e6, "Ghz": 1e9,
}  # fmt: skip
# Some versions of ncu give such a metric the unit of what it is a share of.
_PERCENTAGE = re.compile(r"\.pct(?:_of_peak_\w+)?$")
_MARK = re.compile(r"@(?P<kind>[a-z]+):(?P<first>[^:@]*):(?P<second>[^@]*)@")


@dataclass(frozen=True)
class RuleResult:
    """The result of one of ncu's rules for a launch.

    `kind` is "none", "ok", "optimization", "warning" or "error". `speedup` is ncu's own estimate as
    a share of the run time (0.3 = 30% less), `scope` "global" (run time of the kernel), "local"
    (efficiency of one unit in isolation, not time) or "" where there is none.
    """

    rule: str
    section: str
    kind: str
    title: str
    message: str
    speedup: float | None
    scope: str


@dataclass(frozen=True)
class Launch:
    """A recorded kernel launch.

    `nvtx` are the enclosing NVTX ranges, outermost first; `rule_results` those of ncu's rules, in
    the vendor's form.
    """

    index: int
    name: str
    function: str
    workload: str
    nvtx: tuple[str, ...]
    rule_results: tuple[Mapping[str, Any], ...] = field(repr=False)
    breakdowns: Mapping[str, Mapping[str, float]]
    device: Mapping[str, str | float]

    @cached_property
    def rules(self) -> tuple[RuleResult, ...]:
        """The results of ncu's rules."""
        return tuple(map(_rule, self.rule_results))


@dataclass(frozen=True)
class RawReport:
    """A report as recorded.

    `columns` has for each metric asked for that any launch recorded a float64 value for each
    launch, in SI (shares for %, seconds for ns), NaN where there is none; `recorded` tells whether
    the launch had the metric at all. `actions` are the vendor's handles of the launches, for what
    is read later (per instruction, over time); they are kept because opening one again costs its
    time and memory again. They can't leave the process.
    """

    path: Path
    framing: Framing
    session: Session
    launches: tuple[Launch, ...]
    columns: Mapping[str, Column]
    recorded: Mapping[str, Mask]
    actions: tuple[Any, ...] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Request:
    """What to read of each launch, by ncu's names; breakdowns and device under names to give.

    A breakdown is a metric and the metric that holds its keys, "" where it brings its own.
    """

    metrics: Sequence[str]
    breakdowns: Mapping[str, tuple[str, str]]
    device: Mapping[str, str]


def read(
    path: Path, request: Request, progress: Callable[[int, int], None] | None = None
) -> RawReport:
    """Check and read a report.

    `progress` is called with (launches read, launches in all). Raises BadInput for whatever is not
    a whole report, as `framing.check` says, where the reader yields fewer launches than
    announced, and where memory does not suffice; EnvironmentProblem where a compressed report can't
    be unpacked.
    """
    framing = check(path)
    suffices = ensure_room(path, framing.size, framing.launches)
    with open_regular(path) as source:
        # The vendor's reader would leave its file behind where a signal ends the process.
        packed = source.read(len(ZSTD_MAGIC)) == ZSTD_MAGIC
    plain = Unpacked(path) if packed else None
    file = plain.path if plain else str(path.absolute())
    if not suffices:
        shared = [plain.descriptor] if plain else []
        try_reading(path, file, shared, framing.launches, progress)
    values: dict[str, list[float]] = {name: [] for name in request.metrics}
    units: dict[str, str] = {}
    launches: list[Launch] = []
    actions: list[Any] = []
    with damage_of(path, framing.launches):
        session = decode(framing.session)
        for action in _actions(file):
            action.plain = plain  # read on when asked for code and source: open as long as needed
            actions.append(action)
            for name in request.metrics:
                values[name].append(_number(name, action.metric_by_name(name), units))
            launches.append(_launch(len(launches), action, request))
            if progress:
                progress(len(launches), framing.launches)
    if len(launches) < framing.launches:
        message = f"only {len(launches)} of {framing.launches} announced launches can be read"
        raise BadInput(f"{path}: {message}", REPEAT)
    import numpy as np

    arrays = {name: np.array(column, dtype=np.float64) for name, column in values.items()}
    recorded = {name: array != _ABSENT for name, array in arrays.items() if any(array != _ABSENT)}
    columns = {name: np.where(mask, arrays[name], np.nan) for name, mask in recorded.items()}
    return RawReport(path, framing, session, tuple(launches), columns, recorded, tuple(actions))


@contextmanager
def damage_of(path: Path, launches: int) -> Iterator[None]:
    """Report errors of the vendor's reader as damage of the report."""
    try:
        yield
    except MemoryError:
        raise too_large(path, launches, available()) from None
    except (RuntimeError, SystemError, ValueError, LookupError, TypeError) as error:
        raise BadInput(f"{path}: the report is damaged ({error})", REPEAT) from error


def _actions(file: str) -> Iterator[Any]:
    import ncu_report

    for result_range in ncu_report.load_report(file):
        yield from result_range


def every_metric(action: Any) -> Mapping[str, tuple[str, float | str | None]]:
    """Every metric of a launch as ncu names it: (ncu's unit, value as recorded or None)."""
    named = {}
    for name in sorted(action.metric_names()):
        metric = action.metric_by_name(name)
        value = metric.value() if metric.has_value() else None
        named[name] = metric.unit(), without_homes(value) if isinstance(value, str) else value
    return named


def to_si(value: float, unit: str) -> float:
    """A value in ncu's unit as SI: % to a share, ns to s; other units are SI already."""
    if unit in _DIVISORS:
        return value / _DIVISORS[unit]
    return value * _MULTIPLES.get(unit, 1.0)


Values = dict[int, float]
"""The values of a metric by program counter."""


def by_address(action: Any, metric_name: str) -> Values | None:
    """The values (SI) of a metric by program counter; None where the launch has none."""
    metric = action.metric_by_name(metric_name)
    if metric is None or not metric.has_correlation_ids():
        return None
    counters, unit = metric.correlation_ids(), metric.unit()
    values: Values = {}
    for index in range(metric.num_instances()):
        address = counters.as_uint64(index)
        values[address] = values.get(address, 0.0) + to_si(float(metric.as_double(index)), unit)
    return values


_ABSENT = float("-inf")


def _number(name: str, metric: Any, units: dict[str, str]) -> float:
    """The value in SI; NaN where the counter gave none, `_ABSENT` where the metric is not there.

    `units` remembers the unit of each name: a report gives a metric one unit throughout.
    """
    if metric is None:
        return _ABSENT
    if not metric.has_value():
        return float("nan") if metric.num_instances() == 0 else _ABSENT
    value = metric.value()
    if isinstance(value, str):
        return _ABSENT
    if name not in units:
        units[name] = "%" if _PERCENTAGE.search(name) else metric.unit()
    return to_si(float(value), units[name])


def _launch(index: int, action: Any, request: Request) -> Launch:
    import ncu_report

    bases = ncu_report.IAction
    name = action.name(bases.NameBase_DEMANGLED)
    function = action.name(bases.NameBase_FUNCTION)
    if name is None or function is None:
        raise ValueError(f"launch {index} has no name")
    return Launch(
        index=index,
        name=without_homes(name),
        function=without_homes(function),
        workload=_WORKLOADS.get(action.workload_type(), "kernel"),
        nvtx=_nvtx(action.nvtx_state()),
        rule_results=tuple(action.rule_results_as_dicts()),
        breakdowns={
            name: _breakdown(action, metric, keys)
            for name, (metric, keys) in request.breakdowns.items()
        },
        device={
            key: metric.value()
            for key, name in request.device.items()
            if (metric := action.metric_by_name(name)) is not None and metric.has_value()
        },
    )


_WORKLOADS = {0: "kernel", 1: "range", 2: "command list", 3: "graph", 4: "subgrid schedule"}


def _nvtx(state: Any) -> tuple[str, ...]:
    domains = map(state.domain_by_id, state.domains()) if state is not None else ()
    return tuple(
        without_homes(name)
        for domain in domains
        for name in (*domain.push_pop_ranges(), *domain.start_end_ranges())
    )


_KINDS = {0: "none", 1: "ok", 2: "optimization", 3: "warning", 4: "error"}
_SCOPES = {1: "local", 2: "global"}


def _rule(result: Mapping[str, Any]) -> RuleResult:
    message = result["rule_message"]
    estimate = result.get("speedup_estimation")
    # Links are marked; ncu shows the address of one kind, the text of the others.
    text = _MARK.sub(
        lambda mark: mark["first" if mark["kind"] == "url" else "second"], message["message"]
    )
    return RuleResult(
        rule=result["rule_identifier"],
        section=result["section_identifier"],
        kind=_KINDS.get(message["type"], "none"),
        title=without_homes(message["title"] or result["name"]),
        message=without_homes(text.strip()),
        speedup=float(estimate["speedup"]) / 100 if estimate else None,
        scope=_SCOPES.get(estimate["type"], "") if estimate else "",
    )


def _breakdown(action: Any, metric_name: str, key_metric: str) -> Mapping[str, float]:
    """The values of a metric by its own keys, or their sums for each value of another metric."""
    metric = action.metric_by_name(metric_name)
    if metric is None or (key_metric and action.metric_by_name(key_metric) is None):
        return {}
    if key_metric:
        return _sums(by_address(action, metric_name), by_address(action, key_metric))
    if not metric.has_correlation_ids():
        return {}
    keys = metric.correlation_ids()
    instances = range(min(metric.num_instances(), keys.num_instances()))
    return {str(keys.value(index)): float(metric.value(index)) for index in instances}


def _sums(values: Values | None, keys: Values | None) -> Mapping[str, float]:
    if values is None or keys is None:
        return {"": 0.0}
    sums: dict[str, float] = {}
    for address, value in values.items():
        key = f"{keys[address]:.0f}" if address in keys else ""
        sums[key] = sums.get(key, 0.0) + value
    return sums


def nvtx_ranges(launches: Collection[Launch]) -> list[str]:
    """The NVTX range names of some launches, in order of first appearance."""
    return list(dict.fromkeys(name for launch in launches for name in launch.nvtx))
