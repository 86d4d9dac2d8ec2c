"""The Python interface: `profkit.load`."""

from __future__ import annotations

import pandas as pd
import pytest

import profkit
from profkit.core.errors import BadInput, UsageError
from profkit.report.catalog import catalog
from tests.conftest import H200, ROOT, h200, needs_reader


def test_kernels_is_a_table_with_a_row_a_launch() -> None:
    report = h200("known")
    frame = report.kernels
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == len(report) == 13
    assert list(frame.columns[2:]) == list(catalog().quantities)
    assert frame.loc[2, "duration"] == pytest.approx(330.176e-6)
    assert (report.missing.notna() & (report.missing != "") == frame.iloc[:, 2:].isna()).all().all()


def test_gpu_and_session_are_reported() -> None:
    report = h200("known")
    assert report.gpu.name == "NVIDIA H200"
    assert report.gpu.cc == (9, 0)
    assert report.gpu.dram_peak == pytest.approx(4.8e12, rel=0.005)
    assert report.session.cuda_version == "13.0"


def test_stalls_add_up() -> None:
    for kernel in h200("known"):
        stalls = kernel.stalls()
        assert stalls["share"].sum() == pytest.approx(1)
        assert stalls["cycles"].is_monotonic_decreasing
        assert (stalls["cycles"] >= 0).all()


@needs_reader
def test_source_lines_point_at_the_conflicting_load() -> None:
    kernel = h200("known").kernel(2)
    lines = kernel.source_lines("shared_wavefronts_excessive")
    assert lines["value"].sum() == kernel["shared_wavefronts_excessive"]
    assert lines["share"].sum() == pytest.approx(1)
    assert lines.loc[0, "share"] == 1
    file = lines.loc[0, "file"]
    assert isinstance(file, str)
    assert file.endswith("known.cu")
    samples = kernel.source_lines("samples")
    assert samples["value"].sum() == kernel["pc_samples"]


@needs_reader
def test_instructions_carry_their_machine_code() -> None:
    frame = h200("known").kernel(4).instructions("instructions_executed", "samples")
    assert frame["instructions_executed"].sum() == h200("known").kernel(4)["instructions_executed"]
    assert frame["sass"].str.contains("FFMA").sum() > 50
    own = h200("known").kernel(4).instructions("smsp__pcsamp_sample_count")
    assert own["smsp__pcsamp_sample_count"].sum() == frame["samples"].sum()


def test_time_series_show_the_kernel_between_idle_ends() -> None:
    series = h200("sdpa_s512_flash").kernel(0).time_series("tensor_busy")
    assert series["time"].is_monotonic_increasing
    assert series["time"].iloc[0] == 0
    assert 0.4 < series["value"].max() <= 1
    busy = series[series["value"] > 0.05]
    length = busy["time"].iloc[-1] - busy["time"].iloc[0]
    assert length == pytest.approx(69.4e-6, rel=0.15)


def test_filters_keep_the_launches_index() -> None:
    report = profkit.load(H200 / "known.ncu-repz", kernel="^transpose")
    assert [kernel.summary.index for kernel in report] == [2, 3]
    assert report.kernel(3).name.startswith("transpose_padded")
    assert list(report.kernels.index) == [2, 3]
    with pytest.raises(UsageError, match="no launch 0; its launches are 2, 3"):
        report.kernel(0)


def test_wrong_names_get_a_suggestion() -> None:
    kernel = h200("known").kernel(0)
    with pytest.raises(UsageError, match="did you mean dram_busy"):
        kernel["dram_bussy"]
    with pytest.raises(UsageError, match="dram_busy"):
        kernel.source_lines("dram_busy")
    with pytest.raises(UsageError, match="did you mean"):
        kernel.time_series("tensor_bussy")


def test_what_was_not_recorded_names_its_section() -> None:
    kernel = h200("sdpa_s512_flash_set_basic").kernel(0)
    with pytest.raises(BadInput, match="tensor_busy; record with `ncu --section PmSampling`"):
        kernel.time_series("tensor_busy")
    with pytest.raises(BadInput, match="ncu --section SourceCounters"):
        kernel.source_lines("samples")


def test_views_for_notebooks_are_short() -> None:
    report = h200("sdpa_s512_math")
    assert "14 launches" in report._repr_html_()
    assert len(report._repr_html_()) < 12_000
    assert repr(report) == "<Report sdpa_s512_math.ncu-repz: 14 launches on NVIDIA H200>"
    assert repr(h200("known").kernel(2)).startswith("<Kernel 2: transpose_conflict")


def test_a_run_is_loaded_by_its_folder() -> None:
    report = profkit.load(H200 / "sdpa_s512")
    assert report.path.name == "sdpa_s512.ncu-repz"
    assert len(report) == 19
    with pytest.raises(UsageError, match="reports; name one of them"):
        profkit.load(H200)
    with pytest.raises(BadInput, match="no Nsight Compute report"):
        profkit.load(ROOT / "docs")


def test_impossible_values_of_a_kernel_are_reported() -> None:
    report = h200("known")
    wrong, right = report.kernel(4), report.kernel(5)
    assert wrong.doubtful == {"l2_read_hit_rate"}
    (warning,) = wrong.warnings
    assert "l2_read_hit_rate" in warning
    assert "115.9%" in warning
    assert (right.doubtful, right.warnings) == (frozenset(), ())
