"""The score of recorded stories of applications: causes named, and ceilings of their fixes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from profkit.core.typed_file import Model, Real

NAMED_STORY = 1.05
"""The smallest ceiling that names a cause, chosen: a fix that gains less is seldom worth it."""
EXCEEDED = 1.03
"""Factor above the ceiling, chosen: by so much steps as recorded and as timed without a profiler
differ where the GPU is the limit."""
NEAR = 1.15  # factor of the ceiling above a complete fix's gain, of a replayed gain both ways


class CauseNamed(Model, frozen=True, kw_only=True):
    """A cause that was named, with the highest and the likely factor of its fix."""

    category: str
    ceiling: Real
    likely: Real


class StoryScore(Model, frozen=True, kw_only=True):
    """A scored story. `causes` are those planted, `fix` the category that was fixed, `measured` its
    gain without a profiler, `estimated` the ceiling; where it is `replayed` the gain of the same
    kernels or copies. `step_ms` is a step without a profiler, `recorded_ms` in the timeline,
    `replay_error` what the replay without a change takes more, as a share."""

    name: str
    program: str
    gpu: str
    causes: tuple[str, ...]
    fix: str
    complete: bool
    control: bool
    measured: Real
    estimated: Real
    replayed: bool
    named: tuple[CauseNamed, ...]
    step_ms: Real
    recorded_ms: Real
    replay_error: Real

    @property
    def first(self) -> str:
        """The cause named first; "" where none is."""
        return next((each.category for each in self.named if each.ceiling >= NAMED_STORY), "")

    @property
    def is_named(self) -> bool:
        """Whether what is named first was planted; where nothing was, anything or nothing is."""
        return not self.causes or self.first in self.causes

    @property
    def is_exceeded(self) -> bool:
        return self.measured > self.estimated * (NEAR if self.replayed else EXCEEDED)

    @property
    def is_near(self) -> bool:
        return self.estimated <= self.measured * NEAR


class Applications(Model, frozen=True, kw_only=True):
    """Accuracy over stories; shares are fractions of 1. `named` is of the stories with a planted
    cause, `within` of all, `near` of those with a complete fix and of controls."""

    stories: tuple[StoryScore, ...]
    named: Real
    within: Real
    near: Real
    replay_error: Real


def score_stories(stories: Sequence[StoryScore]) -> Applications:
    """Summarize scored stories."""
    planted = [story for story in stories if story.causes]
    checked = [story for story in stories if story.complete or story.control]
    return Applications(
        stories=tuple(stories),
        named=_share([story.is_named for story in planted]),
        within=_share([not story.is_exceeded for story in stories]),
        near=_share([story.is_near for story in checked]),
        replay_error=max((abs(story.replay_error) for story in stories), default=float("nan")),
    )


def _share(held: Sequence[bool]) -> float:
    return statistics.fmean(held) if held else float("nan")
