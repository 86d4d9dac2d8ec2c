"""Planned replay passes against those that ncu took on an H200, and those of NVIDIA's library."""

from __future__ import annotations

import pytest

from kernels.perfworks import Chip, Library, library_path, schedule
from profkit.analysis import replay_plan
from profkit.capture.passes import count_of, passes, passes_of_each, subject_of
from profkit.capture.sections import (
    CAPABILITIES,
    section_metrics,
    section_names,
    set_sections,
)
from profkit.capture.sets import OWN_SETS

needs_library = pytest.mark.skipif(
    library_path() is None, reason="the ncu-report package has no PerfWorks library"
)

SECTIONS = {
    "SpeedOfLight": 10,
    "SourceCounters": 5,
    "PmSampling": 3,
    "PmSampling_WarpStates": 8,
    "WarpStateStats": 9,
    "SchedulerStats": 1,
    "InstructionStats": 3,
    "ComputeWorkloadAnalysis": 11,
    "MemoryWorkloadAnalysis": 9,
    "MemoryWorkloadAnalysis_Chart": 14,
    "MemoryWorkloadAnalysis_Tables": 30,
    "Occupancy": 1,
    "LaunchStats": 1,
    "WorkloadDistribution": 1,
    "SpeedOfLight_HierarchicalTensorRooflineChart": 8,
}
SETS = {"basic": 10, "detailed": 20, "full": 38}
"""ncu 2025.3.1 on an H200: what its progress line reported, and `profiler__replayer_passes`."""
RECORDED = [
    *(([section], count) for section, count in SECTIONS.items()),
    *((list(set_sections()[name]), count) for name, count in SETS.items()),
    (["dram__bytes_read.sum", "dram__bytes_write.sum"], 1),
    (["gpu__time_duration.sum"], 1),
]


def test_passes_are_those_that_ncu_took() -> None:
    planned = passes_of_each("GH100", [names for names, _ in RECORDED])
    assert [item.count for item in planned] == [count for _, count in RECORDED]


@pytest.mark.parametrize("chip", CAPABILITIES)
def test_every_set_has_passes_on_every_chip(chip: str) -> None:
    planned = passes_of_each(chip, list(set_sections().values()))
    assert {item.source for item in planned} == {"library"}
    by_set = {name: item.count for name, item in zip(set_sections(), planned, strict=True)}
    assert 1 < by_set["basic"] < by_set["detailed"] < by_set["full"] < 60


@needs_library
def test_the_tables_counts_are_the_librarys() -> None:
    path = library_path()
    assert path
    library = Chip(Library(path), "GA100")
    own = replay_plan.lists_of(replay_plan.parts_of_set("lean", replay_plan.subject_of("GA100")))
    for names in [*set_sections().values(), *own]:
        (hardware, groups), others = subject_of("GA100", names)
        count = count_of(schedule(library, hardware, groups), others)
        assert count == passes("GA100", names).count


@pytest.mark.parametrize("chip", CAPABILITIES)
@pytest.mark.parametrize("name", [*set_sections(), *OWN_SETS, "rules", "catalog"])
def test_each_part_of_a_set_has_the_librarys_count(name: str, chip: str) -> None:
    """A catalog that changed needs `python -m kernels.pass_table`."""
    lists = replay_plan.lists_of(replay_plan.parts_of_set(name, replay_plan.subject_of(chip)))
    assert {item.source for item in passes_of_each(chip, lists)} == {"library"}


def test_metrics_that_a_chip_lacks_are_listed() -> None:
    names = ["dram__bytes_read.sum", "dram__bytes_op_read.sum"]
    free = ["launch__grid_size", "inst_executed", "smsp__pcsamp_sample_count", "SpeedOfLight"]
    planned = passes("GH100", [*names, *free])
    assert (planned.unknown, planned.source) == (("dram__bytes_op_read.sum",), "table")
    assert passes("GB202", names).unknown == ("dram__bytes_read.sum",)
    assert passes("GH100", ["dram__bytes_read.sum", "a line of text"]).unknown == (
        "a line of text",
    )


def test_metrics_of_the_launch_and_the_device_take_one_pass() -> None:
    planned = passes("GH100", ["launch__grid_size", "device__attribute_chip"])
    assert (planned.count, planned.unknown) == (1, ())


def test_sections_have_metrics_on_each_capability() -> None:
    assert "dram__cycles_elapsed.avg.per_second" in section_metrics("SpeedOfLight", "9.0")
    assert "dram__cycles_elapsed.avg.per_second" not in section_metrics("SpeedOfLight", "12.1")
    assert set(SECTIONS) <= set(section_names())
