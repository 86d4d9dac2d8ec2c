"""How far an analysis without counters agrees with the full one, on recorded pairs.

The counters of the report before the fix are not read. Its findings are ordered by factors that
were fitted without the pair's family. The declared work is what the pair declares as a target
would, by formulas over its shapes; without one the bytes are the pair's inputs and output, each
moved once, and the FLOP those that the fixed kernel was counted to do. The time is the timed one.
"""

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from profkit.core.expression import parse
from profkit.core.typed_file import Count, Model, Real
from profkit.report.counter_free import counter_free
from profkit.report.summary import ReportSummary
from profkit.rules.checklist import Checklist
from profkit.rules.code_signs import factors
from profkit.rules.declared_headroom import DeclaredWork
from profkit.rules.outlook import Call, outlook_of_launches

NEAR = 0.2
"""The error of a headroom that is near, of the factor and of the time, by the requirement."""

_SAME = 1.02
"""A gain above a headroom by more than this factor exceeds it, chosen: timings of both sides and
the DRAM rate that kernels reach are known to about 2%."""
_GAINED = 1.05  # as of findings that are named (score.py)
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


class WorkForm(Struct, frozen=True, forbid_unknown_fields=True):
    """The declared work of a pair: FLOP and bytes of a call as arithmetic over its shapes."""

    flop: str | None = None
    bytes: str | None = None
    what: str = ""


class BlindScore(Model, frozen=True, kw_only=True):
    """A pair without counters: the category of the first finding and that of the full analysis's,
    null without one; headrooms by declared work, of its bytes at least, and by the full analysis,
    null where unknown.

    `fixed_headroom` is the full analysis's of the fixed kernel times the measured speedup: what
    that kernel needs at its floors, over the time before the fix. `flop` are the declared ones,
    `counted_flop` those of the fixed kernel, null where not declared or not counted."""

    first: str | None
    full: str | None
    headroom: Real
    full_headroom: Real
    fixed_headroom: Real
    flop: Real
    counted_flop: Real


class BlindPart(Model, frozen=True, kw_only=True):
    """Pairs without counters: shares whose first finding is of the full analysis's category, and of
    the pair's; of `headrooms` those within 20% of the full analysis's, those whose floor is within
    20% of the time of its, and both with the fixed kernel's.

    Of the `fixes` that were timed, `exceeds` names those that gained more than the headroom by
    declared work, by more than the tolerance of timings, `full_exceeds` the same of the full
    analysis's; `typical` and `full_typical` are the medians of headroom over gain of the fixes that
    gained."""

    pairs: Count
    agree: Real
    true: Real
    headrooms: Count
    within: Real
    near: Real
    within_fixed: Real
    near_fixed: Real
    fixes: Count
    exceeds: tuple[str, ...]
    full_exceeds: tuple[str, ...]
    typical: Real
    full_typical: Real


def blind_score(
    report: Path,
    family: str,
    work: DeclaredWork,
    seconds: float,
    examined: Sequence[tuple[ReportSummary, Checklist]],
    achieved: float,
) -> BlindScore:
    """Score the report of a kernel with a defect; `examined` are it and the fixed one, where there
    is one, with their counters, `achieved` is the measured speedup."""
    counted = _counted_flop(examined[1][0]) if len(examined) > 1 else math.nan
    flop = counted if math.isnan(work.flop) else work.flop
    calls = {"": Call(DeclaredWork(flop, work.bytes), seconds)}
    blind = outlook_of_launches(counter_free(report), calls, factors(family))
    findings = examined[0][1].findings
    whole = blind.wholes[0].headroom if blind.wholes else None
    full, *fixed = [_headroom(summary, checklist) for summary, checklist in examined]
    return BlindScore(
        first=blind.findings[0].category if blind.findings else None,
        full=findings[0].rule.category if findings else None,
        headroom=whole.factor if whole and not math.isnan(work.bytes) else math.nan,
        full_headroom=full,
        fixed_headroom=fixed[0] * achieved if fixed else full,
        flop=work.flop,
        counted_flop=counted,
    )


def _headroom(summary: ReportSummary, checklist: Checklist) -> float:
    """Of a report: its time over that of all kernels at their floors; NaN where one is unknown."""
    left = 0.0
    for group in summary.groups:
        headroom = checklist.headroom_of(group)
        left += group.total / headroom.factor if headroom else math.nan
    return summary.total / left if left else math.nan


def _counted_flop(summary: ReportSummary) -> float:
    """The FLOP that the kernels of a report were counted to do."""
    counts = (launch.get(name) for launch in summary.measured for name in _FLOP)
    return sum(count for count in counts if not math.isnan(count))


def declared_work(form: WorkForm, tensors: Sequence[TensorForm]) -> DeclaredWork:
    """The work that a pair declares; bytes are by default those of its tensors, FLOP NaN.

    Raises ValueError for a formula that is no arithmetic of numbers.
    """
    moved = sum(tensor.bytes for tensor in tensors) or math.nan
    flop, size = (math.nan if text is None else _number(text) for text in (form.flop, form.bytes))
    return DeclaredWork(flop, moved if math.isnan(size) else size)


def _number(text: str) -> float:
    formula = parse(text)
    if formula.names:
        raise ValueError(f"{formula.names[0]!r} is no number")
    return float(formula({}))


def blind_part(rows: Sequence[tuple[str, BlindScore, str | None, float]]) -> BlindPart | None:
    """The figures over pairs: names, scores, categories and measured speedups (NaN of a control);
    None without any."""
    known = [(score, category) for _, score, category, _ in rows if score.full]
    both = [row for row in rows if not math.isnan(row[1].headroom + row[1].full_headroom)]
    measured = [score for _, score, _, _ in both]
    if not known or not measured:
        return None
    fixes = [(name, score, gain) for name, score, _, gain in both if not math.isnan(gain)]
    gained = [(score, gain) for _, score, gain in fixes if gain >= _GAINED]
    others = (
        [score.full_headroom for score in measured], [score.fixed_headroom for score in measured],
    )  # fmt: skip
    (within, near), (within_fixed, near_fixed) = (
        _agreement([score.headroom for score in measured], other) for other in others
    )
    return BlindPart(
        pairs=len(known),
        agree=statistics.fmean(score.first == score.full for score, _ in known),
        true=statistics.fmean(score.first == category for score, category in known),
        headrooms=len(measured),
        within=within,
        near=near,
        within_fixed=within_fixed,
        near_fixed=near_fixed,
        fixes=len(fixes),
        exceeds=tuple(name for name, score, gain in fixes if gain > _SAME * score.headroom),
        full_exceeds=tuple(
            name for name, score, gain in fixes if gain > _SAME * score.full_headroom
        ),
        typical=_median([score.headroom / gain for score, gain in gained]),
        full_typical=_median([score.full_headroom / gain for score, gain in gained]),
    )


def _agreement(headrooms: Sequence[float], others: Sequence[float]) -> tuple[float, float]:
    """The shares of headrooms within NEAR of others, of the factor, and in what they leave of the
    time, as a share of it."""
    both = list(zip(headrooms, others, strict=True))
    return (
        statistics.fmean(abs(own / other - 1) <= NEAR for own, other in both),
        statistics.fmean(abs(1 / own - 1 / other) <= NEAR for own, other in both),
    )


def _median(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return statistics.median(known) if known else math.nan
