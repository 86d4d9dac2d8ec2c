"""Joined reports against the vendor's reader: each launch with its metrics, code and rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import profkit
from profkit.core.errors import BadInput
from profkit.report.join import join
from tests.conftest import plain_bytes

ncu_report = pytest.importorskip("ncu_report", reason="NVIDIA's reader is hidden")

REPORTS = ("sdpa_s512_flash_set_basic", "sdpa_s512_flash", "sdpa_s512_flash_two_metrics")
_INSTRUCTIONS = 40


def launches(path: Path) -> list[tuple[Any, ...]]:
    """What the vendor's reader gives of each launch."""
    (found,) = ncu_report.load_report(str(path))
    return [
        (
            launch.name(),
            {name: content(launch[name]) for name in launch.metric_names()},
            code(launch),
            launch.rule_results_as_dicts(),
        )
        for launch in found
    ]


def content(metric: Any) -> tuple[Any, ...]:
    return (
        metric.value() if metric.has_value() else None,
        [metric.value(place) for place in range(metric.num_instances())],
    )


def code(launch: Any) -> list[str]:
    if "inst_executed" not in launch.metric_names():
        return []
    places = launch["inst_executed"].correlation_ids()
    count = min(_INSTRUCTIONS, launch["inst_executed"].num_instances())
    return [launch.sass_by_pc(places.value(place)) for place in range(count)]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("reports")
    paths = [folder / f"{name}.ncu-rep" for name in REPORTS]
    for path in paths:
        path.write_bytes(plain_bytes(path.stem))
    return paths


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 1)])
def test_launches_are_those_of_the_reports(
    reports: list[Path], order: tuple[int, ...], tmp_path: Path
) -> None:
    parts = [reports[place] for place in order]
    joined = tmp_path / "joined.ncu-rep"
    join(parts, joined)
    expected = [launch for part in parts for launch in launches(part)]
    assert launches(joined) == expected
    assert any(any(code) for _, _, code, _ in expected)
    own = profkit.load(joined)
    assert [kernel.duration for kernel in own] == [
        kernel.duration for part in parts for kernel in profkit.load(part)
    ]
    assert [kernel.summary.warnings for kernel in own] == [
        kernel.summary.warnings for part in parts for kernel in profkit.load(part)
    ]


def test_what_is_no_report_is_refused(reports: list[Path], tmp_path: Path) -> None:
    cut = tmp_path / "cut.ncu-rep"
    cut.write_bytes(reports[1].read_bytes()[:-100])
    with pytest.raises(BadInput, match="truncated"):
        join([reports[0], cut], tmp_path / "joined.ncu-rep")
