"""Reports of many lean launches, made of a recorded one: names, and 120 metrics without instances.

python benchmarks/lean_reports.py LAUNCHES FILE
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import Any

import zstandard

from profkit.report.action import block
from profkit.report.catalog import catalog
from profkit.report.framing import MAGIC, Kind, Record, walk
from profkit.report.messages import decode, new, prefixed

KNOWN = Path(__file__).parent.parent / "reports" / "h200" / "known.ncu-repz"
METRICS = 120
KERNELS = 50  # names among the launches


def write_lean(target: Path, launches: int) -> None:
    """Write a compressed report of this many launches."""
    records: list[Record] = []
    with KNOWN.open("rb") as known:
        framing = walk(KNOWN, known, records.append)
    kernels = [
        decode("ProfileResult", record.data) for record in records if record.kind is Kind.kernel
    ]
    for kernel in kernels:
        _make_lean(kernel, framing.names)
    version = new("FileHeader", version=7).SerializeToString()
    session = decode("ReportSessionDetails", framing.session[-1])
    with target.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as packed:
        packed.write(MAGIC + prefixed(version))
        packed.write(block({}, framing.names, session_details=session))
        for index in range(launches):
            launch = kernels[index % len(kernels)]
            launch.kernel_function_name = b"kernel_%d" % (index % KERNELS)
            packed.write(block({Kind.kernel: [launch.SerializeToString()]}))


def _make_lean(kernel: Any, names: tuple[str, ...]) -> None:
    """Leave the names, and of the metrics that profkit asks for the values."""
    asked = {*catalog().metric_names, *catalog().device.values()}
    chosen = (
        {"name_id": metric.name_id, "metric_value": metric.metric_value}
        for metric in kernel.metric_results
        if names[metric.name_id] in asked and metric.HasField("metric_value")
    )
    metrics = new("ProfileResult", metric_results=islice(chosen, METRICS)).metric_results
    for field in ("metric_results", "sections", "rule_results", "nvtx"):
        kernel.ClearField(field)
    kernel.metric_results.extend(metrics)


if __name__ == "__main__":
    write_lean(Path(sys.argv[2]), int(sys.argv[1]))
