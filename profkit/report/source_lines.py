"""What a launch recorded for each instruction: values by program counter, source line and SASS."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from profkit.report.paths import posix
from profkit.report.reader import to_si
from profkit.report.sass import machine_code


@dataclass(frozen=True)
class Instruction:
    """One program counter of a launch. `file` is "" and `line` 0 where no source is known."""

    address: int
    sass: str
    file: str
    line: int
    values: Mapping[str, float]


def instructions(action: Any, metrics: Mapping[str, str]) -> list[Instruction]:
    """The instructions that any of the metrics has a value for, by address.

    `metrics` maps the name to give a value to ncu's name of it; the list is empty where the launch
    has none of them.
    """
    values: dict[int, dict[str, float]] = {}
    for name, metric_name in metrics.items():
        metric = action.metric_by_name(metric_name)
        if metric is None or not metric.has_correlation_ids():
            continue
        counters, unit = metric.correlation_ids(), metric.unit()
        for at in range(metric.num_instances()):
            row = values.setdefault(counters.as_uint64(at), {})
            row[name] = to_si(metric.as_double(at), unit)
    return [_instruction(action, address, row) for address, row in sorted(values.items())]


def counted(action: Any, metric_name: str) -> int:
    """How many instructions a metric has a value for."""
    metric = action.metric_by_name(metric_name)
    return int(metric.num_instances()) if metric and metric.has_correlation_ids() else 0


def recorded(action: Any, metric_name: str) -> bool:
    """Whether a launch recorded a metric; one that holds no instruction is 0 at all of them."""
    return action.metric_by_name(metric_name) is not None


def source_files(action: Any) -> Mapping[str, tuple[str, ...]]:
    """The lines of each source file that the launch recorded the text of, by its name."""
    return {name: tuple(text.splitlines()) for name, text in _texts(action).items() if text}


def _texts(action: Any) -> Mapping[str, str]:
    """The text of each source file that the launch recorded, by its name."""
    return {posix(name): text for name, text in action.source_files().items()}


def source_text(action: Any) -> Callable[[str, int], str]:
    """The text of a source line by file and line; "" where the launch did not record it."""

    @cache
    def lines(file: str) -> list[str]:
        return _texts(action).get(file, "").splitlines()

    return lambda file, line: lines(file)[line - 1] if 0 < line <= len(lines(file)) else ""


def _instruction(action: Any, address: int, values: Mapping[str, float]) -> Instruction:
    source = action.source_info(address)
    return Instruction(
        address=address,
        sass=machine_code(action, address),
        file=posix(source.file_name()) if source else "",
        line=source.line() if source else 0,
        values=values,
    )


_ADDRESS = re.compile(r"\b0x[0-9a-f]{3,}\b")


@dataclass(frozen=True)
class Code:
    """Where the instructions of a launch are: places in it are told from the kernel's `start`, for
    the addresses are others in each process."""

    addresses: frozenset[int]
    start: int

    def offset(self, address: int) -> str:
        """The distance from the kernel's start: `+0x0bc0`; code that lies before it is foreign."""
        distance = address - self.start
        return f"{'-' if distance < 0 else '+'}{abs(distance):#06x}"

    def told(self, sass: str) -> str:
        """An instruction's text with the places in the code that it names told likewise."""

        def target(match: re.Match[str]) -> str:
            address = int(match[0], 16)
            return self.offset(address) if address in self.addresses else match[0]

        return _ADDRESS.sub(target, sass)


def code_of(action: Any, metrics: Iterable[str], start: str) -> Code:
    """The code of a launch, as far as any of the metrics, by ncu's name, has a value for it.

    `start` is the metric with the address of the kernel.
    """
    addresses: set[int] = set()
    for name in metrics:
        metric = action.metric_by_name(name)
        if metric is not None and metric.has_correlation_ids():
            counters = metric.correlation_ids()
            addresses.update(map(counters.as_uint64, range(metric.num_instances())))
    return Code(frozenset(addresses), code_start(action, start, addresses))


def code_start(action: Any, start: str, addresses: Collection[int]) -> int:
    """The address of a launch's kernel: as recorded, the lowest one known where it is not."""
    metric = action.metric_by_name(start)
    if metric is not None and metric.num_instances():
        return int(metric.as_uint64(0))
    return min(addresses, default=0)


@dataclass(frozen=True)
class Place:
    """What of a launch a metric blames: a source line, or an instruction where no line is known.

    `share` is of the metric's sum over the launch; `sass` is "" for a line. `address` is the
    instruction's program counter, 0 for a line, and `offset` how far from the kernel's start that
    is, as `+0x0bc0`; "" for a line or where it was not looked up.
    """

    file: str
    line: int
    sass: str
    share: float
    address: int = field(default=0, compare=False)
    offset: str = field(default="", compare=False)


@dataclass(frozen=True)
class LineCost:
    """A source line and the seconds of a launch that its warp samples stand for."""

    file: str
    line: int
    text: str
    seconds: float


def located(places: Sequence[Place], code: Code) -> tuple[Place, ...]:
    """Places with each instruction told from where the code begins."""
    return tuple(
        place
        if place.line
        else replace(place, sass=code.told(place.sass), offset=code.offset(place.address))
        for place in places
    )


def hottest(
    action: Any, metric_names: Sequence[str], most: int, code: re.Pattern[str] | None = None
) -> tuple[Place, ...]:
    """The lines, or instructions, with the most of some metrics together, largest first.

    `code` keeps the instructions whose machine code has it; without it, only what is returned is
    disassembled. Empty where the launch has nothing of the metrics.
    """
    values = _by_address(action, metric_names)
    if code:
        values = {
            address: value
            for address, value in values.items()
            if value > 0 and code.search(machine_code(action, address))
        }
    total = sum(values.values())
    if not total > 0:
        return ()
    found: dict[tuple[str, int, int], float] = {}
    for address, value in values.items():
        source = action.source_info(address)
        key = (posix(source.file_name()), source.line(), 0) if source else ("", 0, address)
        found[key] = found.get(key, 0.0) + value
    largest = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:most]
    return tuple(
        Place(file, line, "" if line else machine_code(action, address), value / total, address)
        for (file, line, address), value in largest
        if value > 0
    )


def _by_address(action: Any, metric_names: Iterable[str]) -> dict[int, float]:
    """The sums of some metrics by program counter."""
    values: dict[int, float] = {}
    for name in metric_names:
        metric = action.metric_by_name(name)
        if metric is None or not metric.has_correlation_ids():
            continue
        counters = metric.correlation_ids()
        for instance in range(metric.num_instances()):
            address = counters.as_uint64(instance)
            values[address] = values.get(address, 0.0) + float(metric.as_double(instance))
    return values


def executed_where(action: Any, metric_name: str, text: re.Pattern[str]) -> float:
    """The sum of a metric over instructions whose source line has a text.

    NaN where the launch recorded neither the metric nor its source.
    """
    metric = action.metric_by_name(metric_name)
    sources = action.source_files()
    if metric is None or not metric.has_correlation_ids() or not len(sources):
        return math.nan
    counters = metric.correlation_ids()
    lines = {name: content.splitlines() for name, content in sources.items()}
    found: dict[tuple[str, int], float] = {}
    for at in range(metric.num_instances()):
        source = action.source_info(counters.as_uint64(at))
        if source is not None:
            key = (source.file_name(), source.line())
            found[key] = found.get(key, 0.0) + float(metric.as_double(at))
    return sum(
        value
        for (name, line), value in found.items()
        if 0 < line <= len(lines.get(name, ())) and text.search(lines[name][line - 1])
    )
