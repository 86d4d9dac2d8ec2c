"""Comparisons of made-up reports: kernels of a recorded one by other names, times and values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import structs

from profkit.comparison.comparison import Diff, Side, diff
from profkit.comparison.timed_change import Timings, timings
from profkit.report.summary import LaunchSummary, ReportSummary, groups
from profkit.rules.checklist import Checklist, Wholes, checklist
from profkit.rules.rule_file import shipped_rules
from tests.conftest import h200


@dataclass(frozen=True)
class Made:
    """Launches of a kernel: a launch for each time, with these quantities and NVTX ranges."""

    name: str
    times: Sequence[float]
    values: Mapping[str, float] = field(default_factory=dict)
    nvtx: tuple[str, ...] = ()


def work(size: float) -> Mapping[str, float]:
    """Threads and counters of a kernel whose work grows with the size of its problem."""
    return {
        "grid_size": 1320 * size,
        "block_size": 256.0,
        "flop": 2e9 * size,
        "dram_read_bytes": 3e8 * size,
        "global_load_sectors": 1e7 * size,
        "global_load_bytes_per_sector": 32.0,
        "global_store_sectors": 5e6 * size,
        "global_store_bytes_per_sector": 32.0,
        "instructions_executed": 1e8 * size,
        "threads_per_instruction_predicated": 32.0,
    }


def report_of(*kernels: Made) -> ReportSummary:
    """A report with these kernels; a time or value of NaN was not recorded."""
    known = h200("known").summary
    like = known.launches[0]
    launches: list[LaunchSummary] = []
    for kernel in kernels:
        for time in kernel.times:
            told = dataclasses.replace(
                like.launch, index=len(launches), name=kernel.name, nvtx=kernel.nvtx,
                function=kernel.name,
            )  # fmt: skip
            values = {**like.values, **kernel.values, "duration": time}
            missing = {name: "not collected" for name, one in values.items() if math.isnan(one)}
            launches.append(
                dataclasses.replace(
                    like,
                    launch=told,
                    values={name: one for name, one in values.items() if name not in missing},
                    missing={**like.missing, **missing},
                )
            )
    made = tuple(launches)
    return structs.replace(known, launches=made, groups=groups(made), recorded=len(made))


def side_of(report: ReportSummary, timed: Timings | None = None, *, found: bool = False) -> Side:
    """A side; with `found`, what the shipped rules find in it."""
    nothing = Checklist((), (), (), (), 0, 0, 0, Wholes({}))
    return Side(
        report, checklist(report, shipped_rules()) if found else nothing, timed or timings(None)
    )


def compared(before: Sequence[Made], after: Sequence[Made], *, found: bool = False) -> Diff:
    """The comparison of two reports with these kernels."""
    sides = [side_of(report_of(*kernels), found=found) for kernels in (before, after)]
    return diff(sides[0], sides[1])
