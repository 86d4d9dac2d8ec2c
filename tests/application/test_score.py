"""The score of stories: causes named first, and ceilings against measured gains."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copyfile

import pytest

from profkit.application.causes import quantities
from profkit.application.program_score import judge_program, programs_in
from profkit.application.score import (
    SideTime,
    Story,
    StoryTimes,
    scored,
)
from profkit.application.steps import steady_steps
from profkit.application.what_if import Change, WhatIf
from profkit.rules.checklist import application_items
from profkit.rules.rule_file import shipped_rules
from profkit.score.stories import ChangeScore, StoryScore, score_stories
from tests.application.stories import STORIES, recorded, step_time
from tests.application.synthetic import US, Host
from tests.conftest import story_folder
from tests.examined_pairs import examined_applications


def judged(name: str, **changes: object) -> StoryScore:
    story = STORIES[name]
    sides = [step_time(side) * 1e3 for side in (story.before, story.after)]
    planted = {
        "name": name,
        "causes": (story.cause,),
        "fix": story.cause,
        "complete": story.is_complete,
        "kernels": "kernel_",
    }
    times = StoryTimes(Story(**(planted | changes)), *map(SideTime, sides))  # type: ignore[arg-type]
    return scored(times, recorded(story.before), recorded(story.after), shipped_rules())


def test_all_stories_of_the_simulation_are_told_right() -> None:
    score = score_stories([judged(name) for name in STORIES])
    assert (score.named, score.within, score.reached) == (1, 1, 1)
    assert score.replay_error < 0.02


def test_the_gain_of_kernels_is_replayed() -> None:
    story = judged("kernels")
    assert story.replayed
    assert story.estimated == pytest.approx(story.measured, rel=0.01)


def test_a_wrong_cause_and_a_gain_above_the_ceiling_are_missed() -> None:
    story = judged("pageable", causes=("allocation",), fix="allocation")
    assert not story.is_named
    assert story.is_exceeded


def test_a_host_that_works_long_is_one_category() -> None:
    assert judged("loader", causes=("host_overhead",), fix="host_overhead").is_named


def test_recorded_stories() -> None:
    """Of an H200, some of which were looked at when the replay was written (see their page)."""
    score = examined_applications()
    assert len(score.stories) >= 12
    assert score.named >= 0.8
    assert score.within >= 0.85
    assert score.reached >= 0.9
    assert score.replay_error < 0.04


def test_kernels_are_named_where_the_host_takes_as_long() -> None:
    """Then neither faster kernels nor fewer launches alone give anything."""

    def step(host: Host, _: int) -> None:
        for _ in range(60):
            host.compute(16 * US)
            host.launch("kernel(float*)", 20 * US)

    events = recorded(step)
    what_if = WhatIf(events, steady_steps(events), host=1.0)
    assert what_if.best(Change(graphs=True)) < 1.05
    named = application_items(quantities(events, steady_steps(events), host=1.0), shipped_rules())
    assert (named[0].rule.category, round(named[0].speedup, 2)) == ("slow_kernel", 1.11)
    (group,) = {work.group for work in what_if.replay.works}
    assert what_if.best(Change(kernels={group: 0.9})) < 1.02  # alone


def program(folder: Path, story: str, cause: str, gains: dict[str, float]) -> Path:
    folder.mkdir()
    copyfile(story_folder(story) / "before.sqlite", folder / "timeline.sqlite")
    (folder / "label.yaml").write_text(f"cause: {cause}\nsecond: fusion\nwhy: planted\n")
    changes = {name: {"gain": gain} for name, gain in gains.items()}
    (folder / "measured.json").write_text(json.dumps({"summary": {"changes": changes}}))
    return folder


def test_a_program_is_scored_by_its_label_and_gains(tmp_path: Path) -> None:
    """The steps of recorded stories, whose gains were measured without a profiler."""
    fusion = program(tmp_path / "gpt", "gpt_compile", "fusion", {"compile": 1.94, "other": 1.3})
    loader = program(tmp_path / "loader", "loader_inline", "allocation", {"bf16": 1.5})
    scores = [judge_program(each, shipped_rules()) for each in programs_in([tmp_path])]
    assert [score.name for score in scores] == [fusion.name, loader.name]
    assert [score.is_named for score in scores] == [True, False]
    ((compiled, other), (missed,)) = (score.changes for score in scores)
    assert (compiled.name, compiled.missed) == ("compile", "")
    assert (other.missed, missed.missed) == ("no rule", "not found")  # both gained
    assert all(0.5 < score.explained < 0.9 for score in scores)  # products of 16 bits: no limit
    total = score_stories([], scores)
    assert (total.programs_named, total.changes_within, total.changes_found) == (0.5, 1, 1)
    assert (total.changes_unfound, total.changes_missed) == (2, 2)
    assert (total.changes_bounded, total.changes_exceeded) == (0, 0)
    assert total.explained == 0


def test_a_gain_above_an_at_most_is_exceeded(tmp_path: Path) -> None:
    program(tmp_path / "loader", "loader_inline", "input_pipeline", {"loader-workers": 90.0})
    (score,) = (judge_program(each, shipped_rules()) for each in programs_in([tmp_path]))
    (change,) = score.changes
    assert change.high <= change.bound < 90
    assert change.missed == "exceeded"
    assert score_stories([], [score]).changes_exceeded == 1


def test_a_label_whose_change_gained_nothing_is_counted_apart(tmp_path: Path) -> None:
    program(tmp_path / "gpt", "gpt_compile", "precision", {"bf16": 0.9, "compile": 1.94})
    (score,) = (judge_program(each, shipped_rules()) for each in programs_in([tmp_path]))
    assert score.contradicted
    total = score_stories([], [score])
    assert (total.contradicted, total.programs_named) == (1, float(score.is_named))


def test_an_at_most_is_exceeded_beyond_what_was_measured() -> None:
    def change(measured: float, *rounds: float) -> ChangeScore:
        interval = min(rounds), max(rounds)
        return ChangeScore(
            name="",
            measured=measured,
            rounds=interval,
            low=1.01,
            likely=1.03,
            high=1.03,
            bound=1.08,
        )

    assert change(1.105, 1.081, 1.132).is_exceeded
    assert not change(1.105, 1.07, 1.14).is_exceeded  # the rounds don't agree that it is
    assert not change(1.1, 1.1).is_exceeded  # one round is known by 3%
    assert change(1.12, 1.12).is_exceeded
    assert not change(1.0, 1.0).is_exceeded
