"""Changes of a series: its steps, classed by what else changed with them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from profkit.history.content import DIRTY
from profkit.history.divisive import Array
from profkit.history.marks import Kind, Mark, condition_marks, kind_of
from profkit.history.noise import step_at
from profkit.history.record import Conditions, Point
from profkit.history.steps import (
    ALPHA,
    FEWEST,
    LEAST,
    MARGIN,
    NEWEST,
    WINDOW,
    Detected,
    detect,
    level_of,
)
from profkit.history.view import changes as changed
from profkit.timing.floor import read_floor
from profkit.timing.statistics import find_tick

_FLIPS = 2  # steps between two levels after which the next is no news: there and back
_QUARTILES = 1.349  # 2 Phi^-1(3/4): between the quartiles of a normal distribution, in sigmas
_SAME_LEVEL = 1 / 3  # of a step, chosen: levels nearer to each other count as equal


@dataclass(frozen=True)
class Change:
    """A change of a series' level from point `first` on, detected with point `seen`.

    `before` and `after` are levels in seconds, `scatter` the relative scatter of a single run.
    `good` is the last point that is surely before it, `bad` the first that is surely after. `why`
    says what its kind rests on. `age` counts the runs since it was detected, 0 is with the last.
    """

    kind: Kind
    before: float
    after: float
    scatter: float
    p_value: float
    first: int
    seen: int
    good: Point
    bad: Point
    why: str
    age: int

    @property
    def change(self) -> float:
        """The relative change of time: 0.02 is 2% slower."""
        return self.after / self.before - 1


@dataclass(frozen=True)
class Checked:
    """A series with its changes in the order of time.

    `level` (s) and `scatter` (relative, of a single run) are those since the last change; `reason`
    says why nothing was checked, "" where it was.
    """

    points: tuple[Point, ...]
    changes: tuple[Change, ...]
    level: float
    scatter: float
    reason: str


def merged(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points in the order of time, those of one run together: they are not independent."""
    by_run: dict[str, list[Point]] = {}
    for point in points:
        by_run.setdefault(point.run, []).append(point)
    return tuple(
        replace(same[0], block_medians=tuple(chain(*(point.block_medians for point in same))))
        for same in by_run.values()
    )


def check_series(points: Sequence[Point], margin: float = MARGIN) -> Checked:
    """The changes of a series whose points are in the order of time."""
    runs = merged(points)
    logs = [np.log(np.asarray(point.block_medians)) for point in runs]
    levels = np.array([level_of(blocks) for blocks in logs])
    numbers = _numbered([point.conditions for point in runs])
    resolution = _resolution(runs)
    steps = detect(logs, numbers, margin, resolution, floor=_floor(runs[-1]))
    changes = [*_between_conditions(runs, levels, numbers, steps, max(margin, resolution))]
    seen: list[Change] = []
    for step in steps:
        seen.append(_classed(runs, levels, step, seen))
    changes = sorted([*changes, *seen], key=lambda change: change.first)
    start = max([change.first for change in changes], default=0)
    level = math.exp(float(np.median(levels[max(start, levels.size - WINDOW) :])))
    fewest = FEWEST + LEAST
    reason = "" if levels.size >= fewest else f"{levels.size} of {fewest} runs"
    return Checked(runs, tuple(changes), level, _scatter(levels, numbers, changes), reason)


def _numbered(conditions: Sequence[Conditions]) -> list[int]:
    """The same number for the same conditions, in the order of their first use."""
    numbers: dict[Conditions, int] = {}
    return [numbers.setdefault(each, len(numbers)) for each in conditions]


def _resolution(runs: Sequence[Point]) -> float:
    """The timer's tick over the level, 0 where none is seen."""
    blocks = np.array([median for point in runs[-WINDOW:] for median in point.block_medians])
    return (find_tick(blocks) or 0.0) / float(np.median(blocks))


def _floor(point: Point) -> float:
    """The A/A floor between runs of the GPU that a point was measured on, 0 where it is unknown."""
    conditions = point.conditions
    floor = read_floor(conditions.gpu_uuid, conditions.timer, conditions.cache_policy)
    return floor.between_runs if floor and conditions.gpu_uuid else 0.0


def _scatter(levels: Array, numbers: Sequence[int], changes: Sequence[Change]) -> float:
    """The scatter of a single run around its level, from quartiles: outliers don't count.

    Of the last runs that have enough others at their level; NaN where these are too few.
    """
    places = np.arange(levels.size)
    passed = np.searchsorted([change.first for change in changes], places, side="right")
    rest: list[float] = []
    for part in {*zip(passed.tolist(), numbers, strict=True)}:
        inside = (passed == part[0]) & (np.asarray(numbers) == part[1])
        inside &= places >= levels.size - WINDOW
        if inside.sum() >= FEWEST:
            rest += (levels[inside] - np.median(levels[inside])).tolist()
    if len(rest) < FEWEST:
        return math.nan
    low, high = np.quantile(rest, (0.25, 0.75))
    return float(high - low) / _QUARTILES


def _classed(
    runs: Sequence[Point], levels: Array, step: Detected, earlier: Sequence[Change]
) -> Change:
    good, bad = runs[step.earliest - 1], runs[step.latest]
    start = max([change.first for change in earlier], default=0)
    before = levels[max(start, step.first - WINDOW) : step.first]
    center = float(np.median(before))
    change = Change(
        kind=Kind.REAL,
        before=math.exp(center),
        after=math.exp(center + step.step.size),
        scatter=step.step.scatter,
        p_value=step.step.p_value,
        first=step.first,
        seen=step.seen,
        good=good,
        bad=bad,
        why="",
        age=len(runs) - 1 - step.seen,
    )
    for place in range(step.earliest, step.latest + 1):
        if runs[place].conditions not in [point.conditions for point in runs[:place]]:
            kind = kind_of(runs[place - 1].conditions, runs[place].conditions)
            return replace(change, kind=kind, why=_words(runs, place))
    if why := _same_commit(runs, step) or _flipping(change, earlier):
        return replace(change, kind=Kind.NOISE, why=why)
    return change


def _words(runs: Sequence[Point], place: int) -> str:
    """The conditions that changed with a run, in words."""
    return "; ".join(changed(runs[place - 1].conditions, runs[place].conditions))


def _same_commit(runs: Sequence[Point], step: Detected) -> str:
    """Whether a clean commit was measured at both levels, in words."""

    def clean(points: Sequence[Point]) -> set[str]:
        return {point.commit for point in points} - {""}

    both = clean(runs[: step.earliest]) & clean(runs[step.latest : step.seen + 1])
    commit = next((name for name in both if not name.endswith(DIRTY)), "")
    return f"commit {commit[:9]} was measured at both levels" if commit else ""


def _flipping(change: Change, earlier: Sequence[Change]) -> str:
    """Whether the series went there and back before, in words."""
    size = abs(math.log(change.after / change.before))
    flips = sum(
        abs(abs(math.log(old.after / old.before)) - size) < size * _SAME_LEVEL
        and min(abs(math.log(old.after / level)) for level in (change.before, change.after))
        < size * _SAME_LEVEL
        for old in earlier
        if change.first - old.first < 2 * WINDOW
    )
    return f"the level went between these two {flips} times before" if flips >= _FLIPS else ""


def _between_conditions(
    runs: Sequence[Point],
    levels: Array,
    numbers: Sequence[int],
    steps: Sequence[Detected],
    margin: float,
) -> Iterator[Change]:
    """Changes of level where conditions were first used."""
    starts = [0, *(step.first for step in steps)]
    for place in range(LEAST, len(runs)):
        if numbers[place] in numbers[:place]:
            continue
        begin = max(place - WINDOW, *(start for start in starts if start <= place))
        end = min([place + NEWEST, *(start for start in starts if start > place)])
        before = [run for run in range(begin, place) if numbers[run] == numbers[place - 1]]
        after = [run for run in range(place, min(end, len(runs))) if numbers[run] == numbers[place]]
        if min(len(before), len(after)) < LEAST:
            continue
        values = levels[[*before, *after]]
        step = step_at(values, np.ones((values.size, 1)), len(before), margin / math.sqrt(12))
        if step is None or step.p_value >= ALPHA or abs(step.size) < margin:
            continue
        center = float(np.median(levels[before]))
        seen = after[LEAST - 1]
        yield Change(
            kind=kind_of(runs[place - 1].conditions, runs[place].conditions),
            before=math.exp(center),
            after=math.exp(center + step.size),
            scatter=step.scatter,
            p_value=step.p_value,
            first=place,
            seen=seen,
            good=runs[before[-1]],
            bad=runs[place],
            why=_words(runs, place),
            age=len(runs) - 1 - seen,
        )


def series_marks(points: Sequence[Point]) -> list[Mark]:
    """What plots and pages of a series mark: its changes, and other changes of conditions."""
    checked = check_series(points)
    places: dict[str, int] = {}
    for place, point in enumerate(points):
        places.setdefault(point.run, place)
    marks = {
        (place := places[checked.points[change.first].run]): Mark(
            place, change.kind, _mark_words(change), change.change
        )
        for change in checked.changes
    }
    conditions = {mark.index: mark for mark in condition_marks(points)}
    return [mark for _, mark in sorted((conditions | marks).items())]


def _mark_words(change: Change) -> str:
    size = f"{abs(change.change):.1%} {'slower' if change.change > 0 else 'faster'}"
    return f"{size}: {change.why}" if change.why else size
