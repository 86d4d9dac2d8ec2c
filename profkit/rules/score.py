"""How well findings hold: recorded pairs, a defect's report against what its fix really gave.

Three judges look at each pair: profkit, ncu's own rules (`ncu_rules.yaml` says which category each
stands for) and the guess that no fix gains anything. An error is |estimate - achieved| / achieved,
of factors; a category that a judge does not name counts as the guess that nothing is gained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from profkit.core.errors import BadInput
from profkit.core.suggestion import did_you_mean
from profkit.core.yaml_files import shipped_yaml
from profkit.report.summary import ReportSummary
from profkit.rules.checklist import Checklist
from profkit.rules.engine import Estimate
from profkit.rules.pairs import AFTER, BEFORE, PAIR, RecordedPair
from profkit.rules.rule_file import categories

WORTH_AN_ALARM = 1.15
LARGE_ERROR = 0.25
_ADVISES = {"optimization", "warning"}
_MOST_OF_A_KERNEL = 0.99

Examine = Callable[[Path], tuple[ReportSummary, Checklist]]
"""Reads a report and finds what limits it."""


@dataclass(frozen=True)
class Guess:
    """What one judge said of a report: categories in order, each with its factor; the lowest and
    highest factor of those that it gives a range for."""

    ranked: tuple[tuple[str, float], ...] = ()
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def rank(self, category: str) -> int | None:
        """The place of a category, from 1; None where it is not named."""
        names = list(dict.fromkeys(name for name, _ in self.ranked))
        return names.index(category) + 1 if category in names else None

    def factor(self, category: str) -> float:
        """What it promised for a category: the first it said, 1 where it is not named."""
        return next((factor for name, factor in self.ranked if name == category), 1.0)


@dataclass(frozen=True)
class Alarm:
    """A promise where nothing is to gain; `side` is the report that it was made on."""

    category: str
    factor: float
    side: str


@dataclass(frozen=True)
class Judged:
    """How one judge did on a pair: `rank` of the true category (None: not named), its estimate.

    `estimated` and `error` are NaN for a control; `range` is None where it gave no estimate.
    """

    rank: int | None
    estimated: float
    error: float
    alarms: tuple[Alarm, ...]
    range: tuple[float, float] | None = None


@dataclass(frozen=True)
class PairScore:
    """A pair, judged. `category` is None and `achieved` NaN for a control.

    `timed`: `achieved` is of timed latencies, not of the reports' durations. `watched`: it has a
    report on which nothing is to gain, a control's any or after a fix in the category that was
    fixed, unless the pair says that it is the second limit too. `held_out`: set aside while the
    rules were made, None where nothing tells.
    """

    name: str
    gpu: str
    category: str | None
    achieved: float
    timed: bool
    watched: bool
    held_out: bool | None
    ours: Judged
    ncu: Judged
    no_gain: Judged

    @property
    def missed(self) -> bool:
        """Whether its category is not first or its estimate far off."""
        if self.category is None:
            return False
        return self.ours.rank != 1 or self.ours.error > LARGE_ERROR


@dataclass(frozen=True)
class Accuracy:
    """How one judge did on pairs, as shares of 1; NaN where there are none to judge it by."""

    top1: float
    top3: float
    mean_error: float
    max_error: float
    false_alarms: float


@dataclass(frozen=True)
class Part:
    """Pairs summed up. `defects` are judged by rank and error, `watched` by false alarms.

    Of profkit's: `estimated` defects have an estimate, `within` gained what the range holds and
    `above` more than its upper end; `named` are first without an estimate.
    """

    defects: int
    watched: int
    estimated: int
    within: int
    above: int
    named: int
    ours: Accuracy
    ncu: Accuracy
    no_gain: Accuracy


@dataclass(frozen=True)
class Score:
    """All pairs and what they sum up to; the halves None where nothing tells them apart."""

    pairs: tuple[PairScore, ...]
    whole: Part
    design: Part | None
    held_out: Part | None

    @property
    def misses(self) -> tuple[PairScore, ...]:
        return tuple(pair for pair in self.pairs if pair.missed)


def score(pairs: Sequence[PairScore]) -> Score:
    """Sum up judged pairs."""
    told = all(pair.held_out is not None for pair in pairs) and any(pair.held_out for pair in pairs)
    design = _part([pair for pair in pairs if not pair.held_out]) if told else None
    held_out = _part([pair for pair in pairs if pair.held_out]) if told else None
    return Score(tuple(pairs), _part(pairs), design, held_out)


def judge(pair: RecordedPair, examine: Examine, held_out: Collection[str] | None) -> PairScore:
    """Judge a pair; raises BadInput where its category is none or a report can't be read."""
    category = pair.category
    if category is not None and category not in categories():
        raise _no_category(pair, category)
    before, found = examine(pair.before)
    ours, ncu = [(BEFORE, _ours(found))], [(BEFORE, _ncu(before))]
    achieved = pair.achieved
    if pair.after is not None:
        after, found = examine(pair.after)
        ours.append((AFTER, _ours(found)))
        ncu.append((AFTER, _ncu(after)))
        if math.isnan(achieved):
            achieved = _ratio(pair, before, after)
    watched = category is None or (pair.after is not None and pair.second_limit != category)
    return PairScore(
        pair.name,
        before.gpus[0].name,
        category,
        achieved,
        timed=not math.isnan(pair.achieved),
        watched=watched,
        held_out=None if held_out is None else pair.name in held_out,
        ours=_judged(ours, category, achieved, watched=watched),
        ncu=_judged(ncu, category, achieved, watched=watched),
        no_gain=_judged([(BEFORE, Guess())], category, achieved, watched=watched),
    )


def _no_category(pair: RecordedPair, category: str) -> BadInput:
    other = "docs/rules.md has them; null for a control"
    remedy = did_you_mean(category, categories(), other, alike=0.5)
    return BadInput(f"{pair.before.parent / PAIR}: {category!r} is no category", remedy)


def _ratio(pair: RecordedPair, before: ReportSummary, after: ReportSummary) -> float:
    """What the fix gave by ncu's durations of all kernels on each side."""
    if not before.total > 0 or not after.total > 0:
        told = f"{pair.before.parent}: no latency.json, and its reports have no durations"
        raise BadInput(told, "add latency.json")
    return before.total / after.total


def _judged(
    guesses: Sequence[tuple[str, Guess]], category: str | None, achieved: float, *, watched: bool
) -> Judged:
    if category is None:
        return Judged(None, math.nan, math.nan, _alarms(guesses[0], None))
    told = guesses[0][1]
    estimated = told.factor(category)
    alarms = _alarms(guesses[-1], category) if watched and len(guesses) > 1 else ()
    error = abs(estimated - achieved) / achieved
    return Judged(told.rank(category), estimated, error, alarms, told.ranges.get(category))


def _alarms(told: tuple[str, Guess], category: str | None) -> tuple[Alarm, ...]:
    """Promises on a report in a category, None for any."""
    side, guess = told
    return tuple(
        Alarm(name, factor, side)
        for name, factor in guess.ranked
        if factor >= WORTH_AN_ALARM and category in {None, name}
    )


def _ours(found: Checklist) -> Guess:
    ranges: dict[str, tuple[float, float]] = {}
    for item in found.items:
        if item.finding.estimate:
            ranges.setdefault(item.rule.category, _range_of_run(item.finding.estimate))
    ranked = ((item.rule.category, item.finding.estimate) for item in found.findings)
    factors = tuple((name, estimate.run if estimate else 1.0) for name, estimate in ranked)
    return Guess(factors, ranges)


def _range_of_run(estimate: Estimate) -> tuple[float, float]:
    """A kernel's range as one of the whole report, by the kernel's share of the time."""
    share = (1 - 1 / estimate.run) / (1 - 1 / estimate.likely)
    low, high = (1 / (1 - share * (1 - 1 / end)) for end in (estimate.low, estimate.high))
    return low, high


def _ncu(report: ReportSummary) -> Guess:
    """ncu's own rules by its own estimates, weighted by each kernel's share of the time."""
    named = []
    for launch in report.measured:
        share = launch.duration / report.total
        for result in launch.rules:
            category = _category(result.rule, f"{result.title} {result.message}")
            if category and result.kind in _ADVISES:
                left = 1 - share * min(max(result.speedup or 0.0, 0.0), _MOST_OF_A_KERNEL)
                named.append((category, 1 / left))
    return Guess(tuple(sorted(named, key=lambda item: -item[1])))


def _category(rule: str, words: str) -> str | None:
    """The category that a rule of ncu's stands for; some tell by their words."""
    told = ncu_categories().get(rule)
    if isinstance(told, Mapping):
        return next((category for text, category in told.items() if text in words), None)
    return told


@cache
def ncu_categories() -> Mapping[str, str | Mapping[str, str]]:
    """ncu's rules by identifier, and the categories they stand for (`ncu_rules.yaml`)."""
    loaded: Mapping[str, str | Mapping[str, str]] = shipped_yaml("profkit.rules", "ncu_rules.yaml")
    return loaded


def _part(pairs: Sequence[PairScore]) -> Part:
    defects = [pair for pair in pairs if pair.category is not None]
    watched = [pair for pair in pairs if pair.watched]
    ranges = [(pair, pair.ours.range) for pair in defects if pair.ours.range]
    return Part(
        len(defects),
        len(watched),
        len(ranges),
        sum(low <= pair.achieved <= high for pair, (low, high) in ranges),
        sum(pair.achieved > high for pair, (_, high) in ranges),
        sum(pair.ours.rank == 1 and pair.ours.range is None for pair in defects),
        _accuracy((pair.ours for pair in defects), (pair.ours for pair in watched)),
        _accuracy((pair.ncu for pair in defects), (pair.ncu for pair in watched)),
        _accuracy((pair.no_gain for pair in defects), (pair.no_gain for pair in watched)),
    )


def _accuracy(defects: Iterable[Judged], watched: Iterable[Judged]) -> Accuracy:
    judged = list(defects)
    ranks = [one.rank or math.inf for one in judged]
    errors = [one.error for one in judged]
    return Accuracy(
        top1=_mean([rank <= 1 for rank in ranks]),
        top3=_mean([rank <= 3 for rank in ranks]),
        mean_error=_mean(errors),
        max_error=max(errors, default=math.nan),
        false_alarms=_mean([bool(one.alarms) for one in watched]),
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan
