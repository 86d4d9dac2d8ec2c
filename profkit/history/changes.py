"""Changes of a series: its steps, classed by what else changed with them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import chain, pairwise

import numpy as np
from msgspec import Struct

from profkit.core.grouping import grouped
from profkit.core.typed_file import Count, Model, Number, Real
from profkit.history.noise import Array, Step, step_at
from profkit.history.record import DIRTY, Conditions, Point, Series
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
from profkit.timing.floor import read_floor
from profkit.timing.statistics import find_tick

_FLIPS = 2  # steps between two levels after which the next is not reported: there and back
_QUARTILES = 1.349  # 2 Phi^-1(3/4): between the quartiles of a normal distribution, in sigmas
_SAME_LEVEL = 1 / 3  # of a step, chosen: levels nearer to each other count as equal
_METHOD = {"clock_policy", "timer", "cache_policy", "profkit"}
"""The conditions that are of the method of measurement."""


class Kind(StrEnum):
    """What a change is: one of the program, of the method, or of hardware or driver."""

    REAL = "real"
    METHOD = "method"
    HARDWARE = "hardware"
    NOISE = "noise"


NAMES = {
    Kind.REAL: "real",
    Kind.METHOD: "method change",
    Kind.HARDWARE: "hardware or driver",
    Kind.NOISE: "noise",
}
"""The kinds of changes in words."""


class Mark(Struct, frozen=True):
    """A change before the point `index`, in words; `change` is that of the median, as a share,
    where a check found it."""

    index: int
    kind: Kind
    words: str
    change: float = 0.0


class RunEntry(Model, frozen=True):
    """A run; "" where its commit is not known."""

    time: str
    commit: str
    run: str
    source: str

    @classmethod
    def of(cls, point: Point) -> RunEntry:
        return cls(point.time.isoformat(), point.commit, point.run, point.source)


class Change(Model, frozen=True, kw_only=True):
    """A change of a series' level, times in seconds.

    `change` is relative, above 0 is slower. `good` is the last run that is surely before it, `bad`
    the first that is surely after: the first bad commit is after the former's, up to the latter's.
    `runs_since` counts the runs since it was detected. `scatter` is that of a single run. `why`
    says what its kind rests on. `cause` compares the stored profiles of both runs, of real changes
    that are news alone.
    """

    kind: Kind
    news: bool = False
    change: Number
    before: Number
    after: Number
    scatter: Number
    p_value: Number
    good: RunEntry
    bad: RunEntry
    runs_since: Count
    why: str
    cause: tuple[str, ...] = ()


class Checked(Model, frozen=True):
    """A series: its level (s) and the relative scatter of its last runs, null where too few.

    `first` and `last` are the levels (s) of its first and last run. `reason` says why it was not
    checked, "" where it was. Changes are in the order of time.
    """

    series: Series
    runs: Count
    level: Number
    first: Number
    last: Number
    scatter: Real
    reason: str
    changes: tuple[Change, ...]


class _Runs(Struct, frozen=True):
    """Runs in the order of time: log times of their blocks, their levels, and the same number for
    the same conditions."""

    points: tuple[Point, ...]
    logs: Sequence[Array]
    levels: Array
    numbers: Sequence[int]

    @classmethod
    def of(cls, points: Sequence[Point]) -> _Runs:
        """The points, those of one run together: they are not independent."""
        by_run = grouped((point.run, point) for point in points)
        runs = tuple(
            replace(same[0], block_medians=tuple(chain(*(point.block_medians for point in same))))
            for same in by_run.values()
        )
        logs = [np.log(np.asarray(point.block_medians)) for point in runs]
        numbers: dict[Conditions, int] = {}
        numbered = [numbers.setdefault(point.conditions, len(numbers)) for point in runs]
        return cls(runs, logs, np.array([level_of(blocks) for blocks in logs]), numbered)

    def changes(self, margin: float) -> list[tuple[int, Change]]:
        """The changes in the order of time, each with the place of the run that it is at."""
        resolution = self._resolution()
        floor = _floor(self.points[-1])
        steps = detect(self.logs, self.numbers, margin, resolution, floor=floor)
        between = self._between_conditions(steps, max(margin, resolution))
        changes: list[tuple[int, Change]] = []
        for step in steps:
            changes.append((step.first, self._classed(step, changes)))
        return sorted([*between, *changes], key=lambda row: row[0])

    def _resolution(self) -> float:
        """The timer's tick over the level, 0 where none is seen."""
        last = self.points[-WINDOW:]
        blocks = np.array([median for point in last for median in point.block_medians])
        return (find_tick(blocks) or 0.0) / float(np.median(blocks))

    def scatter(self, firsts: Sequence[int]) -> float:
        """The scatter of a single run around its level, from quartiles: outliers don't count.

        Of the last runs that have enough others at their level; NaN where these are too few.
        `firsts` are the places of changes.
        """
        places = np.arange(self.levels.size)
        passed = np.searchsorted(firsts, places, side="right")
        rest: list[float] = []
        for part in {*zip(passed.tolist(), self.numbers, strict=True)}:
            inside = (passed == part[0]) & (np.asarray(self.numbers) == part[1])
            inside &= places >= self.levels.size - WINDOW
            if inside.sum() >= FEWEST:
                rest += (self.levels[inside] - np.median(self.levels[inside])).tolist()
        if len(rest) < FEWEST:
            return math.nan
        low, high = np.quantile(rest, (0.25, 0.75))
        return float(high - low) / _QUARTILES

    def _classed(self, step: Detected, earlier: Sequence[tuple[int, Change]]) -> Change:
        start = max([first for first, _ in earlier], default=0)
        center = float(np.median(self.levels[max(start, step.first - WINDOW) : step.first]))
        places = step.earliest - 1, step.latest, step.seen
        for place in range(step.earliest, step.latest + 1):
            known = [point.conditions for point in self.points[:place]]
            if self.points[place].conditions not in known:
                return self._with_conditions(center, step.step, place, places)
        real = self._change(Kind.REAL, "", center, step.step, places)
        why = self._same_commit(step) or _flipping(step.first, real, earlier)
        return self._change(Kind.NOISE, why, center, step.step, places) if why else real

    def _with_conditions(
        self, center: float, step: Step, place: int, places: tuple[int, int, int]
    ) -> Change:
        """A change with that of the conditions at a place."""
        before, after = (self.points[run].conditions for run in (place - 1, place))
        why = "; ".join(before.differences(after).values())
        return self._change(_kind_of(before, after), why, center, step, places)

    def _change(
        self, kind: Kind, why: str, center: float, step: Step, places: tuple[int, int, int]
    ) -> Change:
        """A change from a level (log time); places are those of the last good run, of the first bad
        one, and of the run that it was detected with."""
        before, after = math.exp(center), math.exp(center + step.size)
        good, bad, seen = places
        return Change(
            kind=kind,
            change=after / before - 1,
            before=before,
            after=after,
            scatter=step.scatter,
            p_value=step.p_value,
            good=RunEntry.of(self.points[good]),
            bad=RunEntry.of(self.points[bad]),
            runs_since=len(self.points) - 1 - seen,
            why=why,
        )

    def _same_commit(self, step: Detected) -> str:
        """Whether a clean commit was measured at both levels, in words."""

        def clean(points: Sequence[Point]) -> set[str]:
            return {point.commit for point in points} - {""}

        good, bad = self.points[: step.earliest], self.points[step.latest : step.seen + 1]
        both = clean(good) & clean(bad)
        commit = next((name for name in both if not name.endswith(DIRTY)), "")
        return f"commit {commit[:9]} was measured at both levels" if commit else ""

    def _between_conditions(
        self, steps: Sequence[Detected], margin: float
    ) -> Iterator[tuple[int, Change]]:
        """Changes of level where conditions were first used, by the place of that run."""
        numbers = self.numbers
        starts = [0, *(step.first for step in steps)]
        for place in range(LEAST, len(numbers)):
            if numbers[place] in numbers[:place]:
                continue
            begin = max(place - WINDOW, *(start for start in starts if start <= place))
            end = min([place + NEWEST, *(start for start in starts if start > place)])
            before = [run for run in range(begin, place) if numbers[run] == numbers[place - 1]]
            later = range(place, min(end, len(numbers)))
            after = [run for run in later if numbers[run] == numbers[place]]
            if min(len(before), len(after)) < LEAST:
                continue
            values = self.levels[[*before, *after]]
            step = step_at(values, np.ones((values.size, 1)), len(before), margin / math.sqrt(12))
            if step is None or step.p_value >= ALPHA or abs(step.size) < margin:
                continue
            center = float(np.median(self.levels[before]))
            places = before[-1], place, after[LEAST - 1]
            yield place, self._with_conditions(center, step, place, places)


def check_series(points: Sequence[Point], margin: float = MARGIN) -> Checked:
    """The changes of a series whose points are in the order of time."""
    runs = _Runs.of(points)
    located = runs.changes(margin)
    firsts, levels = [first for first, _ in located], runs.levels
    start = max(firsts, default=0)
    level = math.exp(float(np.median(levels[max(start, levels.size - WINDOW) :])))
    fewest = FEWEST + LEAST
    reason = "" if levels.size >= fewest else f"{levels.size} of {fewest} runs"
    changes = tuple(change for _, change in located)
    scatter = runs.scatter(firsts)
    first, last = (math.exp(float(levels[place])) for place in (0, -1))
    return Checked(points[0].series, levels.size, level, first, last, scatter, reason, changes)


def _floor(point: Point) -> float:
    """The A/A floor between runs of the GPU that a point was measured on, 0 where it is unknown."""
    conditions = point.conditions
    floor = read_floor(conditions.gpu_uuid, conditions.timer, conditions.cache_policy)
    return floor.between_runs if floor and conditions.gpu_uuid else 0.0


def _flipping(first: int, change: Change, earlier: Sequence[tuple[int, Change]]) -> str:
    """Whether the series went there and back before, in words."""
    size = abs(math.log(change.after / change.before))
    flips = sum(
        abs(abs(math.log(old.after / old.before)) - size) < size * _SAME_LEVEL
        and min(abs(math.log(old.after / level)) for level in (change.before, change.after))
        < size * _SAME_LEVEL
        for place, old in earlier
        if first - place < 2 * WINDOW
    )
    return f"the level went between these two {flips} times before" if flips >= _FLIPS else ""


def _kind_of(before: Conditions, after: Conditions) -> Kind:
    """What a change between two conditions is: one of the method where any of these differs."""
    return Kind.METHOD if before.differences(after).keys() & _METHOD else Kind.HARDWARE


def series_marks(points: Sequence[Point]) -> list[Mark]:
    """What the page of a series marks: its changes, and other changes of conditions."""
    marks: dict[int, Mark] = {}
    for place, (before, after) in enumerate(pairwise(point.conditions for point in points), 1):
        if words := "; ".join(before.differences(after).values()):
            marks[place] = Mark(place, _kind_of(before, after), words)
    runs = _Runs.of(points)
    places: dict[str, int] = {}
    for place, point in enumerate(points):
        places.setdefault(point.run, place)
    for first, change in runs.changes(MARGIN):
        place = places[runs.points[first].run]
        size = f"{abs(change.change):.1%} {'slower' if change.change > 0 else 'faster'}"
        words = ": ".join(filter(None, (size, change.why)))
        marks[place] = Mark(place, change.kind, words, change.change)
    return [mark for _, mark in sorted(marks.items())]
