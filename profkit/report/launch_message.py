"""A recorded launch as its message: metrics, names, NVTX ranges and results of ncu's rules.

Field numbers: NVIDIA, Nsight Compute Customization Guide, "File Format" (ProfileResult and its kin,
ProfileMetricResult, NvtxState, RuleResult). Names of metrics are numbers in the report's table of
strings. Nothing of a metric is decoded until it is asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from profkit.report import wire
from profkit.report.framing import Kind, damaged
from profkit.report.paths import without_homes

_Decoded = TypeVar("_Decoded")
Value = int | float | str
_NAME, _VALUE, _ELEMENT = 0x08, 0x12, 3  # of a metric; the first two with their wire types
_ID, _ELEMENT_VALUE = 1, 2  # of one of its instances
_STRING, _FLOAT, _DOUBLE, _UINT32, _UINT64 = 0x0A, 0x15, 0x19, 0x20, 0x28  # of a value, likewise
_INTEGER = rb"([\x80-\xff]{0,9}[\x00-\x7f])"
_INSTANCE = (
    rb"\x1a[\x00-\x7f](?:\x0a[\x00-\x7f]\x28%b)?"
    rb"\x12[\x00-\x7f](?:[\x20\x28]%b|\x19(.{8})|\x15(.{4}))" % (_INTEGER, _INTEGER)
)
"""Of numbers alone, as of instructions and moments."""
_NUMBER = re.compile(_INSTANCE, re.DOTALL)
_NUMBERS = re.compile(rb"(?:%b)*+(?:\x20.)?" % _INSTANCE, re.DOTALL)
_32_BITS = (1 << 32) - 1
_MOST_METRICS = 100_000  # of a launch; 2,500 are the most of 158 reports
_MOST_INSTANCES = 500_000  # of a metric; 25,000 are the most of 158 reports
_LONGEST_NAME = 1 << 20  # bytes; templates make names of kilobytes


class _Fields(NamedTuple):
    """Field numbers of a kind of launch.

    `code` are the fields by which its machine code is found.
    """

    metrics: int
    nvtx: int
    rules: int
    code: frozenset[int]
    source: int = 0
    references: int = 0


_FIELDS = {
    Kind.kernel: _Fields(13, 21, 19, frozenset({*range(1, 12), 15, 16}), source=15),
    Kind.range: _Fields(4, 10, 20, frozenset({1, 2, 6, 11, 15}), references=15),
    Kind.command_list: _Fields(4, 10, 21, frozenset({1, 2, 6, 11, 12, 17}), references=17),
    Kind.graph: _Fields(4, 10, 22, frozenset({1, 2, 6, 11, 12, 15}), references=15),
}
MANGLED, FUNCTION, DEMANGLED = 5, 6, 7  # of a kernel
_WORDS = {Kind.range: "range", Kind.command_list: "command list", Kind.graph: "graph"}
_SOURCE_NUMBER = 1  # of a source, and of what names it
_DOMAINS, _THREADS, _STARTED = 1, 2, 3  # of an NVTX state
_STACKS = 2  # of a thread
_NUMBER_OF, _ENTRIES = 1, 3  # of a domain's ranges; a domain has its number in the same field
_PUSHED_NAME, _STARTED_NAME = 1, 2  # of a range

_RULE, _RULE_NAME, _BODY, _SECTION = 1, 2, 3, 4  # of the result of a rule
_ITEMS = 1  # of its body
_MESSAGE, _SPEEDUP = 1, 10  # of an item
_TEXT, _RULE_KIND, _TITLE = 1, 2, 4  # of a message
_SCOPE, _ESTIMATE = 1, 2  # of a speedup
_RULE_KINDS = {0: "none", 1: "ok", 2: "warning", 3: "error", 4: "optimization"}
_SCOPES = {1: "local", 2: "global"}
_MARK = re.compile(r"@(?P<kind>[a-z]+):(?P<first>[^:@]*):(?P<second>[^@]*)@")


class Instances(NamedTuple):
    """The instances of a metric in order; `ids` has 0 for one without, and nothing where none has
    any."""

    ids: Sequence[Value]
    values: Sequence[Value]


class Metric:
    """A metric of a launch as recorded."""

    def __init__(self, message: LaunchMessage, span: wire.Span) -> None:
        self._message = message
        self._span = span

    @cached_property
    def instances(self) -> Instances:
        """Those of its parts: instructions, opcodes, moments."""
        return self._message.decoded(_instances, self._span)

    def value(self) -> Value | None:
        """The value; None where there is none."""
        return self._message.decoded(_first_value, self._span)

    def numbers(self) -> list[float]:
        """The values of its instances, 0 for what is no number."""
        return [0.0 if isinstance(value, str) else float(value) for value in self.instances.values]

    def addresses(self) -> list[int]:
        """What its instances belong to, as program counters."""
        return integers(self.instances.ids)


def integers(values: Iterable[Value]) -> list[int]:
    """Numbers as integers, 0 for what is none."""
    return [
        0 if isinstance(value, str) or not math.isfinite(value) else int(value) for value in values
    ]


def _first_value(data: bytes, start: int, end: int) -> Value | None:
    """The value of a metric in the span after its name; None where it has instances alone."""
    if start < end and data[start] == _VALUE:
        size, start = wire.varint(data, start + 1)
        if start + size <= end:
            return _value(data, start, start + size)
        raise ValueError("a value runs past its end")
    return None


def _value(data: bytes, start: int, end: int) -> Value | None:
    """The value in a span, which has one field."""
    if start >= end:
        return None
    key, start = data[start], start + 1
    if key in {_UINT64, _UINT32}:
        number, stop = wire.varint(data, start)
        value: Value = number if key == _UINT64 else number & _32_BITS
    elif key == _DOUBLE:
        value, stop = wire.floating(data, start, start + 8), start + 8
    elif key == _FLOAT:
        value, stop = wire.floating(data, start, start + 4), start + 4
    elif key == _STRING:
        size, start = wire.varint(data, start)
        value, stop = str(data[start : start + size], "utf-8", "replace"), start + size
    else:
        raise ValueError(f"a value of kind {key}")
    if stop != end:
        raise ValueError("a value of another size")
    return value


def _instances(data: bytes, start: int, end: int) -> Instances:
    if start < end and data[start] == _VALUE:
        size, start = wire.varint(data, start + 1)
        start += size
    if _NUMBERS.fullmatch(data, start, end):  # field by field takes six times as long
        rows = _NUMBER.findall(data, start, end)
        _limit(len(rows))
        return Instances(
            [_varint(identity) for identity, *_ in rows] if any(row[0] for row in rows) else (),
            [
                _varint(whole) if whole else _real(double or single)
                for _, whole, double, single in rows
            ],
        )
    ids: list[Value] = []
    values: list[Value] = []
    known = False
    for field, place, stop in wire.spans(data, start, end):
        if field != _ELEMENT:
            continue
        parts = {part: _value(data, *span) for part, *span in wire.spans(data, place, stop)}
        known = known or _ID in parts
        identity, value = parts.get(_ID), parts.get(_ELEMENT_VALUE)
        ids.append(0 if identity is None else identity)
        values.append(0 if value is None else value)
        _limit(len(values))
    return Instances(ids if known else (), values)


def _limit(instances: int) -> None:
    if instances > _MOST_INSTANCES:
        raise ValueError(f"a metric of more than {_MOST_INSTANCES:,} instances")


def _real(data: bytes) -> float:
    return wire.floating(data, 0, len(data))


@lru_cache(1 << 16)  # chosen: the instructions of a large kernel, which each of 30 metrics names
def _varint(data: bytes) -> int:
    return wire.varint(data, 0)[0] if data else 0


class LaunchMessage:
    """A launch's own bytes, of which nothing is decoded before it is asked for.

    `names` are those of the report's metrics. Raises BadInput for bytes that are no such message,
    here or where they are decoded.
    """

    def __init__(self, path: Path, kind: Kind, data: bytes, names: Sequence[str]) -> None:
        self.kind = kind
        self.data = data
        self._path = path
        self._names = names
        self._metrics: dict[int, wire.Span] = {}
        self._fields = _FIELDS[kind]
        self._parts: dict[int, list[wire.Span]] = {}
        with self.damage():
            self._split()

    @contextmanager
    def damage(self) -> Iterator[None]:
        """Report what can't be decoded as damage of the report."""
        try:
            yield
        except (ValueError, IndexError) as error:
            raise damaged(self._path, str(error)) from None

    def _split(self) -> None:
        data, place, end = self.data, 0, len(self.data)
        metric_key = self._fields.metrics << 3 | 2
        metrics, count = self._metrics, 0
        while place < end:
            if data[place] != metric_key:
                field, start, stop = next(wire.spans(data, place, end))
                self._parts.setdefault(field, []).append((start, stop))
                place = stop if stop >= 0 else wire.varint(data, wire.varint(data, place)[1])[1]
                continue
            # Nine tenths of all fields: without a call for each, this takes a third of the time.
            size, place = data[place + 1], place + 2
            if size > 0x7F:
                size, place = wire.varint(data, place - 1)
            stop = place + size
            if stop > end or data[place] != _NAME:
                raise ValueError("a metric without a name")
            name, place = data[place + 1], place + 2
            if name > 0x7F and data[place] <= 0x7F:
                name, place = name - 0x80 + (data[place] << 7), place + 1
            elif name > 0x7F:
                name, place = wire.varint(data, place - 1)
            metrics[name] = place, stop
            place = stop
            count += 1
            if count > _MOST_METRICS:
                raise ValueError(f"more than {_MOST_METRICS:,} metrics")

    def decoded(self, decode: Callable[[bytes, int, int], _Decoded], span: wire.Span) -> _Decoded:
        """What a function makes of a part of the bytes."""
        with self.damage():
            return decode(self.data, *span)

    @cached_property
    def metrics(self) -> Mapping[str, wire.Span]:
        """Where the metrics are, by name."""
        with self.damage():
            return {self._names[number]: span for number, span in self._metrics.items()}

    def metric_by_name(self, name: str) -> Metric | None:
        """A metric; None where it was not recorded."""
        span = self.metrics.get(name)
        return Metric(self, span) if span else None

    def nvtx(self) -> tuple[str, ...]:
        """The names of the enclosing NVTX ranges, by domain, outermost first."""
        with self.damage():
            return tuple(map(without_homes, self._ranges()))

    def _ranges(self) -> Iterator[str]:
        for state in map(wire.decode, self._all(self._fields.nvtx)):
            domains = [wire.number(domain, _NUMBER_OF) for domain in wire.messages(state, _DOMAINS)]
            threads = wire.messages(state, _THREADS)
            pushed = [stack for thread in threads for stack in wire.messages(thread, _STACKS)]
            started = wire.messages(state, _STARTED)
            for domain in domains:
                for name, ranges in ((_PUSHED_NAME, pushed), (_STARTED_NAME, started)):
                    for stack in ranges:
                        if wire.number(stack, _NUMBER_OF) == domain:
                            for entry in wire.messages(stack, _ENTRIES):
                                yield wire.text(entry, name)

    def rules(self) -> tuple[bytes, ...]:
        """The results of ncu's rules, undecoded."""
        return tuple(self._all(self._fields.rules))

    def sources(self) -> frozenset[int]:
        """The numbers of the sources that hold its machine code and text."""
        with self.damage():
            if self._fields.source:
                references = map(wire.decode, self._all(self._fields.source))
                return frozenset(wire.number(each, _SOURCE_NUMBER) for each in references)
        return frozenset(
            start for start, end in self._parts.get(self._fields.references, ()) if end < 0
        )

    def code(self) -> bytes:
        """The fields by which the vendor's reader finds the machine code, as a message."""
        return b"".join(
            wire.encoded(field, value)
            for field in sorted(self._fields.code)
            for value in self._values(field)
        )

    def kernel_name(self, field: int) -> str:
        """A name of the kernel (MANGLED, FUNCTION or DEMANGLED), the mangled one where it is empty;
        of other work, what it is."""
        if self.kind is not Kind.kernel:
            return _WORDS[self.kind]
        names = [self._all(number)[-1:] for number in (field, MANGLED)]
        with self.damage():
            if [] in names:
                raise ValueError("a launch without a name")
            name = names[0][0] or names[1][0]
            if len(name) > _LONGEST_NAME:
                raise ValueError(f"a name of {len(name):,} bytes")
        return without_homes(str(name, "utf-8", "replace"))

    def _all(self, field: int) -> list[bytes]:
        return [value for value in self._values(field) if isinstance(value, bytes)]

    def _values(self, field: int) -> list[int | bytes]:
        spans = self._parts.get(field, ())
        return [start if end < 0 else self.data[start:end] for start, end in spans]


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


def rule_results(recorded: Iterable[bytes]) -> tuple[RuleResult, ...]:
    """The results of messages, one for each of their items; undecodable ones are left out."""
    return tuple(result for data in recorded for result in _results(data))


def _results(data: bytes) -> Iterator[RuleResult]:
    try:
        result = wire.decode(data)
    except ValueError:
        return
    for body in wire.messages(result, _BODY):
        for item in wire.messages(body, _ITEMS):
            yield _result(result, item)


def _result(result: wire.Message, item: wire.Message) -> RuleResult:
    message = (wire.messages(item, _MESSAGE) or [{}])[-1]
    speedup = (wire.messages(item, _SPEEDUP) or [{}])[-1]
    estimates = [value for value in speedup.get(_ESTIMATE, ()) if isinstance(value, bytes)]
    return RuleResult(
        rule=wire.text(result, _RULE),
        section=wire.text(result, _SECTION),
        kind=_RULE_KINDS.get(wire.number(message, _RULE_KIND), "none"),
        title=without_homes(wire.text(message, _TITLE) or wire.text(result, _RULE_NAME)),
        message=plain_text(wire.text(message, _TEXT)),
        speedup=wire.floating(estimates[-1], 0, len(estimates[-1])) / 100 if estimates else None,
        scope=_SCOPES.get(wire.number(speedup, _SCOPE), ""),
    )


def plain_text(message: str) -> str:
    """A message without marks of links, of which ncu shows the address or the text."""
    text = _MARK.sub(lambda mark: mark["first" if mark["kind"] == "url" else "second"], message)
    return without_homes(text.strip())
