"""Whether two launches computed a problem of equal size, from their work counters.

Thread counts don't show it: more work per thread is a common fix, and a persistent kernel has one
number of threads for every size. A size that changes moves all work; a fix leaves some of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from profkit.report.summary import LaunchSummary

EQUAL = 0.02
"""Amounts of work nearer than this are equal: below repeats.NOISE, so that a size which differs by
less makes no difference that a verdict could rest on."""

# Kernels that load nothing read 0.07 to 0.3 MB of DRAM under ncu (H200: code and constants).
_LEAST_DRAM_BYTES = 1e6
# An output of fewer bytes than this share of what is loaded is a reduction's: it need not grow.
# Chosen: a higher share takes the output of a map of several inputs for a reduction's.
_LEAST_OUTPUT = 1 / 16


Kind = Literal["arithmetic", "reads", "writes", "instructions"]
"""What a measure of work counts; measures of two kinds are independent."""


@dataclass(frozen=True)
class Measure:
    """An amount of work on both sides."""

    kind: Kind
    label: str
    before: float
    after: float

    @property
    def ratio(self) -> float:
        return self.after / self.before

    @property
    def is_equal(self) -> bool:
        return _near(self.ratio, 1.0)


@dataclass(frozen=True)
class SizeEvidence:
    """Evidence of the sizes of two launches: threads, NaN where unknown, and measures of work."""

    threads: tuple[float, float]
    measures: tuple[Measure, ...]

    @property
    def equal(self) -> tuple[Measure, ...]:
        return tuple(measure for measure in self.measures if measure.is_equal)

    @property
    def scaled(self) -> tuple[Measure, ...]:
        """Measures of two kinds that changed by one factor, as with a size; () where none did."""
        moved = [
            measure
            for measure in self.measures
            if not measure.is_equal and measure.kind != "instructions"
        ]
        pairs = (
            pair
            for pair in combinations(moved, 2)
            if pair[0].kind is not pair[1].kind and _near(pair[0].ratio, pair[1].ratio)
        )
        return next(pairs, ())

    @property
    def has_equal_threads(self) -> bool:
        """Whether threads are equal, or unknown."""
        return self.threads[0] == self.threads[1] or any(map(math.isnan, self.threads))

    @property
    def is_proven(self) -> bool:
        """Whether work shows one size: equal arithmetic; or something else equal that a size would
        change, and no two kinds of work that changed by one factor."""
        if any(measure.kind == "arithmetic" for measure in self.equal):
            return True
        size_dependent = [measure for measure in self.equal if self._grows(measure)]
        return bool(size_dependent) and not self.scaled

    @property
    def is_same(self) -> bool:
        """Whether it is taken for one size: proven, or threads are equal and work does not show
        another, or nothing is known."""
        if self.is_proven:
            return True
        if self.equal or not self.has_equal_threads:
            return self.has_equal_threads
        return not self.scaled and not self._is_all_more_or_less

    @property
    def _is_all_more_or_less(self) -> bool:
        """Whether work of two kinds or more is known, and all of it grew, or all of it fell."""
        kinds = {measure.kind for measure in self.measures} - {"instructions"}
        directions = {measure.ratio > 1 for measure in self.measures}
        return len(kinds) > 1 and len(directions) == 1

    def _grows(self, measure: Measure) -> bool:
        """Whether a measure changes with the size: not the output of a reduction."""
        if measure.kind != "writes":
            return True
        reads = [other.before for other in self.measures if other.kind == "reads"]
        return measure.before >= _LEAST_OUTPUT * max(reads, default=0.0)


def size_evidence(before: LaunchSummary, after: LaunchSummary) -> SizeEvidence:
    """Evidence of the problem sizes of two launches."""
    sides = _amounts(before), _amounts(after)
    threads = _threads(before), _threads(after)
    measures = [
        Measure(kind, label, amount, amount_after)
        for (kind, label, amount, least), (_, _, amount_after, _) in zip(*sides, strict=True)
        if amount > least and amount_after > least
    ]
    return SizeEvidence(threads, tuple(measures))


def _amounts(launch: LaunchSummary) -> Sequence[tuple[Kind, str, float, float]]:
    """Kind, label, amount and the amount that says nothing yet, of each measure."""
    each = launch.get("threads_per_instruction_predicated")
    loaded = sum(launch.values.get(name, 0.0) for name in ("async_copy_bytes", "tma_load_bytes"))
    stored = launch.values.get("tma_store_bytes", 0.0)
    instructions = launch.get("instructions_executed") * each
    return (
        ("arithmetic", "FLOP", launch.get("flop"), _threads(launch)),
        ("reads", "B loaded by threads", _requested(launch, "load") + loaded, 0.0),
        ("reads", "B read from DRAM", launch.get("dram_read_bytes"), _LEAST_DRAM_BYTES),
        ("writes", "B stored by threads", _requested(launch, "store") + stored, 0.0),
        ("instructions", "thread instructions", instructions, 0.0),
    )


def _requested(launch: LaunchSummary, way: str) -> float:
    """Bytes that threads asked for, whatever the sectors that it took; 0 where there were none to
    have a size."""
    count = launch.get(f"global_{way}_sectors")
    return 0.0 if count == 0 else count * launch.get(f"global_{way}_bytes_per_sector")


def _threads(launch: LaunchSummary) -> float:
    return launch.get("grid_size") * launch.get("block_size")


def _near(first: float, second: float) -> bool:
    return abs(math.log(first / second)) <= math.log1p(EQUAL)
