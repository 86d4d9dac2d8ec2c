"""How far an analysis without counters agrees with the full one, on recorded pairs.

The counters of the report before the fix are not read. Its findings are ordered by factors that
were fitted without the pair's family. The declared work is what a target would declare: as bytes
the pair's inputs and output, each moved once; pairs declare no FLOP, so those of the fixed kernel,
as its counters have them, stand for it. The time is the timed one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from profkit.core.typed_file import Count, Model, Real
from profkit.report.counter_free import counter_free
from profkit.report.summary import ReportSummary
from profkit.rules.checklist import Checklist
from profkit.rules.code_signs import factors
from profkit.rules.declared_headroom import DeclaredWork
from profkit.rules.outlook import Call, outlook_of_launches

NEAR = 0.2
"""The error of a headroom that is near, of the factor and of the time, by the requirement."""

_FLOP = ("flop_tensor", "flop_fp32", "flop_fp64", "flop_fp16")
_SIZES = {
    "float16": 2,
    "bfloat16": 2,
    "uint8": 1,
    "int32": 4,
    "float32": 4,
    "int64": 8,
    "float64": 8,
}


class TensorForm(Struct, frozen=True):
    """An input or the output of a pair, as far as its bytes."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * _SIZES[self.dtype]


class BlindScore(Model, frozen=True, kw_only=True):
    """A pair without counters: the category of the first finding and that of the full analysis's,
    null without one; headrooms by declared work and by the full analysis, null where unknown."""

    first: str | None
    full: str | None
    headroom: Real
    full_headroom: Real

    @property
    def is_within(self) -> bool:
        """Whether the headroom is within NEAR of the full analysis's."""
        return abs(self.headroom / self.full_headroom - 1) <= NEAR

    @property
    def is_near(self) -> bool:
        """Whether what it leaves of the time is: the ends of both floors, as shares of the time."""
        return abs(1 / self.headroom - 1 / self.full_headroom) <= NEAR


class BlindPart(Model, frozen=True, kw_only=True):
    """Pairs without counters: shares whose first finding is of the full analysis's category, and of
    the pair's; of `headrooms` those within 20% of the full analysis's, and those whose floor is
    within 20% of the time of its."""

    pairs: Count
    agree: Real
    true: Real
    headrooms: Count
    within: Real
    near: Real


def blind_score(
    report: Path,
    family: str,
    work: DeclaredWork,
    seconds: float,
    examined: tuple[ReportSummary, Checklist],
) -> BlindScore:
    """Score the report of a kernel with a defect; `examined` is it with its counters."""
    calls = {"": Call(work, seconds)}
    blind = outlook_of_launches(counter_free(report), calls, factors(family))
    summary, checklist = examined
    full = checklist.findings[0].rule.category if checklist.findings else None
    own = blind.wholes[0].headroom if blind.wholes else None
    return BlindScore(
        first=blind.findings[0].category if blind.findings else None,
        full=full,
        headroom=own.factor if own else math.nan,
        full_headroom=_headroom(summary, checklist),
    )


def _headroom(summary: ReportSummary, checklist: Checklist) -> float:
    """Of a report: its time over that of all kernels at their floors; NaN where one is unknown."""
    left = 0.0
    for group in summary.groups:
        headroom = checklist.headroom_of(group)
        left += group.total / headroom.factor if headroom else math.nan
    return summary.total / left if left else math.nan


def declared_work(tensors: Sequence[TensorForm], fixed: ReportSummary | None) -> DeclaredWork:
    """The work of a pair: bytes of its tensors, FLOP that its fixed kernels were counted to do."""
    flop = sum(
        value
        for launch in (fixed.measured if fixed else ())
        for name in _FLOP
        if not math.isnan(value := launch.get(name))
    )
    moved = sum(tensor.bytes for tensor in tensors)
    return DeclaredWork(flop if fixed else math.nan, moved or math.nan)


def blind_part(rows: Sequence[tuple[BlindScore, str | None]]) -> BlindPart | None:
    """The figures over scores and their pairs' categories; None without any."""
    known = [(score, category) for score, category in rows if score.full]
    measured = [
        score
        for score, _ in rows
        if not (math.isnan(score.headroom) or math.isnan(score.full_headroom))
    ]
    if not known or not measured:
        return None
    return BlindPart(
        pairs=len(known),
        agree=statistics.fmean(score.first == score.full for score, _ in known),
        true=statistics.fmean(score.first == category for score, category in known),
        headrooms=len(measured),
        within=statistics.fmean(score.is_within for score in measured),
        near=statistics.fmean(score.is_near for score in measured),
    )
