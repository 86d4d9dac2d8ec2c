"""All that the written report of a baseline tells, as `profkit.baseline_report` gathers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from profkit.analysis.baseline import Row, Scaling
from profkit.analysis.baseline_evidence import Evidence, Goal
from profkit.analysis.checklist import Checklist, Item
from profkit.analysis.diff import KernelDiff
from profkit.analysis.latency import Pair
from profkit.analysis.published import Against


@dataclass(frozen=True)
class Profiled:
    """A cell that was profiled: its report's headline and checklist, or why there is none."""

    id: str
    headline: str
    found: Checklist | None
    reason: str


@dataclass(frozen=True)
class Step:
    """A change in a ladder of variants that took turns: `pair.b` after `pair.a`.

    `aim` is the first finding on the variant before, `limit` that on the one after; None where its
    profile has none or there is no profile. `evidence` is what changed between the profiles, where
    each has one kernel.
    """

    pair: Pair
    aim: Item | None
    limit: Item | None
    evidence: KernelDiff | None = None


@dataclass(frozen=True)
class Written:
    """A baseline and all that its report says beyond it.

    `summary` is `profkit.baseline/1`, `rows` its cells, `statistics` and `sources` what their files
    say of the samples and of where they are from, by cell. `goals` are for the top cells. `price`
    is for an hour and GPU, `cost` what measuring took at that price; None where unknown.
    """

    summary: Mapping[str, Any]
    rows: tuple[Row, ...]
    scaling: tuple[Scaling, ...]
    statistics: Mapping[str, Mapping[str, Any]]
    sources: Mapping[str, Mapping[str, Any]]
    evidence: Evidence
    goals: tuple[Goal, ...]
    against: tuple[Against, ...]
    profiled: tuple[Profiled, ...] = ()
    steps: tuple[Step, ...] = ()
    steps_title: str = ""
    price: float | None = None
    cost: float | None = None

    @property
    def timed(self) -> tuple[Row, ...]:
        """Cells with a time."""
        return tuple(row for row in self.rows if row.is_timed)

    def fastest(self) -> tuple[Row, ...]:
        """The fastest cell of each shape, in the order of the shapes."""
        ids = {one["id"] for one in self.summary["best"] if one["what"] == "backend"}
        return tuple(row for row in self.rows if row.id in ids)
