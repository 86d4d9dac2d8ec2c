"""All that the written report of a baseline tells, as `profkit.study.report_content` gathers it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from profkit.audit.audit import Outcome
from profkit.comparison.attribution import Cause
from profkit.comparison.comparison import Diff
from profkit.report.floors import Floor
from profkit.rules.checklist import Checklist, Item
from profkit.study.evidence import Evidence, Goal, SameKernel
from profkit.study.json import BaselineFile
from profkit.study.published import Against
from profkit.study.summary import Row
from profkit.timing.cell import Source
from profkit.timing.latency import Pair
from profkit.timing.results import Summary


@dataclass(frozen=True)
class Profiled:
    """A cell that was profiled: its report's headline and checklist, or why there is none.

    `busiest` are the resources that the longest launch kept busiest, the first the most.
    """

    id: str
    headline: str
    found: Checklist | None
    reason: str
    busiest: tuple[Floor, ...] = ()


@dataclass(frozen=True)
class Step:
    """A change in a ladder of variants that took turns: `pair.b` after `pair.a`.

    `aim` is the first finding on the variant before, `limit` that on the one after; None where its
    profile has none or there is no profile. `evidence` is what changed between the profiles,
    kernels matched in the order in which they ran.
    """

    pair: Pair
    aim: Item | None
    limit: Item | None
    evidence: Diff | None = None

    def causes(self, most: int) -> tuple[tuple[Cause, ...], float]:
        """The largest causes of ncu's change of time, and the sum of the others (s).

        Kernels that came or went are neither.
        """
        if self.evidence is None:
            return (), 0.0
        total = self.evidence.total
        named = tuple(cause for cause in total.causes[:most] if cause.seconds)
        return named, total.after - total.before - sum(cause.seconds for cause in named)


@dataclass(frozen=True)
class Standing:
    """At how many shapes a backend is the fastest, or several are tied.

    `backends` are the kernels that nothing tells apart, by name; one where it is the fastest alone.
    `chosen_by` counts other backends that came down to it then.
    """

    backends: tuple[str, ...]
    shapes: int
    chosen_by: Mapping[str, int]


@dataclass(frozen=True)
class Written:
    """A baseline and all that its report says beyond it.

    `statistics` are those of the cells' samples, `sources` what their files say of where they are
    from, by cell. `goals` are for the top cells. `same` is what comparisons of a kernel with itself
    show, None without any. `claims` are published ones that do not hold. `price` is for an hour and
    GPU, `cost` what measuring took at that price; None where unknown. `not_asked` are backends that
    come with profkit and were left out.
    """

    summary: BaselineFile
    statistics: Mapping[str, Summary]
    sources: Mapping[str, Source]
    evidence: Evidence
    goals: tuple[Goal, ...]
    against: tuple[Against, ...]
    same: SameKernel | None = None
    claims: tuple[Outcome, ...] = ()
    profiled: tuple[Profiled, ...] = ()
    steps: tuple[Step, ...] = ()
    steps_title: str = ""
    price: float | None = None
    cost: float | None = None
    not_asked: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """The cells."""
        return self.summary.cells

    @property
    def timed(self) -> tuple[Row, ...]:
        """Cells with a time."""
        return tuple(row for row in self.rows if row.is_timed)

    def fastest(self) -> tuple[Row, ...]:
        """The fastest cell of each shape, in the order of the shapes."""
        ids = {best.id for best in self.summary.best if best.what == "backend"}
        return tuple(row for row in self.rows if row.id in ids)

    def standings(self) -> tuple[Standing, ...]:
        """The backends that are the fastest somewhere, alone before tied, the most often first.

        One that chooses another runs the other's kernel: what lies between them is noise.
        """
        won: dict[tuple[str, ...], list[Row]] = {}
        for row in self.fastest():
            kernels = {one.chosen or one.backend for one in (row, *self.tied(row))}
            won.setdefault(tuple(sorted(kernels)), []).append(row)
        found = [
            Standing(names, len(rows), Counter(row.backend for row in rows if row.chosen))
            for names, rows in won.items()
        ]
        return tuple(sorted(found, key=lambda one: (len(one.backends) > 1, -one.shapes)))

    def tied(self, row: Row) -> tuple[Row, ...]:
        """What nothing tells apart from a cell that is the best of its kind."""
        ids = {name for best in self.summary.best if best.id == row.id
               for name in best.tied if best.what == "backend"}  # fmt: skip
        return tuple(one for one in self.rows if one.id in ids)
