"""Whether two launches computed a problem of equal size, from their work counters.

Thread counts don't show it: more work per thread is a common fix, and a persistent kernel has one
number of threads for every size. A size that changes moves all work; a fix leaves some of it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Literal

from msgspec import field

from profkit.core.typed_file import Model, Number, Real
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


_KINDS: Mapping[str, Kind] = {
    "FLOP": "arithmetic",
    "B loaded by threads": "reads",
    "B read from DRAM": "reads",
    "B stored by threads": "writes",
    "thread instructions": "instructions",
}


class Measure(Model, frozen=True):
    """An amount of work on both sides."""

    label: str = field(name="measure")
    before: Number
    after: Number
    is_equal: bool = field(name="equal")

    @property
    def kind(self) -> Kind:
        return _KINDS[self.label]

    @property
    def ratio(self) -> float:
        return self.after / self.before


class SizeEvidence(Model, frozen=True):
    """Evidence of the problem's size from counters; `proven`: equal work shows equal size."""

    threads: tuple[Real, Real]
    is_proven: bool = field(name="proven")
    measures: tuple[Measure, ...] = field(name="work")

    @property
    def equal(self) -> tuple[Measure, ...]:
        return tuple(measure for measure in self.measures if measure.is_equal)

    @property
    def has_equal_threads(self) -> bool:
        """Whether threads are equal, but for those of last blocks, or unknown."""
        return any(map(math.isnan, self.threads)) or _near(*self.threads)

    @property
    def is_same(self) -> bool:
        """Whether it is taken for one size: proven, or threads are equal and work does not show
        another, or nothing is known."""
        if self.is_proven:
            return True
        if self.equal or not self.has_equal_threads:
            return self.has_equal_threads
        return not _scaled(self.measures) and not self._is_all_more_or_less

    @property
    def _is_all_more_or_less(self) -> bool:
        """Whether work of two kinds or more is known, and all of it grew, or all of it fell."""
        kinds = {measure.kind for measure in self.measures} - {"instructions"}
        directions = {measure.ratio > 1 for measure in self.measures}
        return len(kinds) > 1 and len(directions) == 1


def _scaled(measures: Iterable[Measure]) -> bool:
    """Whether measures of two kinds changed by one factor, as with a size."""
    moved = [
        measure for measure in measures if not measure.is_equal and measure.kind != "instructions"
    ]
    return any(
        first.kind != second.kind and _near(first.ratio, second.ratio)
        for first, second in combinations(moved, 2)
    )


def _is_proven(measures: Sequence[Measure]) -> bool:
    """Whether work shows one size: equal arithmetic; or something else equal that a size would
    change, not the output of a reduction, and no two kinds of work that changed by one factor."""
    equal = [measure for measure in measures if measure.is_equal]
    if any(measure.kind == "arithmetic" for measure in equal):
        return True
    reads = max((measure.before for measure in measures if measure.kind == "reads"), default=0.0)
    return not _scaled(measures) and any(
        measure.kind != "writes" or measure.before >= _LEAST_OUTPUT * reads for measure in equal
    )


def size_evidence(before: LaunchSummary, after: LaunchSummary) -> SizeEvidence:
    """Evidence of the problem sizes of two launches."""
    sides = _amounts(before), _amounts(after)
    threads = _threads(before), _threads(after)
    measures = tuple(
        Measure(label, amount, amount_after, _near(amount_after / amount, 1.0))
        for (label, amount, least), (_, amount_after, _) in zip(*sides, strict=True)
        if amount > least and amount_after > least
    )
    return SizeEvidence(threads, _is_proven(measures), measures)


def _amounts(launch: LaunchSummary) -> Sequence[tuple[str, float, float]]:
    """Label, amount and the amount that says nothing yet, of each measure."""
    each = launch.get("threads_per_instruction_predicated")
    loaded = sum(launch.values.get(name, 0.0) for name in ("async_copy_bytes", "tma_load_bytes"))
    stored = launch.values.get("tma_store_bytes", 0.0)
    instructions = launch.get("instructions_executed") * each
    return (
        ("FLOP", launch.get("flop"), _threads(launch)),
        ("B loaded by threads", _requested(launch, "load") + loaded, 0.0),
        ("B read from DRAM", launch.get("dram_read_bytes"), _LEAST_DRAM_BYTES),
        ("B stored by threads", _requested(launch, "store") + stored, 0.0),
        ("thread instructions", instructions, 0.0),
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
