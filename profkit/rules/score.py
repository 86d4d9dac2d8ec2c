"""How well findings hold: recorded pairs, a defect's report against what its fix really gave.

Three judges look at each pair: profkit, ncu's own rules (`ncu_rules.yaml` says which category each
stands for) and the guess that no fix gains anything. An error is |estimate - achieved| / achieved,
of factors; a category that a judge does not name counts as the guess that nothing is gained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, structs

from profkit.core.errors import BadInput
from profkit.core.suggestion import did_you_mean
from profkit.core.typed_file import Model, Output, Real
from profkit.core.version import __version__
from profkit.core.yaml_files import shipped_yaml
from profkit.report.summary import ReportSummary
from profkit.rules.checklist import Checklist
from profkit.rules.pairs import PAIR, RecordedPair
from profkit.rules.samples import CATEGORIES

WORTH_AN_ALARM = 1.15
LARGE_ERROR = 0.25
_ADVISES = {"optimization", "warning"}
_MOST_OF_A_KERNEL = 0.99

Examine = Callable[[Path], tuple[ReportSummary, Checklist]]
"""Reads a report and finds what limits it."""


@dataclass(frozen=True)
class Guess:
    """What a judge finds in a report: categories in order, each with its factor; the lowest and
    highest factor of those that it gives a range for."""

    ranked: tuple[tuple[str, float], ...]
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def rank(self, category: str) -> int | None:
        """The place of a category, from 1; None where it is not named."""
        names = dict.fromkeys(name for name, _ in self.ranked)
        return next((rank for rank, name in enumerate(names, 1) if name == category), None)

    def factor(self, category: str) -> float:
        """What it promises for a category first, 1 where it is not named."""
        return next((factor for name, factor in self.ranked if name == category), 1.0)


class Alarm(Model, frozen=True, kw_only=True):
    """A promise where nothing is to gain; `report` is the side that it was made on."""

    category: str
    promised: Annotated[float, Meta(ge=1)]
    report: Literal["before", "after"]


class Miss(Model, frozen=True):
    """How far an estimate is off: |estimated - achieved| / achieved; null for a control."""

    error: Real


class Judged(Model, frozen=True, kw_only=True):
    """How one judge did on a pair: the place of the true category, from 1 (null: not named), the
    factor that it promised and |estimated - achieved| / achieved (null for a control)."""

    rank: int | None
    estimated: Real
    error: Real
    alarms: tuple[Alarm, ...]


class _Named(Judged, frozen=True):
    name: str
    gpu: str
    category: str | None
    achieved: Real
    measured: Literal["timed", "profiled"] | None


class PairScore(_Named, frozen=True, kw_only=True):
    """A pair, judged: `achieved` is the factor that the fix gave, by timed latencies or by the
    durations in the reports. `category`, `measured` and `achieved` are null for a control. `range`
    has the lowest and highest factor of profkit's estimate for the report, `why` explains a miss:
    not first, or an error above 25%. `held_out`: set aside while the rules were made, null where
    nothing tells."""

    range: tuple[float, float] | None
    ncu: Judged
    no_gain: Miss
    held_out: bool | None
    missed: bool
    why: str | None = None


class Accuracy(Model, frozen=True, kw_only=True):
    """How one judge did on pairs, shares of 1, null where there are none to judge it by.
    `false_alarms` is of the reports with nothing to gain."""

    top1: Real
    top3: Real
    mean_error: Real
    max_error: Real
    false_alarms: Real


class _Counted(Accuracy, frozen=True):
    defects: int
    nothing_to_gain: int
    estimated: int
    within_range: int
    above_range: int
    first_without_estimate: int


class Part(_Counted, frozen=True, kw_only=True):
    """Pairs summed up: profkit's figures, those of ncu's own rules and of the guess of no gain.

    `defects` are judged by rank and error, the reports with `nothing_to_gain` by false alarms.
    `estimated` defects have an estimate, `within_range` gained what it holds and `above_range` more
    than its upper end; `first_without_estimate` are named first without one.
    """

    ncu: Accuracy
    no_gain: Accuracy


class Score(Output, frozen=True, kw_only=True, tag="profkit.score/1"):
    """How well findings hold. The halves, the pairs that the rules were made on and those set
    aside, are null where nothing tells them apart. Shares are of 1."""

    profkit: str
    summary: Part
    design: Part | None
    held_out: Part | None
    pairs: tuple[PairScore, ...]

    @property
    def misses(self) -> tuple[PairScore, ...]:
        return tuple(pair for pair in self.pairs if pair.missed)


@dataclass(frozen=True)
class Verdict:
    """A pair judged. `watched`: it has a report on which nothing is to gain, a control's any or
    after a fix in the category that was fixed, unless the pair says that it is the second limit."""

    pair: PairScore
    watched: bool


def score(verdicts: Sequence[Verdict], why: Mapping[str, str]) -> Score:
    """Sum up judged pairs; `why` explains misses by the name of their pair."""
    unknown, design, held_out = (
        [verdict for verdict in verdicts if verdict.pair.held_out is half]
        for half in (None, False, True)
    )
    apart = not unknown and bool(held_out)
    pairs = (verdict.pair for verdict in verdicts)
    return Score(
        profkit=__version__,
        summary=_part(verdicts),
        design=_part(design) if apart else None,
        held_out=_part(held_out) if apart else None,
        pairs=tuple(
            structs.replace(pair, why=why.get(pair.name) if pair.missed else None) for pair in pairs
        ),
    )


def judge(pair: RecordedPair, examine: Examine, held_out: Collection[str] | None) -> Verdict:
    """Judge a pair; raises BadInput where its category is none or a report can't be read."""
    category, achieved, folder = pair.category, pair.achieved, pair.before.parent
    if category is not None and category not in CATEGORIES:
        other = "docs/rules.md has them; null for a control"
        remedy = did_you_mean(category, CATEGORIES, other, alike=0.5)
        raise BadInput(f"{folder / PAIR}: {category!r} is no category", remedy)
    examined = [examine(report) for report in (pair.before, pair.after) if report]
    reports = [report for report, _ in examined]
    if len(reports) > 1 and math.isnan(achieved):
        if not all(report.total > 0 for report in reports):
            message = f"{folder}: no latency.json, and its reports have no durations"
            raise BadInput(message, "add latency.json")
        achieved = reports[0].total / reports[1].total
    watched = category is None or (pair.after is not None and pair.second_limit != category)
    guesses = [_own(checklist) for _, checklist in examined]
    own, ncu = (
        _judged(judge, category, achieved, watched=watched)
        for judge in (guesses, [_ncu(report) for report in reports])
    )
    measured: Literal["timed", "profiled"] = "profiled" if math.isnan(pair.achieved) else "timed"
    row = PairScore(
        pair.name,
        reports[0].gpus[0].name,
        category,
        achieved,
        measured if category else None,
        **structs.asdict(own),
        range=guesses[0].ranges.get(category) if category else None,
        ncu=ncu,
        no_gain=Miss(abs(1 - achieved) / achieved),
        held_out=None if held_out is None else pair.name in held_out,
        missed=category is not None and (own.rank != 1 or own.error > LARGE_ERROR),
    )
    return Verdict(row, watched)


def _judged(
    guesses: Sequence[Guess], category: str | None, achieved: float, *, watched: bool
) -> Judged:
    """What a judge found before the fix, and its alarms: on a control, or after the fix."""
    side: Literal["before", "after"] = "after" if category else "before"
    alarms = tuple(
        Alarm(category=name, promised=factor, report=side)
        for name, factor in (guesses[-1].ranked if watched else ())
        if factor >= WORTH_AN_ALARM and category in {None, name}
    )
    if category is None:
        return Judged(rank=None, estimated=math.nan, error=math.nan, alarms=alarms)
    estimated = guesses[0].factor(category)
    error = abs(estimated - achieved) / achieved
    return Judged(rank=guesses[0].rank(category), estimated=estimated, error=error, alarms=alarms)


def _own(checklist: Checklist) -> Guess:
    ranked = []
    ranges: dict[str, tuple[float, float]] = {}
    for item in checklist.findings:
        category, estimate = item.rule.category, item.finding.estimate
        ranked.append((category, estimate.run if estimate else 1.0))
        if estimate:
            # the kernel's range as one of the whole report, by the kernel's share of the time
            share = (1 - 1 / estimate.run) / (1 - 1 / estimate.likely)
            low, high = (1 / (1 - share * (1 - 1 / end)) for end in (estimate.low, estimate.high))
            ranges.setdefault(category, (low, high))
    return Guess(tuple(ranked), ranges)


def _ncu(report: ReportSummary) -> Guess:
    """ncu's own rules by its own estimates, weighted by each kernel's share of the time."""
    ranked = []
    for launch in report.measured:
        share = launch.duration / report.total
        for result in launch.rules:
            category = ncu_categories().get(result.rule)
            if isinstance(category, Mapping):
                words = f"{result.title} {result.message}"
                category = next((name for text, name in category.items() if text in words), None)
            if category and result.kind in _ADVISES:
                left = 1 - share * min(max(result.speedup or 0.0, 0.0), _MOST_OF_A_KERNEL)
                ranked.append((category, 1 / left))
    return Guess(tuple(sorted(ranked, key=lambda item: -item[1])))


@cache
def ncu_categories() -> Mapping[str, str | Mapping[str, str]]:
    """ncu's rules by identifier, and the categories they stand for (`ncu_rules.yaml`)."""
    loaded: Mapping[str, str | Mapping[str, str]] = shipped_yaml("profkit.rules", "ncu_rules.yaml")
    return loaded


def _part(verdicts: Sequence[Verdict]) -> Part:
    defects = [verdict.pair for verdict in verdicts if verdict.pair.category is not None]
    watched = [verdict.pair for verdict in verdicts if verdict.watched]
    ranges = [(pair.achieved, pair.range) for pair in defects if pair.range]
    own, ncu, no_gain = (
        _accuracy([judged(pair) for pair in defects], [judged(pair) for pair in watched])
        for judged in (lambda pair: pair, lambda pair: pair.ncu, _no_gain)
    )
    return Part(
        len(defects),
        len(watched),
        len(ranges),
        sum(low <= achieved <= high for achieved, (low, high) in ranges),
        sum(achieved > high for achieved, (_, high) in ranges),
        sum(pair.rank == 1 and pair.range is None for pair in defects),
        **structs.asdict(own),
        ncu=ncu,
        no_gain=no_gain,
    )


def _no_gain(pair: PairScore) -> Judged:
    """The guess that no fix gains anything, as a judge."""
    return Judged(rank=None, estimated=1.0, error=pair.no_gain.error, alarms=())


def _accuracy(defects: Sequence[Judged], watched: Sequence[Judged]) -> Accuracy:
    ranks = [judged.rank or math.inf for judged in defects]
    errors = [judged.error for judged in defects]
    return Accuracy(
        top1=_mean([rank <= 1 for rank in ranks]),
        top3=_mean([rank <= 3 for rank in ranks]),
        mean_error=_mean(errors),
        max_error=max(errors, default=math.nan),
        false_alarms=_mean([bool(judged.alarms) for judged in watched]),
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan
