"""Events of a trace in Chrome's JSON format, as torch.profiler (Kineto) writes it, part by part: a
file of gigabytes takes some hundred megabytes of memory.

Kineto writes what JSON does not allow: bare nan and inf, and names with unescaped quotes or
backslashes. That is corrected; a file that is damaged otherwise is refused.
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import msgspec

from profkit.core.errors import BadInput
from profkit.core.regular_file import open_regular

GZIP = b"\x1f\x8b"  # the first bytes of such a file
LESS = "profile fewer steps: torch.profiler.schedule(wait=1, warmup=1, active=3)"
_AGAIN = "export it again with prof.export_chrome_trace()"
_PART = 1 << 24  # bytes, chosen: the Python objects of their events take some 100 MB
_LARGEST = 16 << 30  # bytes of JSON, chosen: reading takes some minutes
_LONGEST = 1 << 26  # bytes of an event or beside them, chosen: facts of a job of thousands of ranks
_NEAR = 1 << 16  # bytes from a part's end in which the last events are looked for first
_TRIED = 8  # ends of events; between those of a trace lie those of their arguments
_BOM = b"\xef\xbb\xbf"  # UTF-8's, which JSON does not allow
_ARRAY = re.compile(rb"\s*\[(?=\s*\{)")  # the other form of Chrome's: events alone
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(rb"\}\s*,\s*\{")
_BARE = re.compile(rb"([:\[,]\s*)-?(?:nan|inf(?:inity)?)(?=\s*[,\]}])", re.IGNORECASE)
_NAME = re.compile(rb'("name":\s*")(.*)(",\s*"pid":)')
_QUOTE = re.compile(rb'(?<!\\)"')
_ESCAPE = re.compile(rb'\\(u[0-9a-fA-F]{4}|["\\/bfnrt])?')
_FAILURES = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Arguments(
    msgspec.Struct,
    gc=False,
    rename={
        "registers": "registers per thread",
        "shared_memory": "shared memory",
        "graph_node": "graph node id",
    }.get,
):
    """The arguments of an event that are read, of any type."""

    name: Any = None
    device: Any = None
    context: Any = None
    stream: Any = None
    correlation: Any = None
    bytes: Any = None
    grid: Any = None
    block: Any = None
    registers: Any = None
    shared_memory: Any = None
    graph_node: Any = None


class TraceEvent(msgspec.Struct, gc=False):
    """An event with fields of any type; floating point numbers are exact decimals."""

    ph: Any = None
    cat: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    args: Arguments | list[Any] | str | float | bool | None = None


class Facts(msgspec.Struct, rename="camel"):
    """What stands beside the events."""

    base_time_nanoseconds: Any = None
    device_properties: Any = ()
    trace_events: list[TraceEvent] = []


_WHOLE = msgspec.json.Decoder(Facts, float_hook=Decimal)
_PARTS = msgspec.json.Decoder(list[TraceEvent], float_hook=Decimal)


class TraceFile:
    """A trace that is being read; `facts` are those before its events."""

    def __init__(self, path: Path, file: BufferedIOBase) -> None:
        self._path = path
        self._file = file
        self._taken = 0
        self._rest = b""
        self._end = b""  # what the form with an object has after its events
        self.facts = self._head()

    def events(self) -> Iterator[list[TraceEvent]]:
        """All events in parts, in their order. Raises BadInput where the file is damaged."""
        rest, size = self._rest, _PART
        while more := self._more(size):
            rest += more
            part = _first_events(rest)
            if part is None and len(rest) > _LONGEST:
                message = f"no event ends within {_LONGEST >> 20} MiB"
                raise BadInput(f"{self._path}: the trace is not valid JSON ({message})", _AGAIN)
            if part is None:  # an event, or what follows them, is longer
                size *= 2
                continue
            yield part[0]
            rest, size = part[1], _PART
        last = b'{"traceEvents":[' + rest + self._end
        for text in (last, _corrected(last)):
            try:
                whole = _WHOLE.decode(text)
                self.facts.device_properties = (
                    self.facts.device_properties or whole.device_properties
                )
                yield whole.trace_events
                break
            except _FAILURES as error:
                failure = error
        else:
            cut = "truncated" in str(failure) or not rest.strip()
            reason = "is cut off" if cut else f"is not valid JSON ({failure})"
            raise BadInput(f"{self._path}: the trace {reason}", _AGAIN)

    def _head(self) -> Facts:
        text, start = self._begin(), 0
        if array := _ARRAY.match(text):
            self._rest, self._end = text[array.end() :], b"}"
            return Facts()
        more = text
        while more:
            while found := _EVENTS.search(text, start):
                start = found.end()
                try:
                    facts = _WHOLE.decode(_corrected(text[:start] + b"]}"))
                except _FAILURES:
                    continue  # within an argument or a text
                self._rest = text[start:]
                return facts
            start = max(start, len(text) - _NEAR)
            if len(text) > _LONGEST:
                break
            more = self._more(max(_NEAR, len(text)))
            text += more
        fault = "JSON without traceEvents" if text.strip() else "an empty file"
        raise BadInput(
            f"{self._path}: {fault}, hence not a trace",
            "a timeline is an nsys export (.sqlite) or a trace of torch.profiler",
        )

    def _begin(self) -> bytes:
        """The first part of the text, without a mark of its encoding."""
        text = self._more(_NEAR)
        if b"\0" in text[:4] or text[:2] in {b"\xff\xfe", b"\xfe\xff"}:
            raise BadInput(f"{self._path}: a text of UTF-16 or UTF-32, not UTF-8", _AGAIN)
        return text.removeprefix(_BOM)

    def _more(self, size: int) -> bytes:
        try:
            data = self._file.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise BadInput(
                f"{self._path}: the compressed trace is cut off or damaged", _AGAIN
            ) from None
        self._taken += len(data)
        if self._taken > _LARGEST:
            raise BadInput(f"{self._path}: a trace of more than {_LARGEST >> 30} GiB", LESS)
        return data


@contextmanager
def open_trace(path: Path) -> Iterator[TraceFile]:
    """A trace, compressed or not. Raises BadInput for what is none, OSError as `Path.open` does."""
    with open_regular(path) as file:
        if file.peek(len(GZIP)).startswith(GZIP):
            with gzip.open(file) as content:
                yield TraceFile(path, content)
        else:
            yield TraceFile(path, file)


def _first_events(text: bytes) -> tuple[list[TraceEvent], bytes] | None:
    """The events that a text begins with and the rest of it; None where no end of one is found.

    Only at the end of an event is what comes before it an array without its last bracket.
    """
    near = list(_BETWEEN.finditer(text, max(0, len(text) - _NEAR))) or _BETWEEN.finditer(text)
    ends = [match.start() + 1 for match in near][-_TRIED:][::-1]
    for written, end in [
        *((_unchanged, end) for end in ends),
        *((_corrected, end) for end in ends[:1]),
    ]:
        try:
            part = _PARTS.decode(b"[" + written(text[:end]) + b"]")
        except _FAILURES:
            continue
        return part, text[end:].lstrip()[1:]
    return None


def _unchanged(text: bytes) -> bytes:
    return text


def _corrected(text: bytes) -> bytes:
    """A text without what Kineto writes although JSON doesn't allow it."""
    text = text.decode("utf-8", "replace").encode()
    text = _BARE.sub(rb"\1null", text)
    text = _NAME.sub(lambda name: name[1] + _QUOTE.sub(rb'\\"', name[2]) + name[3], text)
    return _ESCAPE.sub(lambda escape: escape[0] if escape[1] else rb"\\", text)
