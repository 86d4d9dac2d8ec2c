"""The points of runs: recorded ones of profkit, and files of other tools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from profkit.application.picks_file import PICKS, PicksFile
from profkit.core.typed_file import encode
from profkit.history import addition
from profkit.history.addition import import_run, jobs
from profkit.history.readers import Stated, medians_of
from profkit.history.record import Conditions, Point, Series
from profkit.history.store import Store
from profkit.runs.manifest import Manifest
from profkit.timeline import RUN_FILE
from tests.conftest import H200, ROOT, Cli, baseline_folder, story_folder
from tests.trial.simulated_program import SimulatedProgram

DATA = ROOT / "tests" / "data" / "history"
NOTHING = Stated()
RUN = H200 / "sdpa_s512" / "20261122T101047Z-5b8ba1"
SHAPE = "b32-h8-s512-d64-fp16"


def points_in(path: Path, stated: Stated = NOTHING) -> list[Point]:
    runs = [import_run(job, stated) for job in jobs(path)]
    return [point for run in runs if run is not None for point in run.points]


def test_a_run_of_profile_has_a_point_for_each_variant() -> None:
    points = points_in(RUN)
    document = json.loads((RUN / "latency.json").read_text(encoding="utf-8"))
    assert [point.series.variant for point in points] == [
        series["label"] for series in document["series"]
    ]
    for point, series in zip(points, document["series"], strict=True):
        assert point.series == Series("sdpa_s512", series["label"], SHAPE, "NVIDIA H200", "")
        medians = [np.median(block["samples"]) for block in series["blocks"]]
        assert point.block_medians == pytest.approx(medians, rel=1e-15)
    assert points[0].conditions == Conditions(
        gpu_uuid="GPU-1c33d622-25a0-f42b-61f5-048b21147f48",
        driver="580.159.04",
        cuda="13.0",
        clock_policy="application clock 1980 MHz, power limit 700 W",
        timer="events",
        cache_policy="cold",
        profkit="0.1.0",
    )
    assert points[0].time == datetime(2026, 11, 22, 10, 11, 5, tzinfo=UTC)
    assert points[0].commit == "2baf3e035ac02a40771a65e1676cc967dbef8abf-dirty"
    assert {point.source for point in points} == {str(RUN)}


def test_a_run_is_the_same_by_its_folder_and_by_its_file() -> None:
    assert points_in(RUN) == points_in(RUN / "latency.json") == points_in(RUN.parent)


def test_no_reading_is_part_of_a_key(tmp_path: Path) -> None:
    """Another clock, temperature or power changes neither series nor conditions."""
    path = tmp_path / "a.json"
    document = json.loads((H200 / "timing" / "flash_cudnn.json").read_text(encoding="utf-8"))
    path.write_text(json.dumps(document), encoding="utf-8")
    before = points_in(path)
    for series in document["series"]:
        for block in series["blocks"]:
            block["gpu"] = {"sm_clock": 1e9, "power": 1.0, "temperature": 99, "throttled_by": []}
            block["samples"] = [2 * sample for sample in block["samples"]]
    path.write_text(json.dumps(document), encoding="utf-8")
    for one, other in zip(before, points_in(path), strict=True):
        assert (one.series, one.conditions) == (other.series, other.conditions)
        assert other.block_medians == tuple(2 * median for median in one.block_medians)
        assert one.run != other.run


def test_the_old_commit_of_a_comparison_is_no_new_point() -> None:
    (point,) = points_in(H200 / "timing" / "against.json")
    assert (point.series.target, point.series.variant) == ("sdpa_s512", "custom")


def test_a_profile_without_latencies_has_the_durations_of_ncu(tmp_path: Path) -> None:
    run = Path(shutil.copytree(RUN, tmp_path / "run"))
    (run / "latency.json").unlink()
    points = points_in(run)
    (hopper,) = (point for point in points if point.series.variant == "hopper")
    assert hopper.series.shape == "grid 132, block 640"
    assert hopper.conditions.timer == "ncu 2025.3.1"
    assert hopper.conditions.cache_policy == "all"
    assert hopper.block_medians == (42.464e-6,)


def test_a_time_with_work_of_ncus_is_no_point(tmp_path: Path) -> None:
    """A range of two matrix products of 312 µs in all has 583 by ncu."""
    result = addition.add_runs(Store(tmp_path), [H200 / "matmul"], NOTHING)
    assert not result.points
    assert result.notes == ["1 launch left out: ncu's time of the launch includes its own work"]


def test_an_application_has_its_steps(tmp_path: Path) -> None:
    """They are as long as without a profiler: within 10%, nsys slows this program by little."""
    story = story_folder("agent_environment")
    shutil.copy(story / "before.sqlite", tmp_path / RUN_FILE)
    (tmp_path / PICKS).write_text(encode(PicksFile(explain=0.9)), encoding="utf-8")
    manifest = Manifest(created="2026-11-23T06:22:58+00:00", target="agent")
    (tmp_path / "manifest.json").write_text(encode(manifest), encoding="utf-8")
    (point,) = points_in(tmp_path)
    assert (point.series.target, point.series.variant) == ("agent", "step")
    assert point.conditions.timer == "nsys"
    plain = json.loads((story / "times.json").read_text(encoding="utf-8"))["before"]["median_ms"]
    assert np.median(point.block_medians) == pytest.approx(plain * 1e-3, rel=0.1)


def test_a_trial_has_its_unit_with_each_switch_that_keeps_results(tmp_path: Path) -> None:
    simulated = SimulatedProgram(gains={"tf32": 1.4, "bf16": 1.8}, moved={"bf16": 0.5})
    trial = simulated.trial("tf32", "bf16", "gc-frozen")
    (tmp_path / "try.json").write_text(encode(trial), encoding="utf-8")
    points = {point.series.variant: point for point in points_in(tmp_path / "try.json")}
    assert "bf16" not in points
    assert points["tf32"].series.target == "train"
    assert points["tf32"].series.shape == "optimizer"
    times = {name: np.median(point.block_medians) for name, point in points.items()}
    assert times["unchanged"] / times["tf32"] == pytest.approx(1.4, rel=0.05)


def test_a_trial_with_other_arguments_is_another_series(tmp_path: Path) -> None:
    trial = SimulatedProgram().trial("tf32")
    shapes = []
    for words in ("", "--layers 12", "--layers 24", "--layers 24"):
        command = ("python", "train.py", *words.split())
        (tmp_path / "try.json").write_text(encode(structs.replace(trial, command=command)), "utf-8")
        point = next(iter(points_in(tmp_path / "try.json")))
        assert point.series.target == "train"
        shapes.append(point.series.shape)
    assert shapes[2] == shapes[3]
    assert len(set(shapes)) == 3


def test_a_baseline_has_a_point_for_each_measured_cell() -> None:
    folder = baseline_folder("l4_study")
    points = points_in(folder)
    cells = [json.loads(file.read_text("utf-8")) for file in sorted((folder / "cells").iterdir())]
    measured = {(cell["shape"], cell["backend"]) for cell in cells if cell["latency"]}
    assert {(point.series.shape, point.series.variant) for point in points} == measured
    assert len(points) == len(measured) == 70
    profiled = [point for point in points if Path(point.source).is_dir()]
    assert len(profiled) == 3
    assert all("/profiles/" in point.source for point in profiled)


def test_a_file_of_pytest_benchmark() -> None:
    forward, backward = points_in(DATA / "pytest_benchmark.json")
    assert forward.series == Series(
        "bench_sdpa.py::test_forward", "flash", "512", "NVIDIA H200", "main"
    )
    assert forward.conditions.timer == "pytest-benchmark 5.3.1 perf_counter"
    assert forward.commit == "3dbb8bfcbccc6561c02a4f8d3a21d6f9156d7f8f"
    assert forward.time == datetime(2026, 11, 23, 8, 46, 30, 353693, tzinfo=UTC)
    document = json.loads((DATA / "pytest_benchmark.json").read_text(encoding="utf-8"))
    assert forward.block_medians == tuple(document["benchmarks"][0]["stats"]["data"])
    assert backward.series.target == "bench_sdpa.py::test_backward"
    assert backward.block_medians == (document["benchmarks"][1]["stats"]["median"],)


def test_a_file_of_nvbench_is_converted_by_the_script_of_its_page(tmp_path: Path) -> None:
    """With samples beside it, blocks of these; else its mean; skipped states are left out."""
    script = ROOT / "docs" / "reference" / "nvbench.py"
    source, target = tmp_path / "copy.json", tmp_path / "converted.json"
    shutil.copy(DATA / "nvbench.json", source)
    samples = np.linspace(1e-6, 4e-6, 16, dtype="<f4")
    (tmp_path / "copy.json-bin").mkdir()
    (tmp_path / "copy.json-bin" / "0.bin").write_bytes(samples.tobytes())
    subprocess.run([sys.executable, script, source, target], check=True)
    stated = Stated(branch="main", commit="c0ffee", time=datetime(2026, 11, 1, tzinfo=UTC))
    h200, l4, host = points_in(target, stated)
    assert h200.series == Series("bench_copy", "copy", "Elements=1048576", "NVIDIA H200", "main")
    assert h200.block_medians == pytest.approx(samples.reshape(8, 2).mean(axis=1), rel=1e-6)
    assert h200.conditions.timer == "pytest-benchmark nvbench 0.1.0 samples"
    assert (h200.commit, h200.time) == ("c0ffee", stated.time)
    assert (l4.series.gpu_model, l4.block_medians) == ("NVIDIA L4", (1.5e-05,))
    assert l4.conditions.timer == "pytest-benchmark nvbench 0.1.0 nv/cold/time/gpu/mean"
    assert host.series.gpu_model == ""


def test_a_file_without_a_time_has_that_of_its_modification_and_says_so(
    tmp_path: Path, profkit_cli: Cli
) -> None:
    path = tmp_path / "timeless.json"
    document = json.loads((DATA / "pytest_benchmark.json").read_text(encoding="utf-8"))
    del document["datetime"]
    path.write_text(json.dumps(document), encoding="utf-8")
    os.utime(path, (1.7e9, 1.7e9))
    result = profkit_cli("history", "add", path, "--store", tmp_path / "store")
    assert "states no time" in result.stderr
    assert points_in(path)[0].time == datetime.fromtimestamp(1.7e9, UTC)


def test_what_a_user_states() -> None:
    """A target and a branch go before those of the file, a commit and a time don't."""
    stated = Stated("mine", "next", "c0ffee", datetime(2020, 1, 1, tzinfo=UTC))
    for point in points_in(DATA / "pytest_benchmark.json", stated):
        assert (point.series.target, point.series.branch) == ("mine", "next")
        assert point.commit.startswith("3dbb8bfcb")
        assert point.time.year == 2026


@pytest.mark.parametrize(("count", "blocks"), [(1, 1), (7, 7), (8, 8), (9, 8), (1000, 8)])
def test_samples_make_at_most_eight_blocks_in_their_order(count: int, blocks: int) -> None:
    samples = np.random.default_rng(0).normal(1, 0.1, count)
    medians = medians_of(samples.tolist())
    assert len(medians) == blocks
    if count % blocks == 0:
        assert medians == pytest.approx([np.median(part) for part in np.split(samples, blocks)])


def changed(document: dict[str, Any]) -> dict[str, Any]:
    document["benchmarks"][0]["stats"]["data"] = [-1.0]
    return document


def _with_benchmark(change: dict[str, Any], extra: str = "{}") -> str:
    document = json.loads((DATA / "pytest_benchmark.json").read_text("utf-8"))
    document["benchmarks"][0]["extra_info"] = {"deep": "EXTRA"}
    return json.dumps(document | change).replace('"EXTRA"', extra)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        '{"schema": "profkit.time/1"}',
        '{"schema": "profkit.time/2"}',
        '{"schema": "profkit.ceilings/1"}',
        '{"benchmarks": [], "machine_info": 1, "datetime": 3}',
        '{"benchmarks": [{"name": "a"}], "machine_info": {}}',
        '{"benchmarks": [{"fullname": "a", "stats": 3}], "machine_info": {}}',
        json.dumps(changed(json.loads((DATA / "pytest_benchmark.json").read_text("utf-8")))),
        _with_benchmark({}, "[" * 100_000 + "]" * 100_000),
        _with_benchmark({"datetime": "0001-01-01T00:00:00+14:00"}),
        _with_benchmark({"datetime": "9999-12-31T23:00:00-12:00"}),
        _with_benchmark({"datetime": "9" * 5000}),
    ],
    ids=range(14),
)
def test_what_is_no_run_is_refused_in_one_line(
    content: str, tmp_path: Path, profkit_cli: Cli
) -> None:
    path = tmp_path / "a.json"
    path.write_text(content, encoding="utf-8")
    result = profkit_cli("history", "add", path, "--store", tmp_path / "store", status=5)
    assert result.stderr.count("\n") == 1
    assert len(result.stderr) < 1000
    assert str(path) in result.stderr
    assert not (tmp_path / "store").exists()


def test_a_changed_run_is_refused_and_the_others_are_added(
    tmp_path: Path, profkit_cli: Cli
) -> None:
    run = tmp_path / RUN.name
    shutil.copytree(RUN, run, ignore=shutil.ignore_patterns("*.ncu-repz"))
    with (run / "latency.json").open("a", encoding="utf-8") as file:
        file.write("\n")
    store = ("--store", tmp_path / "store")
    result = profkit_cli("history", "add", run, DATA / "pytest_benchmark.json", *store, status=5)
    assert "changed since" in result.stderr
    assert result.stdout.startswith("Added 2 points of 1 run in 2 series")


def test_a_folder_is_searched_and_a_run_counts_once(tmp_path: Path, profkit_cli: Cli) -> None:
    store = ("--store", tmp_path / "store")
    first = profkit_cli("history", "add", H200 / "timing", *store)
    assert first.stdout.startswith("Added 13 points of 4 runs in 10 series")
    again = profkit_cli("history", "add", H200 / "timing", RUN, *store)
    assert again.stdout.startswith("Added 6 points of 1 run in 6 series")
    assert "; 4 were there already" in again.stdout
    assert len(list((tmp_path / "store").rglob("part-*"))) == 2  # one for each addition
    empty = tmp_path / "empty"
    empty.mkdir()
    result = profkit_cli("history", "add", RUN, empty, *store, status=5)
    assert result.stderr.startswith(f"profkit: {empty}: no runs in this folder")
    assert (
        result.stdout
        == f"Added 0 points of 0 runs in 0 series to {store[1]}; 1 was there already\n"
    )


def test_several_processes_import_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profkit_cli: Cli
) -> None:
    """A damaged file of a folder is named, and the others are added."""
    shutil.copytree(H200 / "timing", tmp_path / "runs")
    (tmp_path / "runs" / "damaged.json").write_text('{"schema": "profkit.time/1"}')
    monkeypatch.setattr(addition, "_CHUNK", 2)
    command = ("history", "add", tmp_path / "runs", "--store", tmp_path / "store")
    result = profkit_cli(*command, status=5)
    assert str(tmp_path / "runs" / "damaged.json") in result.stderr
    assert result.stderr.count("\n") == 1
    points = [point for each in Store(tmp_path / "store").points().values() for point in each]
    expected = points_in(H200 / "timing")
    assert sorted(point.block_medians for point in points) == sorted(
        point.block_medians for point in expected
    )


def test_a_run_of_no_time_is_refused(tmp_path: Path, profkit_cli: Cli) -> None:
    document = json.loads((H200 / "timing" / "flash_cudnn.json").read_text("utf-8"))
    for block in document["series"][0]["blocks"]:
        block["samples"] = [0.0] * len(block["samples"])
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    result = profkit_cli("history", "add", path, "--store", tmp_path / "store", status=5)
    assert result.stderr.startswith(f"profkit: {path}: ")
    assert result.stderr.count("\n") == 1


def test_an_option_of_an_impossible_time(profkit_cli: Cli) -> None:
    for text in ("0001-01-01T00:00+14:00", "9999-12-31T23:00-12:00", "9" * 5000):
        result = profkit_cli("history", "add", "x.json", "--time", text, status=2)
        assert len(result.stderr) < 500
