"""Reports of many lean launches, made of a recorded one: names, and 120 metrics without instances.

python benchmarks/lean_reports.py LAUNCHES FILE
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import zstandard

from profkit.report import wire
from profkit.report.action import block
from profkit.report.catalog import catalog
from profkit.report.framing import MAGIC, Kind, Record, walk

KNOWN = Path(__file__).parent.parent / "reports" / "h200" / "known.ncu-repz"
METRICS = 120
KERNELS = 50  # names among the launches
_IDENTITY = range(1, 12)  # fields of a launch: its names, grid and block
_FUNCTION, _METRICS, _NAME, _VALUE = 6, 13, 1, 2
_SESSION = 3  # of a block's header


def write_lean(target: Path, launches: int) -> None:
    """Write a compressed report of this many launches."""
    records: list[Record] = []
    with KNOWN.open("rb") as known:
        framing = walk(KNOWN, known, records.append)
    kernels = [wire.decode(record.data) for record in records if record.kind is Kind.kernel]
    metrics = [b"".join(islice(_asked(kernel, framing.names), METRICS)) for kernel in kernels]
    session = wire.prefixed(wire.message({_SESSION: framing.session[-1]}))
    with target.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as packed:
        packed.write(MAGIC + wire.prefixed(wire.message({1: 7})) + session)
        packed.write(block({}, framing.names))
        for index in range(launches):
            of_launch = index % len(kernels)
            identity = {field: kernels[of_launch][field][-1] for field in _IDENTITY}
            identity[_FUNCTION] = b"kernel_%d" % (index % KERNELS)
            launch = wire.message(identity) + metrics[of_launch]
            packed.write(block({Kind.kernel: [launch]}))


def _asked(kernel: wire.Message, names: tuple[str, ...]) -> Iterator[bytes]:
    """The metrics that profkit asks for, without instances."""
    asked = {*catalog().metric_names, *catalog().device.values()}
    for metric in wire.messages(kernel, _METRICS):
        name = wire.number(metric, _NAME)
        if names[name] in asked and _VALUE in metric:
            value = wire.message({_NAME: name, _VALUE: metric[_VALUE][-1]})
            yield wire.encoded(_METRICS, value)


if __name__ == "__main__":
    write_lean(Path(sys.argv[2]), int(sys.argv[1]))
