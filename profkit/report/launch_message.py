"""A recorded launch as its message: metrics, names, NVTX ranges and results of ncu's rules.

Names of metrics are numbers in the report's table of strings.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import field

from profkit.core.typed_file import Model, Real
from profkit.report import messages
from profkit.report.framing import Kind, damaged, decoding
from profkit.report.names import without_homes

Value = int | float | str
_MOST_METRICS = 100_000  # of a launch; 2,500 are the most of 158 reports
_MOST_INSTANCES = 500_000  # of a metric; 25,000 are the most of 158 reports
_LARGEST = 1e20  # of a metric's value, chosen: counters have 64 bits, rates are below 1e17
_LONGEST_NAME = 1 << 20  # bytes; templates make names of kilobytes
MANGLED = "kernel_mangled_name"
FUNCTION = "kernel_function_name"
DEMANGLED = "kernel_demangled_name"
_METRIC = "ProfileMetricResult"
_RULE_KINDS = {0: "none", 1: "ok", 2: "warning", 3: "error", 4: "optimization"}
_SCOPES = {1: "local", 2: "global"}
_MARK = re.compile(r"@(?P<kind>[a-z]+):(?P<first>[^:@]*):(?P<second>[^@]*)@")
_MESSAGES = {
    Kind.kernel: "ProfileResult", Kind.range: "RangeResult", Kind.command_list: "CmdlistResult",
    Kind.graph: "GraphResult",
}  # fmt: skip
_KINDS = {
    b"\x0a": "string_value", b"\x15": "float_value", b"\x19": "double_value",
    b"\x20": "uint32_value", b"\x28": "uint64_value",
}  # fmt: skip
"""The fields of a value by the byte that an encoded one begins with: that of its first field, which
is the one that counts in ncu_report too."""
_CODE = {
    "thread_id", "api_call_id", "program_handle", "kernel_id", "kernel_mangled_name",
    "kernel_function_name", "kernel_demangled_name", "work_dimensions", "global_work_offset",
    "grid_size", "block_size", "source", "api", "context_id", "references",
}  # fmt: skip
"""Fields that a launch must have, and those by which its machine code is found."""


class Instances(NamedTuple):
    """The instances of a metric in order, NaN for one without a value; `ids` has nothing where none
    has any."""

    ids: Sequence[Value]
    values: Sequence[Value]


class Metric:
    """A metric of a launch as recorded."""

    def __init__(self, value: Value | None, data: bytes, path: Path) -> None:
        self._value = value
        self._data = data
        self._path = path

    @cached_property
    def instances(self) -> Instances:
        """Those of its parts: instructions, opcodes, moments."""
        metric = messages.decode(_METRIC, self._data, is_checked=True)
        elements = metric.metric_value_list
        if len(elements) > _MOST_INSTANCES:
            raise damaged(self._path, f"a metric of more than {_MOST_INSTANCES:,} instances")
        known = any(element.HasField("correlation_id") for element in elements)
        return Instances(
            _values([element.correlation_id for element in elements]) if known else (),
            _values([element.element_value for element in elements]),
        )

    def value(self) -> Value | None:
        """The value, NaN for a number that no counter has; None where there is none."""
        value = self._value
        return value if isinstance(value, str | None) or 0 <= value <= _LARGEST else math.nan

    def numbers(self, least: float = -math.inf) -> list[float]:
        """The values of its instances; raises BadInput for one that is no finite number, or less
        than `least`."""
        values = self.instances.values
        if not all(isinstance(each, int | float) and least <= each < math.inf for each in values):
            raise damaged(self._path, "an instance of a metric that is not a valid number")
        return [float(each) for each in values if not isinstance(each, str)]

    def addresses(self) -> list[int]:
        """What its instances belong to, as program counters."""
        return integers(self.instances.ids)


def integers(values: Iterable[Value]) -> list[int]:
    """Numbers as integers, 0 for what is none."""
    return [
        0 if isinstance(value, str) or not math.isfinite(value) else int(value) for value in values
    ]


def _value(message: Any) -> Value | None:
    kind = _KINDS.get(message.SerializeToString()[:1])
    if kind is None:
        return None
    value: int | float | bytes = getattr(message, kind)
    return messages.text(value) if isinstance(value, bytes) else value


def _values(values: Sequence[Any]) -> list[Value]:
    """Values as numbers and texts, NaN for none: most often all are of one kind."""
    kinds = {value.SerializeToString()[:1] for value in values}
    kind = _KINDS.get(kinds.pop()) if len(kinds) == 1 else None
    if kind and kind != "string_value":
        return [getattr(value, kind) for value in values]
    return [math.nan if (value := _value(each)) is None else value for each in values]


class LaunchMessage:
    """A launch's own message. Raises BadInput for bytes that are none.

    `names` are those of the report's metrics. `is_checked` states that these bytes were decoded
    before.
    """

    def __init__(
        self,
        path: Path,
        kind: Kind,
        data: bytes,
        names: Sequence[str],
        *,
        is_checked: bool = False,
    ) -> None:
        self.kind = kind
        self.size = len(data)
        self._path = path
        self._names = names
        self._is_checked = is_checked
        with decoding(path):
            self._message = messages.decode(_MESSAGES[kind], data, is_checked=is_checked)
            if len(self._message.metric_results) > _MOST_METRICS:
                raise ValueError(f"more than {_MOST_METRICS:,} metrics")
        if not is_checked:
            _ = self.metrics

    @cached_property
    def metrics(self) -> Mapping[str, tuple[Value | None, bytes]]:
        """The values of the metrics and their messages by name."""
        with decoding(self._path):
            return dict(map(self._metric, self._message.metric_results))

    def _metric(self, data: bytes) -> tuple[str, tuple[Value | None, bytes]]:
        kind = "MetricHead" if self._is_checked else _METRIC
        metric = messages.decode(kind, data, is_checked=self._is_checked)
        return self._names[metric.name_id], (_value(metric.metric_value), data)

    def metric_by_name(self, name: str) -> Metric | None:
        """A metric; None where it was not recorded."""
        recorded = self.metrics.get(name)
        return None if recorded is None else Metric(*recorded, self._path)

    def nvtx(self) -> tuple[str, ...]:
        """The names of the enclosing NVTX ranges, by domain, outermost first."""
        return tuple(without_homes(messages.text(name)) for name in self._ranges())

    def _ranges(self) -> Iterator[bytes]:
        state = self._message.nvtx
        pushed = [stack for thread in state.threads for stack in thread.push_pop_domains]
        for domain in state.domains:
            for stack in pushed:
                if stack.id == domain.id:
                    yield from (entry.name for entry in stack.stack)
            for started in state.start_end_domains:
                if started.id == domain.id:
                    yield from (entry.name for entry in started.ranges)

    def rules(self) -> tuple[bytes, ...]:
        """The results of ncu's rules, undecoded."""
        return tuple(result.SerializeToString() for result in self._message.rule_results)

    def sources(self) -> frozenset[int]:
        """The numbers of the sources that hold its machine code and text."""
        if self.kind is Kind.kernel:
            return frozenset({self._message.source.reference})
        return frozenset(self._message.references)

    def code(self) -> bytes:
        """The fields by which the vendor's reader finds the machine code, as a message."""
        fields = {
            field.name: value for field, value in self._message.ListFields() if field.name in _CODE
        }
        encoded: bytes = messages.new(_MESSAGES[self.kind], **fields).SerializeToString()
        return encoded

    def kernel_name(self, field: str) -> str:
        """A name of the kernel (MANGLED, FUNCTION or DEMANGLED), the mangled one where it is empty;
        of other work, what it is."""
        if self.kind is not Kind.kernel:
            return self.kind.value
        name: bytes = getattr(self._message, field) or self._message.kernel_mangled_name
        if len(name) > _LONGEST_NAME:
            raise damaged(self._path, f"a name of {len(name):,} bytes")
        return without_homes(messages.text(name))


class RuleResult(Model, frozen=True, kw_only=True):
    """A result of one of ncu's rules (`kind` is none, ok, optimization, warning or error).

    `estimate` is ncu's estimated speedup as a share of the run time (0.3 = 30% less) for the global
    scope; a local one is of the efficiency of one unit, not of time.
    """

    rule: str
    section: str
    kind: str
    title: str
    message: str
    speedup: Real | None = field(name="estimate")
    scope: str | None


def rule_results(recorded: Iterable[bytes]) -> tuple[RuleResult, ...]:
    """The results of messages, one for each of their items."""
    results = (messages.decode("RuleResult", data) for data in recorded)
    return tuple(_result(result, item) for result in results for item in result.body.items)


def _result(result: Any, item: Any) -> RuleResult:
    message, speedup = item.message, item.speedup
    return RuleResult(
        rule=messages.text(result.identifier),
        section=messages.text(result.section_identifier),
        kind=_RULE_KINDS.get(message.type, "none"),
        title=without_homes(messages.text(message.name) or messages.text(result.display_name)),
        message=plain_text(messages.text(message.message)),
        speedup=speedup.value / 100 if speedup.HasField("value") else None,
        scope=_SCOPES.get(speedup.speedup_type),
    )


def plain_text(message: str) -> str:
    """A message without marks of links, of which ncu shows the address or the text."""
    text = _MARK.sub(lambda mark: mark["first" if mark["kind"] == "url" else "second"], message)
    return without_homes(text.strip())
