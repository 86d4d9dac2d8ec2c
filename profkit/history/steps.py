"""Steps in a row of runs: each run is judged with those before it alone, as a check after it would.

A step that was detected stays: later runs never move or withdraw an alarm. The thresholds were
chosen on simulated histories of some kinds of noise and measured on others
(docs/reference/methods/history.md, benchmarks/history_alarms.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from numpy.lib.stride_tricks import sliding_window_view

from profkit.history.divisive import candidates, distances
from profkit.history.noise import Array, Step, step_at

Places = npt.NDArray[np.intp]

WINDOW = 60  # chosen: runs that a new one is compared with; more know the noise hardly better
FEWEST = 8  # chosen: runs before a step; fewer leave its noise unknown
LEAST = 3  # runs that must agree on a step: two outliers in a row are no alarm
# Chosen on simulations: a step that no check saw while it was this new is a wander of the machine.
NEWEST = 8
ALPHA = 0.0075  # chosen on simulations: 90% of steps of 3.3 scatters in three runs
SURPASS = 0.9  # chosen on simulations: of the largest such difference before the step
_REACH = 12  # runs whose median is the level before a place; chosen with SURPASS
_WIDTH = 5  # at most so many runs make the level after a place; chosen with SURPASS
MARGIN = 0.01  # the default margin (timing.results.Thresholds)
_SPIKE = 4.0  # scatters from the runs around it: an outlier; 1 in 16,000 normal ones
_NEAR = 3  # runs to either side of one that may be an outlier; chosen as LEAST
_CAP = 3.0  # scatters above the least of the newest runs, so that one outlier can't make a step
_MAD_TO_SIGMA = 1.4826  # 1 / Phi^-1(3/4)
_MANY_BLOCKS = 40  # chosen: the median is then as good, and pairs grow with the square
_KNOWN = 20  # chosen: from so many runs on their own scatter is known better than by a calibration
# sqrt((1/3 + 1/8) / 2): the difference of means of three and eight runs over that of two runs.
_OF_FLOOR = 0.48
_LIKELY = 2.0  # log likelihood that a 95% confidence set of places may lack (chi square, 1 degree)


class Detected(Struct, frozen=True):
    """A step at run `first`, seen with run `seen`; it is at a run from `earliest` to `latest`."""

    first: int
    seen: int
    earliest: int
    latest: int
    step: Step


def level_of(blocks: Array) -> float:
    """The level of a run: the median of the means of any two blocks (Hodges and Lehmann 1963).

    Of eight normal blocks it varies as their mean does, the median 1.35 times as much.
    """
    if blocks.size > _MANY_BLOCKS:
        return float(np.median(blocks))
    first, second = np.triu_indices(blocks.size)
    return float(np.median((blocks[first] + blocks[second]) / 2))


def detect(
    runs: Sequence[Array],
    groups: Sequence[int],
    margin: float = MARGIN,
    resolution: float = 0.0,
    floor: float = 0.0,
) -> list[Detected]:
    """The steps in logarithms of block medians, run by run.

    Runs with the same number in `groups` were measured under the same conditions: steps between
    groups are none. Steps below the `margin`, or below the timer's `resolution` (both of log time),
    are none either; where few runs precede them, steps below the A/A `floor` between two runs,
    scaled to the means of as many runs.
    """
    levels = np.array([level_of(run) for run in runs])
    stated = np.asarray(groups, dtype=np.intp)
    divided = stated.copy()  # at steps too, as if what follows were measured under other conditions
    least = max(margin, resolution)
    steps: list[Detected] = []
    start = settled = 0
    for end in range(FEWEST + LEAST, levels.size + 1):
        is_alone = end - start >= FEWEST + LEAST  # fewer runs lean on the scatter before the step
        numbers = stated if is_alone else divided
        begin = max(start if is_alone else 0, end - WINDOW)
        part = slice(begin, end)
        if _is_quiet(levels[part], numbers[part], least):
            continue
        window = _Window.of(runs[part], levels[part], numbers[part], resolution)
        short = end - begin < _KNOWN
        least_step = max(least, floor * _OF_FLOOR) if short else least
        best = window.newest_step(least_step, settled - begin)
        if best is not None:
            split, step = best
            low, high = window.likely_places(split)
            steps.append(Detected(begin + split, end - 1, begin + low, begin + high, step))
            start, settled = begin + split, begin + high + 1
            for place in (low, high):
                divided[begin + place :] += divided.max() + 1
    return steps


def _is_quiet(levels: Array, groups: Places, margin: float) -> bool:
    """Whether no mean of the newest runs is far from the others of their conditions."""
    own = levels[groups == groups[-1]]
    if own.size <= LEAST:
        return True
    means = np.cumsum(own[: -NEWEST - 1 : -1])[LEAST - 1 :] / np.arange(
        LEAST, 1 + min(NEWEST, own.size)
    )
    return bool(np.abs(means - np.median(own)).max() < margin / 2)


class _Window(Struct, frozen=True):
    """The runs that a check looks at, each centered on the runs of its conditions."""

    runs: tuple[Array, ...]
    values: Array
    groups: Places
    scatter: float
    least_scatter: float

    @classmethod
    def of(cls, runs: Sequence[Array], levels: Array, groups: Places, resolution: float) -> _Window:
        centers = np.zeros(levels.size)
        for group in np.unique(groups):
            inside = groups == group
            centers[inside] = np.median(levels[inside])
        centered = levels - centers
        values, scatter = _without_spikes(centered)
        return cls(
            tuple(run - center for run, center in zip(runs, centers, strict=True)),
            values,
            groups,
            scatter,
            resolution / np.sqrt(12),  # of what is rounded to a grid of that width
        )

    @property
    def columns(self) -> Array:
        members: Array = (self.groups[:, None] == np.unique(self.groups)).astype(np.float64)
        return members

    def newest_step(self, margin: float, first: int) -> tuple[int, Step] | None:
        """The clearest step among the candidates from run `first` on; None where there is none."""
        best: tuple[int, Step] | None = None
        for split in candidates(distances(self.runs), FEWEST, LEAST):
            is_new = split >= first and self.values.size - split <= NEWEST
            if not is_new or not self._agrees(split):
                continue
            step = self._step(split)
            clear = step is not None and step.p_value < ALPHA and abs(step.size) > margin
            if step is None or not clear or not self._surpasses(split, step):
                continue
            if best is None or step.p_value < best[1].p_value:
                best = split, step
        return best

    def _agrees(self, split: int) -> bool:
        """Whether enough runs from a place on are at one level, and the first is not plainly at the
        level before.

        With the cap on outliers, a step of many scatters that is placed a run too early is a small
        one, and sure.
        """
        before = float(np.median(self.values[:split]))
        after = float(np.median(self.values[split:]))
        distances = np.abs(self.values[split:] - after)
        far = distances > _SPIKE * max(self.scatter, self.least_scatter)
        is_before = far[0] and abs(float(self.values[split]) - before) < distances[0]
        return bool(np.count_nonzero(~far) >= LEAST and not is_before)

    def likely_places(self, split: int) -> tuple[int, int]:
        """The first and the last run that the step may be at, 95% confidence."""
        likelihoods = {split: self._likelihood(split)}
        for place in range(max(1, self.values.size - NEWEST - LEAST), self.values.size):
            likelihoods[place] = self._likelihood(place)
        least = max(likelihoods.values()) - _LIKELY
        likely = [place for place, value in likelihoods.items() if value >= least or place == split]
        return min(likely), max(likely)

    def _likelihood(self, split: int) -> float:
        step = step_at(self.values, self.columns, split, self.least_scatter)
        return -np.inf if step is None else step.likelihood

    def _step(self, split: int) -> Step | None:
        """The step without what single outliers add to it."""
        plain = step_at(self.values, self.columns, split, self.least_scatter)
        if plain is None:
            return None
        capped = self._capped(split, plain.size)
        return step_at(capped, self.columns, split, self.least_scatter)

    def _capped(self, split: int, size: float) -> Array:
        """The values, those after the step no further than the cap from the least of them."""
        sign = np.sign(size)
        after = self.values[split:] * sign
        least = np.sort(after)[(after.size - 1) // _WIDTH]
        capped = self.values.copy()
        capped[split:] = np.minimum(after, least + _CAP * self.scatter) * sign
        return capped

    def _surpasses(self, split: int, step: Step) -> bool:
        """Whether the step is as large as any difference between neighboring levels before it."""
        values = self._capped(split, step.size)
        for group in np.unique(self.groups):
            inside = self.groups == group
            before = inside & (np.arange(values.size) < split)
            rest = values[before].mean() if before.any() else values[inside].mean() - step.size
            values[inside] -= rest
        width = min(values.size - split, _WIDTH)
        places = np.arange(3, split - width + 1)
        earlier = _differences(values, places, width)
        size = _differences(values, np.array([split]), width)[0]
        return bool(size > SURPASS * earlier.max(initial=0.0))


def _differences(values: Array, places: Places, width: int) -> Array:
    """By how much the median of `width` runs from a place on differs from that of those before."""
    after = np.median(sliding_window_view(values, width), axis=1)[places]
    before = np.array([np.median(values[max(0, place - _REACH) : place]) for place in places])
    result: Array = np.abs(after - before) if places.size else np.empty(0)
    return result


def _without_spikes(values: Array) -> tuple[Array, float]:
    """The values, single outliers put at the level around them, and the scatter of neighbors.

    An outlier is far from the runs before it and from those after it, to the same side. The newest
    runs stay as they are: they may be the beginning of a step.
    """
    scatter = _MAD_TO_SIGMA * float(np.median(np.abs(np.diff(values)))) / np.sqrt(2)
    padded = np.concatenate((values[_NEAR:0:-1], values, values[-2 : -_NEAR - 2 : -1]))
    medians = np.median(sliding_window_view(padded, _NEAR), axis=1)
    before, after = medians[: values.size], medians[_NEAR + 1 :]
    up = values - np.maximum(before, after) > _SPIKE * scatter
    down = np.minimum(before, after) - values > _SPIKE * scatter
    spikes = up | down
    spikes[values.size - LEAST :] = False
    return np.where(spikes, (before + after) / 2, values), scatter
