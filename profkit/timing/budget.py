"""How long a baseline takes, and how a time budget is divided over its cells.

Cheap cells get all their samples, the most expensive ones fewer. The time of a call is predicted
from its FLOP at the best rate of its backend so far; times are in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TypeAlias

Todo: TypeAlias = tuple[str, Sequence[str]]
"""A shape, and its backends that are to be measured."""

FEWEST_IN_A_BLOCK = (
    3  # chosen: fewer have no median of their own; a budget trades samples for cells
)
GPU_PROBES = 65  # of profkit.timing.stopwatch: 20 probes each for three questions, and a few calls
_PROBING = 0.3  # seconds: three questions of 0.1 s (stopwatch), but at least three calls each
_FEWEST_PROBES = 12  # 3 calls each for three questions (stopwatch), and a few
_FIRST_GAP = 1e-4  # s, a first guess until gaps were observed: an L2 flush and its launches


def level(costs: Sequence[float], seconds: float) -> float:
    """The most that any cell may cost (s) so that all cells together take `seconds`.

    `costs` are what the cells would cost in full (s); infinite where all of that fits.
    """
    left = seconds
    ascending = sorted(costs)
    for index, cost in enumerate(ascending):
        fair = max(left, 0.0) / (len(ascending) - index)
        if cost > fair:
            return fair
        left -= cost
    return math.inf


def samples_a_block(asked: int, blocks: int, cost: float, limit: float) -> int:
    """Samples to take in each of `blocks`, of `asked` in all that would cost `cost` (s).

    As many as cost no more than `limit` (s), but three a block where as many were asked for.
    """
    full = math.ceil(asked / blocks)
    if cost <= limit:
        return full
    return max(min(FEWEST_IN_A_BLOCK, full), min(full, int(asked * limit / cost / blocks)))


@dataclass
class Outlook:
    """What the rest of a baseline is expected to take; it learns as it goes.

    `flop` (above 0) is by shape, `warmup` (s) of a cell, which takes `probes` calls more to
    prepare, `asked` samples in `blocks` blocks, and `behind` (s) of what follows its samples.
    """

    flop: Mapping[str, float]
    asked: int
    blocks: int
    warmup: float
    probes: int = GPU_PROBES
    behind: float = 0.0
    _rates: dict[str, float] = field(default_factory=dict)
    _calls: list[float] = field(default_factory=list)
    _gaps: list[float] = field(default_factory=list)
    _overheads: list[float] = field(default_factory=list)

    @property
    def knows(self) -> bool:
        """Whether any call was observed."""
        return bool(self._calls)

    def saw_call(self, shape: str, backend: str, seconds: float) -> None:
        """Record the time of a call of a backend."""
        self._calls.append(seconds)
        if shape in self.flop:
            rate = self.flop[shape] / seconds
            self._rates[backend] = max(self._rates.get(backend, 0.0), rate)

    def saw_gap(self, seconds: float) -> None:
        """Record the time between two samples."""
        self._gaps.append(max(0.0, seconds))

    def saw_preparation(self, seconds: float, calls: Sequence[float]) -> None:
        """Record the time until a shape's first sample; its backends take `calls` (s) per call."""
        self._overheads.append(max(0.0, seconds - sum(map(self._preparation, calls))))

    def cost(self, call: float) -> float:
        """Seconds of all samples of a cell."""
        return math.ceil(self.asked / self.blocks) * self.blocks * (call + self._gap)

    def samples(
        self, here: Mapping[str, float], later: Iterable[Todo], left: float
    ) -> dict[str, int]:
        """How many samples a block each backend of a shape may take.

        `here` are seconds of a sample by backend, `left` what is left for these and `later` (s).
        """
        later = list(later)
        costs = {name: self.cost(call) for name, call in here.items()}
        dear = [self.cost(self._call(shape, name)) for shape, names in later for name in names]
        left -= sum(self._overhead(todo) for todo in later)
        limit = level([*costs.values(), *dear], left)
        return {
            name: samples_a_block(self.asked, self.blocks, cost, limit)
            for name, cost in costs.items()
        }

    def fits(self, todo: Todo, left: float) -> bool:
        """Whether the fewest samples of a shape fit into `left` seconds."""
        shape, names = todo
        fewest = min(FEWEST_IN_A_BLOCK * self.blocks, self.asked)
        samples = sum(fewest * (self._call(shape, name) + self._gap) for name in names)
        return left > 0 and self._overhead(todo) + samples <= left

    def seconds(self, later: Iterable[Todo]) -> float:
        """What shapes take with all their samples."""
        return sum(
            self._overhead((shape, names))
            + sum(self.cost(self._call(shape, name)) for name in names)
            for shape, names in later
        )

    @property
    def _gap(self) -> float:
        return median(self._gaps) if self._gaps else _FIRST_GAP

    def _call(self, shape: str, backend: str) -> float:
        """What a call is expected to take; 0 where nothing is known."""
        if shape in self.flop and self._rates:
            return self.flop[shape] / self._rates.get(backend, median(self._rates.values()))
        return median(self._calls) if self._calls else 0.0

    def _preparation(self, call: float) -> float:
        """Long calls are probed less often."""
        fewest = min(self.probes, _FEWEST_PROBES)
        return self.warmup + max(fewest * call, min(self.probes * call, _PROBING))

    def _overhead(self, todo: Todo) -> float:
        """Seconds of a shape beside its samples; nothing is expected before anything is known."""
        if not self.knows:
            return 0.0
        shape, names = todo
        first = median(self._overheads) if self._overheads else 0.0
        cells = sum(self._preparation(self._call(shape, name)) + self.behind for name in names)
        return first + cells
