"""Reports as CSV: one row per launch, catalog names as columns, empty where missing.

`doubtful` lists the quantities of a row with impossible values, separated by spaces.
"""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from profkit.report.catalog import catalog
from profkit.report.summary import Group, ReportSummary
from profkit.ui.text import literal


def reports_csv(reports: Sequence[tuple[ReportSummary, Sequence[Group]]], top: int) -> str:
    """The launches of the `top` groups (0: all) of each report, in launch order."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = list(catalog().quantities)
    writer.writerow(["report", "launch", "kernel", "nvtx", "gpu", "doubtful", *names])
    for report, groups in reports:
        launches = [launch for group in groups[: top or None] for launch in group.launches]
        for launch in sorted(launches, key=lambda item: item.index):
            writer.writerow(
                [
                    literal(Path(report.path).name),
                    launch.index,
                    literal(launch.name),
                    literal("/".join(launch.launch.nvtx)),
                    literal(launch.gpu.name),
                    " ".join(name for name in names if name in launch.impossible),
                    *(repr(launch.values[name]) if name in launch.values else "" for name in names),
                ]
            )
    return out.getvalue()
