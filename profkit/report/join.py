"""Several reports of one program as one, its launches in their order.

Launches name metrics by places in the names of all blocks so far, which have no name twice, and
their code by numbers that each report counts from the start.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from profkit.core.errors import BadInput
from profkit.core.regular_file import open_regular
from profkit.report.action import ReportFile, block
from profkit.report.framing import COUNTS, MAGIC, Kind, Record, decoding, walk
from profkit.report.messages import decode

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
        with decoding(path):
            if content:
                content += _blocks(report, fresh, [places[name] for name in framing.names], codes)
            else:
                content = [report]
            sources = [
                decode("SourceData", each.data).reference
                for each in records
                if each.kind is Kind.source
            ]
            codes += max(sources, default=0) >> _MODULE << _MODULE
    joined.write_bytes(b"".join(content))


def _blocks(
    report: bytes, fresh: Sequence[str], numbers: Sequence[int], codes: int
) -> Iterator[bytes]:
    """A report's blocks behind others: `numbers` are those of its metrics' names there, of which
    some are `fresh`, and `codes` the highest number of a module so far."""
    names = fresh
    _, place = _prefixed(report, len(MAGIC))
    while place < len(report):
        message, place = _prefixed(report, place)
        header = decode("BlockHeader", message)
        records: dict[Kind, list[bytes]] = {}
        for kind in (Kind.source, Kind.kernel):
            for _ in range(getattr(header, COUNTS[kind])):
                data, place = _prefixed(report, place)
                change = _source if kind is Kind.source else partial(_launch, numbers)
                message = change(data, codes).SerializeToString()
                records.setdefault(kind, []).append(message)
        if records:
            process = {"process": header.process} if header.HasField("process") else {}
            yield block(records, names, **process)
            names = ()


def _prefixed(data: bytes, place: int) -> tuple[bytes, int]:
    """A message behind its length, and the place after it."""
    start = place + 4
    end = start + int.from_bytes(data[place:start], "little")
    return data[start:end], end


def _source(data: bytes, codes: int) -> Any:
    source = decode("SourceData", data)
    source.reference += codes
    return source


def _launch(numbers: Sequence[int], data: bytes, codes: int) -> Any:
    launch = decode("ProfileResult", data)
    launch.source.reference += codes
    for index, recorded in enumerate(launch.metric_results):
        metric = decode("ProfileMetricResult", recorded)
        metric.name_id = numbers[metric.name_id]
        launch.metric_results[index] = metric.SerializeToString()
    return launch
