"""Steps and parts of recorded applications, by their NVTX ranges and without them."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from profkit.application.application import TITLES, read_application, table
from profkit.application.parts import GAPS, UNRECORDED, StepParts, step_parts
from profkit.application.ranking import ranking
from profkit.application.steps import steady_steps
from profkit.timeline.events import Events, Ranges
from profkit.timeline.reader import read
from tests.conftest import H200, Cli, story_folder

RECORDED = sorted(
    file
    for file in story_folder("").glob("*/*.sqlite")
    if file.stem.startswith(("before", "after"))
)
LOOPS = {
    "pipeline_allocation/after", "pipeline_streams/after", "pipeline_streams/before",
    "pipeline_synchronization/after", "pipeline_synchronization/before",
}  # fmt: skip
"""Their steps repeat a shorter pattern without a pause, which only the range tells apart."""
SHORT = {
    "decode_launch_bound/after", "decode_launch_bound/after.nodes", "decode_stop/after",
    "decode_stop/after.nodes", "diffusion_guidance/after", "diffusion_guidance/before",
    "jax_dispatch/after.nodes", "jax_dispatch/before", "loader_hidden_copies/after",
    "loader_hidden_copies/before",
}  # fmt: skip
"""Cut to so few steps that halves of them repeat more often, or that a graph repeats too seldom."""
NAMES = [f"{file.parent.name}/{file.stem}" for file in RECORDED]


def without_ranges(events: Events) -> Events:
    nothing = np.zeros(0, dtype=np.int64)
    index, flags = nothing.astype(np.int32), nothing.astype(np.bool_)
    return replace(events, ranges=Ranges(nothing, nothing, index, index, nothing, flags))


@pytest.mark.parametrize("file", RECORDED, ids=NAMES)
def test_a_recorded_application_has_steps_and_parts(file: Path) -> None:
    events = read(file)
    for steps in steady_steps(events):
        assert str(steps.basis) == 'NVTX range "step"'
        parts = step_parts(events, steps)
        total = np.sum([part.times for part in parts.parts], axis=0)
        assert total == pytest.approx(parts.wall, abs=1e-2)
        if f"{file.parent.name}/{file.stem}" not in LOOPS | SHORT:
            check_pattern(events, parts)


@pytest.mark.parametrize("file", RECORDED, ids=NAMES)
def test_a_step_takes_as_long_as_was_measured_without_nsys(file: Path) -> None:
    """Blocks of a side differ by up to 20%; nsys slows the host, which leaves the GPU idle."""
    side = file.name.partition(".")[0]
    measured = json.loads((file.parent / "times.json").read_text())[side]["median_ms"]
    events = read(file)
    for steps in steady_steps(events):
        parts = step_parts(events, steps)
        waiting = [part.times for part in parts.parts if part.group in {GAPS, UNRECORDED}]
        busy = parts.wall - np.sum(waiting, axis=0)
        assert np.median(parts.wall) / 1e6 >= 0.88 * measured
        assert np.median(busy) / 1e6 <= 1.12 * measured


def check_pattern(events: Events, parts: StepParts) -> None:
    """The pattern of launches has the steps of the range."""
    found = {steps.process: steps for steps in steady_steps(without_ranges(events))}
    steps = found[parts.steps.process]
    assert str(steps.basis).startswith("repeating pattern")
    usual = np.median(np.diff(steps.bounds)[steps.typical])
    assert usual == pytest.approx(np.median(parts.wall), rel=0.1)


@pytest.mark.parametrize(
    ("name", "group", "part"),
    [
        ("data_parallel_exposed/before", "communication", "all-reduce"),
        ("data_parallel_uneven/before", "communication", "waiting for another rank"),
        ("gpt_launch_bound/before", "idle", "launch-bound"),
        ("pipeline_allocation/before", "idle", "memory allocation"),
        ("pipeline_pageable/before", "copies", "host to device, pageable"),
        ("pipeline_synchronization/before", "idle", "after a synchronization"),
    ],
)
def test_what_was_planted_is_the_largest_part_but_kernels(name: str, group: str, part: str) -> None:
    events = read(story_folder(f"{name}.sqlite"))
    parts = step_parts(events, steady_steps(events)[0])
    others = [item for item in parts.parts if item.group != "kernels"]
    largest = max(others, key=lambda item: item.times.sum())
    assert (largest.group, largest.name) == (group, part)


def test_groups_of_picked_kernels_are_most_of_an_eager_step() -> None:
    events = read(story_folder("gpt_compile") / "before.sqlite")
    ranked = ranking(events, step_parts(events, steady_steps(events)[0]))
    assert ranked.explained >= 0.9
    assert ranked.own >= 0.75
    assert len(ranked.picks) <= 24
    assert len(ranked.kernels) > 60


def test_a_second_recording_names_the_kernels_of_graphs() -> None:
    folder = story_folder("gpt_launch_bound")
    events = read(folder / "after.sqlite")
    named = read(folder / "after.nodes.sqlite")
    (alone,) = read_application(events).processes
    (process,) = read_application(events, named=named).processes
    assert [row.label for row in table(alone) if row.depth == 2] == []
    kernels = [row for row in table(process) if row.depth == 2]
    assert len(kernels) == 8
    assert any(row.label.startswith("nvjet") for row in kernels)
    assert 0.3 < sum(row.share for row in kernels) < 1
    assert process.ranking.picks
    assert process.parts.wall.tolist() == alone.parts.wall.tolist()


def test_a_recording_that_begins_within_a_pipeline_has_steps_with_all_work() -> None:
    events = read(story_folder("loader_results") / "after.sqlite")
    (process,) = read_application(events).processes
    idle = sum(process.parts.share(part) for part in process.parts.group("idle"))
    assert idle < 0.03
    assert (process.steps.before, process.steps.unit) == (1, "step")
    assert "not in the recording" in process.steps.why


@pytest.mark.parametrize("name", ["gpt_clip", "data_parallel_uneven", "loader_inline"])
def test_one_time_of_a_step_is_shown(name: str, profkit_cli: Cli) -> None:
    """The median over steps, of the rank on the first GPU; the replay is of some of them."""
    path = story_folder(name) / "before.sqlite"
    shown = profkit_cli("timeline", path).stdout
    time = shown.partition(" per step (median")[0]
    assert re.fullmatch(r"\d+\.\d+ ms", time)
    analyzed = profkit_cli("analyze", path).stdout
    assert f"of a step in steady state of {time} (median)" in analyzed
    application = read_application(read(path))
    assert application.processes[0].steps.device == 0


@pytest.mark.parametrize(
    ("table", "change", "status"),
    [
        ("RUNTIME", "start = -1", 5),
        ("KERNEL", "start = 0 WHERE rowid % 3 = 0", 0),
    ],
)
@pytest.mark.parametrize("verb", ["checklist", "analyze"])
def test_damaged_times_are_no_crash(
    verb: str, table: str, change: str, status: int, tmp_path: Path, profkit_cli: Cli
) -> None:
    path = tmp_path / "timeline.sqlite"
    shutil.copyfile(story_folder("data_parallel_uneven") / "before.sqlite", path)
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE CUPTI_ACTIVITY_KIND_{table} SET {change}")
    result = profkit_cli(verb, path, status=status)
    assert status == 0 or "no GPU work belongs to the calls of its steps" in result.stderr


def test_idle_gaps_are_as_many_as_lie_between_kernels() -> None:
    """A gap that several causes share is one gap, as `analyze` counts it."""
    file = H200 / "sdpa_s512_math.sqlite"
    with closing(sqlite3.connect(f"file:{file}?immutable=1", uri=True)) as timeline:
        rows = timeline.execute(
            "select start, end from CUPTI_ACTIVITY_KIND_KERNEL order by start"
        ).fetchall()
    gaps = sum(later[0] > earlier[1] for earlier, later in pairwise(rows))
    (process,) = read_application(read(file)).processes
    (idle,) = (row for row in table(process) if row.label == TITLES[GAPS])
    assert idle.count == gaps == 13
