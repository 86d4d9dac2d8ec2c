"""Several reports of one program as one, its launches in their order.

Launches name metrics by places in the names of all blocks so far, which have no name twice, and
their code by numbers that each report counts from the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from profkit.core.errors import BadInput
from profkit.core.regular_file import open_regular
from profkit.report import wire
from profkit.report.action import ReportFile
from profkit.report.framing import MAGIC, Kind, Record, damaged, walk

_SOURCES, _LAUNCHES, _NAMES, _PAYLOAD_SIZE, _PROCESS = 1, 2, 4, 5, 6  # of a block's header
_METRIC, _CODE = 13, 15  # of a launch: each is a message, or names one, by its first field
_NUMBER = 1
_MODULE = 32  # bits of a number of code below that of its module, in all of 216 reports


def join(reports: Sequence[Path], joined: Path) -> None:
    """Write the launches of reports of one program as one report, uncompressed.

    The session is the first one's. Raises BadInput where a report can't be read or has ranges.
    """
    content: list[bytes] = []
    places: dict[str, int] = {}
    codes = 0
    for path in reports:
        with open_regular(path) as opened:
            records: list[Record] = []
            framing = walk(path, opened, records.append)
            file = ReportFile(path, opened, framing.names)
        if {record.kind for record in records} - {Kind.source, Kind.kernel}:
            raise BadInput(f"{path}: ranges can't be joined", "profile kernels")
        fresh = [name for name in framing.names if name not in places]
        places |= {name: len(places) + place for place, name in enumerate(fresh)}
        report = file.read(0, framing.size)
        try:
            if content:
                content += _blocks(report, fresh, [places[name] for name in framing.names], codes)
            else:
                content = [report]
            sources = [_number(each.data) for each in records if each.kind is Kind.source]
            codes += max(sources, default=0) >> _MODULE << _MODULE
        except ValueError as error:
            raise damaged(path, str(error)) from None
    joined.write_bytes(b"".join(content))


def _blocks(
    report: bytes, fresh: Sequence[str], numbers: Sequence[int], codes: int
) -> Iterator[bytes]:
    """A report's blocks behind others: `numbers` are those of its metrics' names there, of which
    some are `fresh`, and `codes` the highest number of a module so far."""
    table = b"".join(wire.encoded(_NUMBER, name.encode()) for name in fresh)
    _, place = _prefixed(report, len(MAGIC))
    while place < len(report):
        message, place = _prefixed(report, place)
        header = wire.decode(message)
        counts = {field: wire.number(header, field) for field in (_SOURCES, _LAUNCHES)}
        records: list[bytes] = []
        for field, count in counts.items():
            for _ in range(count):
                data, place = _prefixed(report, place)
                source = field == _SOURCES
                records.append(
                    _renumbered(data, _number(data) + codes)
                    if source
                    else _launch(data, numbers, codes)
                )
        if records:
            payload = b"".join(map(wire.prefixed, records))
            fields: dict[int, int | bytes] = {**counts, _NAMES: table, _PAYLOAD_SIZE: len(payload)}
            if _PROCESS in header:
                fields[_PROCESS] = header[_PROCESS][0]
            yield wire.prefixed(wire.message(fields)) + payload
            table = b""


def _prefixed(data: bytes, place: int) -> tuple[bytes, int]:
    """A message behind its length, and the place after it."""
    start = place + 4
    end = start + int.from_bytes(data[place:start], "little")
    return data[start:end], end


def _launch(data: bytes, numbers: Sequence[int], codes: int) -> bytes:
    """A launch with its numbers changed; all else is copied as it is."""
    parts: list[bytes] = []
    copied = 0
    for field, start, end in wire.spans(data, 0, len(data)):
        if field in {_METRIC, _CODE}:
            value = data[start:end]
            number = _number(value)
            changed = numbers[number] if field == _METRIC else number + codes
            before = start - (len(wire.encoded(field, value)) - len(value))
            parts += [data[copied:before], wire.encoded(field, _renumbered(value, changed))]
            copied = end
    return b"".join((*parts, data[copied:]))


def _renumbered(data: bytes, number: int) -> bytes:
    """A message, whose first field is its number, with another one."""
    old = wire.encoded(_NUMBER, _number(data))
    if not data.startswith(old):
        raise ValueError("a message that does not begin with its number")
    return wire.encoded(_NUMBER, number) + data[len(old) :]


def _number(data: bytes) -> int:
    field, number, end = next(wire.spans(data, 0, len(data)), (0, 0, 0))
    if (field, end) != (_NUMBER, -1):
        raise ValueError("a message without a number")
    return number
