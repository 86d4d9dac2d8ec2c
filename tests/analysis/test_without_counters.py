"""Analyses without counters of reports, timelines and runs, in all forms."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from profkit.analysis.report import load
from profkit.analysis.without_counters import (
    CODE_FOLDER,
    analyze_report,
    analyze_timeline,
    save_code,
)
from profkit.report.counter_free import launch_facts
from profkit.timeline.reader import read
from tests.analysis.test_views import schema
from tests.conftest import CORPUS, H200, Cli, needs_corpus, story_folder
from tests.report.test_cubin import recorded_cubin

TIMELINE = H200 / "sdpa_s512_flash.sqlite"
PAIR = H200 / "pairs" / "reduction_conflicts" / "before.ncu-repz"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """The timeline of a run whose flash kernel is that of a pair, by name, launch and registers."""
    file = tmp_path / "run" / "timeline.sqlite"
    file.parent.mkdir()
    shutil.copyfile(TIMELINE, file)
    kernel = load(PAIR).kernel(0)
    (grid, *_), (block, *_) = kernel.summary.grid, kernel.summary.block
    with sqlite3.connect(file) as database:
        rename = "UPDATE StringIds SET value = ? WHERE value LIKE '%flash_fwd_kernel%'"
        database.execute(rename, (kernel.name,))
        database.execute(
            "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = ?, gridY = 1, gridZ = 1, blockX = ?,"
            " staticSharedMemory = ?, dynamicSharedMemory = 0, registersPerThread = ?"
            " WHERE registersPerThread = 255",
            (grid, block, int(kernel["shared_static"]), int(kernel["registers_per_thread"])),
        )
    return file


def test_a_kernel_of_a_timeline_has_the_code_that_its_compiler_left(
    recording: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache" / "profkit" / "kernels"
    cache.mkdir(parents=True)
    recorded_cubin(PAIR, cache / "abc.cubin")
    recorded_cubin(H200 / "pairs" / "tail_effect" / "before.ncu-repz", cache / "other.cubin")
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TRITON_CACHE_DIR": str(tmp_path)}
    events = read(recording)
    save_code(events, recording.parent, environment, [])
    assert len(list((recording.parent / CODE_FOLDER).iterdir())) == 1
    name = load(PAIR).kernel(0).name
    (own,) = (
        kernel
        for kernel in analyze_timeline(events, recording).outlook.kernels
        if kernel.group.name == name
    )
    (recorded,) = analyze_report(PAIR).outlook.kernels
    assert own.code == recorded.code
    assert own.launch["occupancy_by_launch"] == recorded.launch["occupancy_by_launch"]


def test_code_of_a_build_with_other_registers_is_not_taken(recording: Path, tmp_path: Path) -> None:
    with sqlite3.connect(recording) as database:
        database.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET registersPerThread = 99")
    recorded_cubin(PAIR, tmp_path / f"{load(PAIR).kernel(0).name}.cubin")
    environment = {"TRITON_CACHE_DIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    save_code(read(recording), recording.parent, environment, [])
    assert not (recording.parent / CODE_FOLDER).exists()


def test_a_kernel_of_a_program_has_the_code_that_cuobjdump_extracts(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program's cubins are of several GPUs; a GPU runs those of its own major version."""
    cubin = recorded_cubin(PAIR, tmp_path / "recorded.cubin")
    other = recorded_cubin(H200 / "pairs" / "tail_effect" / "before.ncu-repz", tmp_path / "other")
    tools, program = tmp_path / "bin", tmp_path / "app"
    tools.mkdir()
    tool = tools / "cuobjdump"
    tool.write_text(
        '#!/bin/sh\n[ "$*" = "--extract-elf all $PROGRAM" ] || exit 1\n'
        f"cp {other} app.1.sm_90a.cubin\ncp {cubin} app.2.sm_90.cubin\n"
        f"cp {cubin} app.3.sm_91.cubin\ncp {cubin} app.4.sm_100.cubin\n"
    )
    tool.chmod(0o755)
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PROGRAM", str(program))
    caches = ("TRITON_CACHE_DIR", "XDG_CACHE_HOME", "TORCH_EXTENSIONS_DIR")
    environment = dict.fromkeys(caches, str(tmp_path / "none"))
    events = read(recording)
    save_code(events, recording.parent, environment, ["env", "A=1", str(program)])
    (saved,) = (recording.parent / CODE_FOLDER).iterdir()
    assert saved.read_bytes() == cubin.read_bytes()


@pytest.mark.parametrize("report", ["known.ncu-repz", "sdpa_s512_flash.ncu-repz"])
def test_the_occupancy_of_a_launch_is_what_ncu_computed(report: str) -> None:
    for launch in load(H200 / report).summary.launches:
        occupancy = launch_facts(launch)["occupancy_by_launch"]
        assert occupancy == pytest.approx(launch.get("occupancy_theoretical"), abs=1e-3)


def test_a_launch_on_a_timeline_fills_as_many_waves_as_ncu_counted() -> None:
    kernels = analyze_timeline(read(TIMELINE), TIMELINE).outlook.kernels
    (flash,) = (kernel for kernel in kernels if "flash" in kernel.group.name)
    recorded = load(H200 / "sdpa_s512_flash.ncu-repz").kernel("flash")
    assert flash.launch["waves"] == pytest.approx(recorded["waves"], abs=0.01)
    assert flash.launch["occupancy_by_launch"] == pytest.approx(recorded["occupancy_theoretical"])


def test_all_forms_say_the_same(profkit_cli: Cli) -> None:
    words = ("analyze", PAIR, "--without-counters")
    terminal, markdown, brief, text = (
        profkit_cli(*words, "--format", form).stdout
        for form in ("terminal", "markdown", "brief", "json")
    )
    saved = json.loads(text)
    schema("without-counters").validate(saved)
    first = saved["findings"][0]
    for text in (terminal, markdown, brief):
        assert first["title"] in text
        assert "no declared work" in text
    assert {entry["source"] for entry in first["evidence"]} == set(first["sources"])
    assert saved["kernels"][0]["code"]["code_instructions"] > 0
    assert saved["wholes"][0]["headroom"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((str(PAIR), str(PAIR)), "--without-counters: one report or run"),
        ((str(PAIR), "--format", "csv"), "--without-counters: one report or run"),
        ((str(TIMELINE), "--kernel", "x"), "don't apply to a timeline"),
        ((str(PAIR), "--disable", "tail_effect"), "don't apply to --without-counters"),
    ],
)
def test_what_has_no_such_analysis_is_refused(
    profkit_cli: Cli, words: tuple[str, ...], message: str
) -> None:
    done = profkit_cli("analyze", "--without-counters", *words, status=2)
    assert message in done.stderr


def test_a_filter_of_kernels_leaves_the_headroom_of_their_call() -> None:
    """The attention that torch's operators do is a call of 14 launches, one of them a softmax."""
    (run,) = (H200 / "sdpa_s512").glob("*/*.ncu-repz")
    (whole,) = (each for each in analyze_report(run).outlook.wholes if each.name == "math")
    filtered = analyze_report(run, kernel="softmax").outlook
    assert [kernel.group.function for kernel in filtered.kernels] == ["softmax_warp_forward"]
    assert filtered.wholes == (whole,)
    assert whole.launches > 1
    assert whole.headroom
    assert {each.group.function for each in filtered.findings} <= {"softmax_warp_forward"}


def test_graphs_as_a_whole_are_said(profkit_cli: Cli) -> None:
    timeline = story_folder("decode_launch_bound") / "after.sqlite"
    done = profkit_cli("analyze", timeline, "--without-counters", "--format", "json")
    saved = json.loads(done.stdout)
    schema("without-counters").validate(saved)
    assert any("CUDA graphs traced as a whole: 8" in note for note in saved["notes"])
    shown = profkit_cli("analyze", timeline, "--without-counters").stdout
    assert "! CUDA graphs traced as a whole" in shown


@needs_corpus
@pytest.mark.parametrize("name", ["fused-linear__profile_report", "blackwell-kernels__v5_swizzle"])
def test_tensor_cores_of_other_chips_have_no_faster_instruction(
    profkit_cli: Cli, name: str
) -> None:
    """mma.sync is slower than the chip's own instructions on compute capability 9.0 alone."""
    words = ("analyze", CORPUS / f"{name}.ncu-repz", "--without-counters", "--top", "0")
    profkit_cli(*words)
    findings = json.loads(profkit_cli(*words, "--format", "json").stdout)["findings"]
    assert findings
    assert "tensor_path_legacy" not in {finding["rule"] for finding in findings}
