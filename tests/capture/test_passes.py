"""Planned replay passes against those that ncu took on an H200, and without NVIDIA's library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import Result

from profkit.analysis.replay_plan import lists_of, parts_of_set, subject_of
from profkit.capture.passes import key_of, passes, passes_of_each, scheduled
from profkit.capture.perfworks import FILE, library_path
from profkit.capture.sections import (
    CAPABILITIES,
    chip_of,
    section_metrics,
    section_names,
    set_sections,
)
from profkit.core.text_files import shipped_text
from tests.conftest import NIGHTLY, ROOT

Cli = Callable[..., Result]
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


EVERY_CAPABILITY = sorted(set(CAPABILITIES.values()))


@needs_library
def test_passes_are_those_that_ncu_took() -> None:
    planned = passes_of_each("GH100", [names for names, _ in RECORDED])
    assert {item.source for item in planned} == {"library"}
    assert [item.count for item in planned] == [count for _, count in RECORDED]


@needs_library
@pytest.mark.parametrize("capability", EVERY_CAPABILITY if NIGHTLY else EVERY_CAPABILITY[::4])
def test_every_set_has_passes_on_every_capability(capability: str) -> None:
    """By day on a fourth of them: the library takes a second for each."""
    planned = passes_of_each(chip_of(capability) or "", list(set_sections().values()))
    assert {item.source for item in planned} == {"library"}
    by_set = {name: item.count for name, item in zip(set_sections(), planned, strict=True)}
    assert 1 < by_set["basic"] < by_set["detailed"] < by_set["full"] < 60


@needs_library
def test_the_tables_counts_of_the_full_set_are_the_librarys() -> None:
    full = list(set_sections()["full"])
    lists = [full, *([part] for part in full), *([x for x in full if x != part] for part in full)]
    planned = passes_of_each("GA100", lists)
    assert planned == scheduled("GA100", lists)


def catalog_lists(chip: str) -> list[Sequence[str]]:
    return lists_of(parts_of_set("catalog", subject_of(chip)))


@needs_library
def test_the_tables_counts_of_the_catalog_are_the_librarys() -> None:
    assert passes_of_each("GB202", catalog_lists("GB202")) == scheduled(
        "GB202", catalog_lists("GB202")
    )


@pytest.mark.parametrize("chip", CAPABILITIES)
def test_the_catalog_is_planned_without_asking_the_library(chip: str) -> None:
    """Which takes a second of CPU; a catalog that changed needs `python -m kernels.pass_table`."""
    families = json.loads(shipped_text("profkit.capture", "pass_table.json"))["families"]
    (named,) = [row["named"] for row in families if chip in row["chips"]]
    assert named.keys() >= set(map(key_of, catalog_lists(chip)))


@needs_library
def test_names_that_a_chip_lacks_are_listed() -> None:
    names = ["dram__bytes_read.sum", "dram__bytes_op_read.sum", "dram__byts.sum"]
    free = ["launch__grid_size", "inst_executed", "smsp__pcsamp_sample_count", "SpeedOfLight"]
    assert passes("GH100", [*names, *free]).unknown == ("dram__bytes_op_read.sum", "dram__byts.sum")
    assert passes("GB202", names).unknown == ("dram__bytes_read.sum", "dram__byts.sum")


def test_metrics_of_the_launch_and_the_device_take_one_pass() -> None:
    planned = passes("GH100", ["launch__grid_size", "device__attribute_chip"])
    assert (planned.count, planned.unknown) == (1, ())


def test_sections_have_metrics_on_each_capability() -> None:
    assert "dram__cycles_elapsed.avg.per_second" in section_metrics("SpeedOfLight", "9.0")
    assert "dram__cycles_elapsed.avg.per_second" not in section_metrics("SpeedOfLight", "12.1")
    assert set(SECTIONS) <= set(section_names())


QUESTION = """
import json, sys
from profkit.capture.passes import passes_of_each, scheduled
rows = passes_of_each("GH100", json.loads(sys.argv[1]))
print(json.dumps([[row.count, row.unknown, row.source, row.problem] for row in rows]))
"""


@pytest.fixture(params=["none", "text", "other library", "folder"])
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """An environment in which the ncu-report package has something else for a library."""
    package = tmp_path / "ncu_report"
    package.mkdir()
    (package / "__init__.py").touch()
    if request.param == "text":
        (package / FILE).write_text("not a library")
    elif request.param == "other library":
        import _json

        (package / FILE).symlink_to(_json.__file__)
    elif request.param == "folder":
        (package / FILE).mkdir()
    return os.environ | {"PYTHONPATH": str(tmp_path)}


def test_without_a_usable_library_a_table_answers(hostile: dict[str, str]) -> None:
    lists = [*(names for names, _ in RECORDED), ["dram__bytes_op_read.sum", "nothing__of.sum"]]
    finished = subprocess.run(
        [sys.executable, "-c", QUESTION, json.dumps(lists)],
        env=hostile,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    *planned, odd = json.loads(finished.stdout)
    assert [count for count, *_ in planned] == [count for _, count in RECORDED]
    assert {source for _, _, source, _ in planned} == {"table"}
    assert all(problem for *_, problem in planned)
    assert odd[1] == ["dram__bytes_op_read.sum"]


@needs_library
def test_a_metric_that_no_chip_has_takes_no_pass(profkit_cli: Cli) -> None:
    names = "dram__bytes_read.sum,foo__bar.sum,a"
    told = json.loads(
        profkit_cli("plan", "--gpu", "H200", "--metrics", names, "--format", "json").stdout
    )
    assert told["unknown"] == ["foo__bar.sum", "a"]
    assert [part["alone"] for part in told["parts"]] == [1, 0, 0]
    nothing = profkit_cli("plan", "--gpu", "H200", "--metrics", "foo__bar.sum")
    assert nothing.exit_code == 2
    assert "GH100 has none of: foo__bar.sum" in nothing.stderr
