"""A part of a report holds what the whole holds of its launches, by the vendor's own reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ncu_report
import numpy as np
import pytest
import zstandard

import profkit
from kernels.split import take_apart

RUN = Path("reports/h200/sdpa_s512")


@pytest.fixture(scope="module")
def packed() -> Path:
    (report,) = RUN.glob("*/*.ncu-repz")
    return report


@pytest.fixture(scope="module")
def whole(packed: Path) -> profkit.Report:
    return profkit.load(packed)


@pytest.fixture(scope="module")
def plain(packed: Path) -> bytes:
    with packed.open("rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file).read()


def handles(report: Path) -> list[Any]:
    """The vendor's handles of launches."""
    (launches,) = ncu_report.load_report(str(report))
    return list(launches)


@pytest.fixture(scope="module")
def theirs(packed: Path) -> list[Any]:
    """The whole as the vendor's reader has it, which takes 0.4 GB each time that it is opened."""
    return handles(packed)


def values(action: Any) -> dict[str, object]:
    """Every metric of a launch with its instances, and its kernel's source files."""
    found: dict[str, object] = {}
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        instances = [metric.value(at) for at in range(metric.num_instances())]
        found[name] = (metric.value(), instances)
    return found | {"files": list(action.source_files()), "name": action.name()}


def test_all_launches_are_the_whole(plain: bytes) -> None:
    whole = take_apart(plain)
    assert whole.launches == 19
    assert len(whole.part(range(19))) == len(plain)


@pytest.mark.parametrize("indices", [(0,), (18,), (3, 4, 17)])
def test_a_part_reads_as_its_launches_in_the_whole(
    whole: profkit.Report,
    theirs: list[Any],
    plain: bytes,
    tmp_path: Path,
    indices: tuple[int, ...],
) -> None:
    part = tmp_path / "part.ncu-rep"
    part.write_bytes(take_apart(plain).part(indices))
    taken = profkit.load(part)
    kernels, wanted = taken.kernels, whole.kernels.iloc[list(indices)]
    assert list(kernels["kernel"]) == list(wanted["kernel"])
    assert list(kernels["nvtx"]) == list(wanted["nvtx"])
    for launch, index in zip(handles(part), indices, strict=True):
        np.testing.assert_equal(values(launch), values(theirs[index]))
    assert part.stat().st_size < len(plain) / 2


def test_a_launch_that_there_is_not(plain: bytes) -> None:
    with pytest.raises(IndexError, match="19"):
        take_apart(plain).part([19])


def test_damaged_bytes_are_refused(plain: bytes) -> None:
    with pytest.raises(ValueError, match="no Nsight Compute report"):
        take_apart(b"PK" + plain[2:100])
    with pytest.raises(ValueError, match="cut short"):
        take_apart(plain[: len(plain) // 2])
