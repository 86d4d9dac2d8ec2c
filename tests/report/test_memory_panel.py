"""The table of memory: what its rates and intensities are of."""

from __future__ import annotations

import dataclasses

from profkit.report.panels import grids
from profkit.report.summary import LaunchSummary
from profkit.ui.document import Table
from tests.conftest import h200


def memory(**values: float) -> Table:
    """The table of a recorded launch with other values."""
    launch: LaunchSummary = h200("known").summary.launches[0]
    made = dataclasses.replace(launch, values={**launch.values, **values})
    return next(table for table in grids(made) if table.title == "Memory")


def test_int8_work_counts_for_the_intensity_as_on_the_roofline() -> None:
    """1.19e9 operations over 1e6 bytes are 1,190, whatever floating-point work is beside them."""
    note = memory(ops_tensor_int8=1.19e9, dram_bytes=1e6, arithmetic_intensity=1.549).note
    assert "arithmetic intensity 1,190 INT8 op/B, 1.549 FLOP/B of DRAM traffic" in note


def test_l1_traffic_that_does_not_go_to_registers_is_not_called_nothing() -> None:
    """Copies to shared memory (cp.async) move bytes, and none of them to registers."""
    rows = {row[0]: row for row in memory(l1_bytes=159.5e6, l1_writeback_bandwidth=0.0).rows}
    assert rows["L1"][1] == "159.5 MB"
    assert rows["L1"][3] == "to registers none"


def test_bytes_that_l2_sends_once_for_several_sms_are_told_apart() -> None:
    """2.386 TB/s for 47.33 µs is 112.9 MB; without data in common L1 caches read what L2 sends."""
    launch = h200("sdpa_s512_cudnn").summary.launches[0]
    table = next(table for table in grids(launch) if table.title == "Memory")
    rows = {row[0]: row for row in table.rows}
    assert rows["L2"][3].startswith("output 2.386 TB/s, ")
    assert f"{2.386e12 * 47.33e-6 / 1e6:.1f}" == "112.9"
    assert "L2 output is 112.9 MB, which L1 caches read as 151.0 MB" in table.note
    assert "leaves L2 once" not in memory().note
