"""The applications of targets/apps at toy size on the CPU, their stories, and cut recordings."""

from __future__ import annotations

import argparse
import json
import runpy
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import zstandard

from kernels.programs import kept
from kernels.record_applications import cut_again
from kernels.stories import MOST_STEPS, Story, stories, trim, trimmed
from profkit.application.picks_file import PICKS, PicksFile, UnprofiledStep
from profkit.application.program_score import MEASURED
from profkit.application.steps import first_rank, steady_steps
from profkit.timeline import RUN_FILE
from profkit.timeline.reader import read
from tests.conftest import ROOT

APPLICATIONS = ROOT / "targets" / "apps"
STORIES = stories(APPLICATIONS / "stories.yaml")
TOY = ("--toy", "--device", "cpu", "--steps", "2", "--warmup", "1")
NVTX_PUSH_POP = 59
SIDE_STEPS = 12


def ready(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip without what a program imports; let it import what is beside it."""
    if program == "jax_step.py":
        pytest.importorskip("jax", reason="jax_step needs JAX")
    elif program != "spectrum.py":  # which is numpy's on the CPU
        pytest.importorskip("torch", reason="the application needs torch").set_num_threads(1)
    monkeypatch.syspath_prepend(APPLICATIONS)


@pytest.fixture(autouse=True)
def own_modules() -> Iterator[None]:
    """Modules beside the programs have short names, which others may have too."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(APPLICATIONS)):
            del sys.modules[name]


RUNS = {
    "graphs": ["gpt_step.py", "--variant", "after", "--clip", "item", "--norm", "manual"],
    "decode": ["decode.py", "--stop", "item", "--against=--text behind"],
    "loader": ["loader.py", "--variant", "after", "--results", "own_stream", "--payload", "2"],
    "inline": ["loader.py", "--results", "blocking"],
    "data_parallel": ["data_parallel.py", "--ranks", "1", "--reduce", "overlapped"],
    "jax": ["jax_step.py", "--against=--mode jit"],
    "graph": ["graph_step.py", "--against=--gather select"],
    "diffusion": ["diffusion.py", "--against=--guidance together"],
    "agent": ["agent.py", "--against=--move during"],
    "spectrum": ["spectrum.py"],
    "images": ["images.py"],
    "triton": ["triton_step.py"],
}


@pytest.mark.parametrize("name", RUNS)
def test_an_application_runs_on_the_cpu(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program, *words = RUNS[name]
    ready(program, monkeypatch)
    monkeypatch.setattr(sys, "argv", [program, *words, *TOY, "--time", "--blocks", "1"])
    runpy.run_path(str(APPLICATIONS / program), run_name="__main__")
    times = json.loads(capsys.readouterr().out)
    assert times["program"] == Path(program).stem
    assert all(block > 0 for side in times["ms"] for block in side)


def test_both_sides_are_timed_in_turns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ready("gpt_step.py", monkeypatch)
    words = ["--time", "--blocks", "2", "--against=--optimizer loop"]
    monkeypatch.setattr(sys, "argv", ["gpt_step.py", *words, *TOY])
    runpy.run_path(str(APPLICATIONS / "gpt_step.py"), run_name="__main__")
    times = json.loads(capsys.readouterr().out)
    assert times["program"] == "gpt_step"
    assert [len(blocks) for blocks in times["ms"]] == [2, 2]
    assert all(median > 0 for median in times["median_ms"])


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_story_s_sides_are_options_of_its_program(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    if story.program.endswith(".cu"):
        name = story.arguments[story.arguments.index("--case") + 1]
        assert f'asked.name == "{name}"' in (APPLICATIONS / story.program).read_text()
        assert (story.before, story.after) == (("--variant", "before"), ("--variant", "after"))
        return
    ready(story.program, monkeypatch)
    options = runpy.run_path(str(APPLICATIONS / story.program))["options"]
    assert isinstance(options, argparse.ArgumentParser)
    sides = [options.parse_args([*story.arguments, *side]) for side in (story.before, story.after)]
    assert vars(sides[0]) != vars(sides[1])


def test_stories_have_distinct_causes_and_controls() -> None:
    assert len({story.name for story in STORIES}) == len(STORIES)
    causes = {story.causes[0] for story in STORIES if story.causes and not story.control}
    assert len(causes) >= 8
    controls = [story for story in STORIES if story.control]
    assert len(controls) >= 2
    assert not any(story.complete or story.fix in story.causes for story in controls)
    assert all(story.fix in story.causes for story in STORIES if not story.control)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A real recording with ranges of two sides of 12 steps over its calls."""
    file = tmp_path / "recording.sqlite"
    (source,) = (ROOT / "reports" / "h200" / "sdpa_s512").glob("*/timeline.sqlite")
    shutil.copyfile(source, file)
    with closing(sqlite3.connect(file)) as database:
        calls = "CUPTI_ACTIVITY_KIND_RUNTIME"
        (start, end, thread) = database.execute(
            f'SELECT min(start), max("end"), globalTid FROM {calls}'
        ).fetchone()
        width = (end - start) // (2 * SIDE_STEPS)
        ranges = [
            (start + index * width, start + (index + 1) * width - 1, "step")
            for index in range(2 * SIDE_STEPS)
        ]
        half = start + SIDE_STEPS * width
        ranges += [(start - 1, half - 1, "side 0"), (half - 1, end, "side 1")]
        database.executemany(
            f'INSERT INTO NVTX_EVENTS (start, "end", text, eventType, globalTid)'
            f" VALUES (?, ?, ?, {NVTX_PUSH_POP}, {thread})",
            ranges,
        )
        database.commit()
    return file


def test_a_cut_recording_has_the_last_steps_of_its_side(recording: Path, tmp_path: Path) -> None:
    for side in (0, 1):
        file = tmp_path / f"{side}.sqlite"
        assert trim(recording, file, side, MOST_STEPS)
        with closing(sqlite3.connect(file)) as database:
            names = [name for (name,) in database.execute("SELECT text FROM NVTX_EVENTS")]
            orphans = database.execute("""SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL
                WHERE correlationId NOT IN (
                    SELECT correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME)""").fetchone()
        assert names.count("step") == MOST_STEPS
        assert not any(name.startswith("side") for name in names)
        assert orphans == (0,)
        assert 0 < len(read(file).calls) < len(read(recording).calls)
    assert not trim(recording, tmp_path / "none.sqlite", 0, SIDE_STEPS)
    assert not (tmp_path / "none.sqlite").exists()


def test_the_first_side_s_range_may_be_lost(recording: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(recording)) as database:
        database.execute("DELETE FROM NVTX_EVENTS WHERE text = 'side 0'")
        database.commit()
    file = tmp_path / "first.sqlite"
    assert trim(recording, file, 0, MOST_STEPS)
    assert not trim(recording, file, 0, SIDE_STEPS)


def test_a_cut_recording_keeps_to_its_bytes(recording: Path, tmp_path: Path) -> None:
    small, large = tmp_path / "small.sqlite.zst", tmp_path / "large.sqlite.zst"
    assert trimmed(recording, large, 1) == MOST_STEPS
    assert trimmed(recording, small, 1, limit=large.stat().st_size - 1) < MOST_STEPS


def test_a_recorded_program_is_cut_to_steps_that_are_found_again(
    recording: Path, tmp_path: Path
) -> None:
    run, folder = tmp_path / "training" / "run", tmp_path / "cut" / "training"
    run.mkdir(parents=True)
    shutil.copy(recording, run / RUN_FILE)
    step = UnprofiledStep(seconds=0.002, source="optimizer steps", count=20)
    picks = PicksFile(nvtx=None, explain=0.9, budget=None, picks=(), unprofiled=step)
    (run / PICKS).write_bytes(msgspec.json.encode(picks))
    steps = kept(run, folder)
    packed = (folder / f"{RUN_FILE}.zst").read_bytes()
    (folder / RUN_FILE).write_bytes(zstandard.ZstdDecompressor().decompress(packed))
    before, after = (first_rank(steady_steps(read(each / RUN_FILE))) for each in (run, folder))
    assert 4 <= steps <= 6
    assert len(after) >= 2
    assert set(np.diff(after.bounds)) <= set(np.diff(before.bounds))
    assert json.loads((folder / MEASURED).read_text())["summary"]["original_ms"] == [2.0]


def test_recordings_are_cut_again(recording: Path, tmp_path: Path) -> None:
    raw, out = tmp_path / "raw", tmp_path / "out"
    raw.mkdir()
    (known,) = (story for story in STORIES if story.name == "pipeline_streams")
    packed: Any = zstandard.ZstdCompressor().compress(recording.read_bytes())
    (raw / "pipeline_streams.sqlite.zst").write_bytes(packed)
    absent = STORIES[0]
    assert set(cut_again(out, raw, [known, absent])) == {absent.name}
    names = {file.name for file in (out / known.name).iterdir()}
    assert names == {"before.sqlite.zst", "after.sqlite.zst"}
