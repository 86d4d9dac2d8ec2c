"""The score of stories: causes named first, and ceilings against measured gains."""

from __future__ import annotations

import pytest

from profkit.application.score import (
    SideTime,
    Story,
    StoryTimes,
    judge_story,
    scored,
    stories_in,
)
from profkit.rules.rule_file import shipped_rules
from profkit.rules.story_score import StoryScore, score_stories
from tests.application.stories import STORIES, recorded, step_time
from tests.conftest import story_folder


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
    assert (score.named, score.within, score.near) == (1, 1, 1)
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
    stories = [judge_story(folder, shipped_rules()) for folder in stories_in([story_folder("")])]
    score = score_stories(stories)
    assert len(stories) >= 12
    assert score.named >= 0.8
    assert score.within >= 0.85
    assert score.near >= 0.9
    assert score.replay_error < 0.04
