"""Accuracy of what is said of applications, on recorded stories: a program before and after a fix.

    STORY/  times.json    step times of both sides without a profiler, and what was planted
            before.sqlite timelines of some steps
            after.sqlite

A range is right where the measured gain does not exceed it and, where the fix is complete, is not
below it. Kernels have no range of their own without a profile of them: there, and for
copies, the recorded gain of the kernels or copies is replayed.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import TypeVar

from msgspec import Struct, convert

from profkit.application.causes import quantities
from profkit.application.replay import Work
from profkit.application.steps import steady_steps
from profkit.application.what_if import Change, WhatIf
from profkit.core.errors import BadInput
from profkit.core.text_files import read_json
from profkit.core.typed_file import fault, part
from profkit.rules.checklist import application_items
from profkit.rules.rule_file import Rule
from profkit.score.stories import CauseNamed, StoryScore
from profkit.timeline.events import Events
from profkit.timeline.lost_work import lost_graphs
from profkit.timeline.reader import read as read_events

T = TypeVar("T")
TIMES = "times.json"
_SIDES = ("before", "after")
_SAME = {"host_overhead": "data_loader"}
"""Causes of stories that are one category of rules."""


class Story(Struct, frozen=True):
    """What was planted and fixed."""

    name: str
    causes: tuple[str, ...]
    fix: str
    program: str = ""
    complete: bool = False
    control: bool = False
    kernels: str = ""


class SideTime(Struct, frozen=True):
    """The time of a step without a profiler, and that of each block of steps; the blocks of both
    sides alternate."""

    median_ms: float
    ms: tuple[float, ...] = ()


class StoryTimes(Struct, frozen=True):
    """What is read of times.json."""

    story: Story
    before: SideTime
    after: SideTime
    gpu: str = ""


def stories_in(folders: Sequence[Path]) -> tuple[Path, ...]:
    """The folders of stories below folders, sorted by name."""
    found = {file.parent for folder in folders for file in folder.rglob(TIMES)}
    return tuple(sorted(found, key=lambda story: (story.name, story)))


def judge_story(folder: Path, rules: Sequence[Rule]) -> StoryScore:
    """Score a story; raises BadInput where a part of it can't be read."""
    times = read_measured(folder / TIMES, StoryTimes)
    before, after = (side_of(folder, side) for side in _SIDES)
    return scored(times, before, after, rules)


def read_measured(path: Path, kind: type[T]) -> T:
    """What is read of a file of measured times; raises BadInput naming the place."""
    content = read_json(path)
    if wrong := fault(content, kind):
        raise BadInput(f"{path}: {'.'.join(map(str, wrong[0]))}: {wrong[1]}", "measure it again")
    return convert(content, kind)


def scored(times: StoryTimes, before: Events, after: Events, rules: Sequence[Rule]) -> StoryScore:
    """Score a story by its step times and the timelines of both sides."""
    story = times.story
    known = times.before.median_ms / 1e3
    what_if = WhatIf(before, steady_steps(before), known)
    named = tuple(
        CauseNamed(
            category=item.rule.category,
            low=item.range[0],
            likely=item.speedup,
            high=item.range[1],
        )
        for item in application_items(quantities(before, steady_steps(before), known), rules)
    )
    fix = _SAME.get(story.fix, story.fix)
    if fix in {"slow_kernel", "copies"}:
        low = estimated = what_if.best(_recorded_change(what_if, after, story))
    else:
        ranges = ((each.low, each.high) for each in named if each.category == fix)
        low, estimated = next(ranges, (1.0, 1.0))
    causes = tuple(dict.fromkeys(_SAME.get(cause, cause) for cause in story.causes))
    return StoryScore(
        **part(story, "name", "program", "complete", "control"),
        gpu=times.gpu,
        causes=causes,
        fix=fix,
        measured=_gain(times),
        low=low,
        estimated=estimated,
        replayed=fix in {"slow_kernel", "copies"},
        named=named[:3],
        step_ms=times.before.median_ms,
        recorded_ms=what_if.replay.recorded / 1e6,
        replay_error=what_if.replay_error,
    )


def _gain(times: StoryTimes) -> float:
    """The median over pairs of blocks, so that drifts of the host cancel out."""
    before, after = (side.ms or (side.median_ms,) for side in (times.before, times.after))
    return median(first / second for first, second in zip(before, after, strict=False))


def side_of(folder: Path, side: str) -> Events:
    """The timeline of a side; where it lost GPU work, the one with CUDA graphs by node."""
    events, nodes = read_events(folder / f"{side}.sqlite"), folder / f"{side}.nodes.sqlite"
    return read_events(nodes) if nodes.is_file() and lost_graphs(events) else events


def _recorded_change(what_if: WhatIf, after: Events, story: Story) -> Change:
    """The kernels that were made faster, or all copies, as much as they are after the fix."""
    fixed = WhatIf(after, steady_steps(after)).replay
    before = what_if.replay
    if story.fix == "copies":
        share = (
            _time(fixed.works, "copy") / fixed.steps / (_time(before.works, "copy") / before.steps)
        )
        return Change(copies=min(1.0, share))
    pattern = re.compile(story.kernels)
    groups = {
        work.group
        for work in before.works
        if work.role == "kernel" and pattern.search(what_if.names[work.group[0]])
    }
    total = _time(before.works, "kernel") / before.steps
    changed = sum(work.duration for work in before.works if work.group in groups) / before.steps
    saved = total - _time(fixed.works, "kernel") / fixed.steps
    share = max(0.0, 1 - saved / changed) if changed else 1.0
    return Change(kernels=dict.fromkeys(groups, min(1.0, share)))


def _time(works: Iterable[Work], role: str) -> float:
    return sum(work.duration for work in works if work.role == role)
