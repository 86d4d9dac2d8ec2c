"""Per-instruction data of a launch: values by program counter, source line and SASS."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from msgspec import Struct

from profkit.machine_code.blame import Instruction
from profkit.machine_code.opcodes import unguarded
from profkit.report.action import Action, has_reader
from profkit.report.names import posix
from profkit.report.reader import by_address


def machine_code(action: Action, address: int) -> str:
    """The instruction at an address, "" where it is not known.

    Of a chip that the report's reader no longer disassembles (CC 7.0), it gives question marks.
    """
    text = " ".join((action.sass_by_pc(address) or "").split())
    return text if text.strip("? ") else ""


def executed_code(action: Action, metric_name: str) -> list[tuple[str, float]] | None:
    """Each executed instruction without its predicate, and its count; None where either is
    unknown."""
    counts = by_address(action, metric_name)
    if counts is None:
        return None
    code = [
        (unguarded(machine_code(action, address)), times)
        for address, times in counts.items()
        if times
    ]
    return code if all(text for text, _ in code) else None


def instructions(action: Action, metrics: Mapping[str, str]) -> list[Instruction]:
    """The instructions that any of the metrics has a value for, by address.

    `metrics` maps the name to give a value to ncu's name of it; the list is empty where the launch
    has none of them.
    """
    values: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for name, metric_name in metrics.items():
        for address, value in (by_address(action, metric_name) or {}).items():
            values[address][name] = value
    return [
        Instruction(address, machine_code(action, address), *_location(action, address), row)
        for address, row in sorted(values.items())
    ]


def _location(action: Action, address: int) -> tuple[str, int]:
    """The source file and line of an instruction; "" and 0 where no source is known."""
    source = action.source_info(address)
    return (posix(source.file_name()), source.line()) if source else ("", 0)


def counted(action: Action, metric_name: str) -> int:
    """How many instructions a metric has a value for."""
    metric = action.metric_by_name(metric_name)
    return len(metric.instances.ids) if metric else 0


def source_files(action: Action) -> Mapping[str, tuple[str, ...]]:
    """The lines of each source file that the launch recorded the text of, by its name."""
    texts = action.source_files().items()
    return {posix(name): tuple(text.splitlines()) for name, text in texts if text}


def source_text(action: Action) -> Callable[[str, int], str]:
    """The text of a source line by file and line; "" where the launch did not record it."""

    @cache
    def lines(file: str) -> tuple[str, ...]:
        return source_files(action).get(file, ())

    return lambda file, line: lines(file)[line - 1] if 0 < line <= len(lines(file)) else ""


_ADDRESS = re.compile(r"\b0x[0-9a-f]{3,}\b")


class Code(Struct, frozen=True):
    """The addresses of a launch's instructions. They differ between processes, so that an
    instruction is identified by its offset from the kernel's `start`."""

    addresses: frozenset[int]
    start: int

    def offset(self, address: int) -> str:
        """The offset from the kernel's start: `+0x0bc0`; negative in another function."""
        distance = address - self.start
        return f"{'-' if distance < 0 else '+'}{abs(distance):#06x}"

    def relative(self, sass: str) -> str:
        """The SASS text of an instruction with code addresses as offsets."""

        def target(match: re.Match[str]) -> str:
            address = int(match[0], 16)
            return self.offset(address) if address in self.addresses else match[0]

        return _ADDRESS.sub(target, sass)


def code_of(action: Action, metrics: Iterable[str], start: str) -> Code:
    """The code of a launch, as far as any of the metrics, by ncu's name, has a value for it.

    `start` is the metric with the address of the kernel.
    """
    addresses = {address for name in metrics for address in by_address(action, name) or ()}
    return Code(frozenset(addresses), code_start(action, start, addresses))


def code_start(action: Action, start: str, addresses: Collection[int]) -> int:
    """The address of a launch's kernel: as recorded, the lowest one known where it is not."""
    known = action.code_start(start)
    return min(addresses, default=0) if known is None else known


@dataclass(frozen=True)
class Place:
    """A source line, or an instruction without a known line, with its share of a metric.

    `share` is of the metric's sum over the launch; `sass` is "" for a line. `address` is the
    instruction's program counter, 0 for a line, and `offset` its distance from the kernel's start,
    as `+0x0bc0`; "" for a line or where it was not looked up.
    """

    file: str
    line: int
    sass: str
    share: float
    address: int = field(default=0, compare=False)
    offset: str = field(default="", compare=False)


class LineCost(Struct, frozen=True):
    """A source line and the seconds of a launch that its warp samples stand for."""

    file: str
    line: int
    text: str
    seconds: float


def located(action: Action, places: Sequence[Place], code: Code) -> tuple[Place, ...]:
    """Places with each instruction's machine code and offset from the kernel's start."""

    def with_code(place: Place) -> Place:
        text = place.sass or machine_code(action, place.address)
        return replace(place, sass=code.relative(text), offset=code.offset(place.address))

    return tuple(place if place.line else with_code(place) for place in places)


def hottest(
    action: Action, metric_names: Sequence[str], most: int, code: re.Pattern[str] | None = None
) -> tuple[Place, ...]:
    """The lines, or instructions, with the most of some metrics together, largest first.

    `code` keeps the instructions whose machine code has it; without it, nothing is disassembled.
    Empty where the launch has nothing of the metrics.
    """
    values: defaultdict[int, float] = defaultdict(float)
    for name in metric_names:
        for address, value in (by_address(action, name) or {}).items():
            values[address] += value
    if code:
        for address, value in list(values.items()):
            if not (value > 0 and code.search(machine_code(action, address))):
                del values[address]
    total = sum(values.values())
    if not total > 0:
        return ()
    places: defaultdict[tuple[str, int, int], float] = defaultdict(float)
    for address, value in values.items():
        source = action.source_info(address)
        places[(*_location(action, address), 0 if source else address)] += value
    largest = sorted(places.items(), key=lambda item: (-item[1], item[0]))[:most]
    return tuple(
        Place(file, line, "", value / total, address)
        for (file, line, address), value in largest
        if value > 0
    )


def executed_where(action: Action, metric_name: str, text: re.Pattern[str]) -> float:
    """The sum of a metric over instructions whose source line has a text.

    NaN where the launch recorded neither the metric nor its source, and where lines are unknown.
    """
    values = by_address(action, metric_name)
    sources = action.source_files()
    if values is None or not len(sources):
        return math.nan
    lines = {
        (name, number)
        for name, content in sources.items()
        if text.search(content)
        for number, line in enumerate(content.splitlines(), start=1)
        if text.search(line)
    }
    if not lines:
        return 0.0
    if not has_reader():
        return math.nan
    total = 0.0
    for address, value in values.items():
        source = action.source_info(address)
        if source is not None and (source.file_name(), source.line()) in lines:
            total += value
    return total
