"""Rules about a timeline: what keeps the GPU from working, each with a bounded estimate of its fix.

The time from the first GPU work to the end of the last is a sum of parts (analysis.region). A rule
says which parts a fix takes away, at best to what share, and by `time` what it likely leaves of the
whole; neither the likely nor the best time is below what the other parts take.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profkit.report.floors import WORTH
from profkit.report.quantities import UNDEFINED
from profkit.rules.engine import Condition, Estimate, Evidence, Lack

if TYPE_CHECKING:
    from profkit.core.expression import Comparison, Expression
    from profkit.rules.rule_file import Rule

_LEAST = 1e-3
_OTHER = "everything else"
_SPAN = "gpu_span"


@dataclass(frozen=True)
class RegionFinding:
    """A rule that fired on a timeline. `group` is None: it is about no kernel."""

    rule: Rule
    evidence: tuple[Evidence, ...]
    estimate: Estimate | None
    negligible: Estimate | None = None
    lacking: tuple[str, ...] = ()
    group: None = None

    @property
    def saved(self) -> float:
        """The likely time saved, seconds."""
        return self.estimate.saved if self.estimate else 0.0


@dataclass(frozen=True)
class RegionTrial:
    """What a rule makes of a timeline, fired (`finding`) or not."""

    conditions: tuple[Condition, ...]
    finding: RegionFinding | None

    @property
    def is_open(self) -> bool:
        """Whether it can't be told if the rule fires."""
        states = [condition.holds for condition in self.conditions]
        return None in states and False not in states


def diagnose_region(
    quantities: Mapping[str, float], rules: Iterable[Rule]
) -> tuple[RegionFinding, ...]:
    """Every rule about timelines on one of these quantities, most time saved first."""
    if not quantities:
        return ()
    tried = (explain_region(quantities, rule) for rule in rules if rule.about_timeline)
    found = (trial.finding for trial in tried if trial.finding)
    return tuple(sorted(found, key=lambda finding: -finding.saved))


def unknown_region(quantities: Mapping[str, float], rules: Iterable[Rule]) -> Mapping[str, Lack]:
    """The rules about timelines that these quantities leave open, and what they lack."""
    tried = {rule.name: explain_region(quantities, rule) for rule in rules if rule.about_timeline}
    return {
        name: Lack(0, {missing: UNDEFINED for one in trial.conditions for missing in one.missing})
        for name, trial in tried.items()
        if quantities and trial.is_open
    }


def explain_region(quantities: Mapping[str, float], rule: Rule) -> RegionTrial:
    """A rule about timelines tried on one of these quantities."""
    conditions = tuple(_condition(condition, quantities) for condition in rule.when)
    if not all(condition.holds for condition in conditions):
        return RegionTrial(conditions, None)
    compared = [told for condition in conditions for told in condition.compared]
    seen = {told.what for told in compared}
    beside = [
        Evidence(name, quantities[name])
        for name in rule.evidence
        if name not in seen and not math.isnan(quantities.get(name, math.nan))
    ]
    return RegionTrial(conditions, _finding(rule, (*compared, *beside), quantities))


def _finding(
    rule: Rule, evidence: tuple[Evidence, ...], quantities: Mapping[str, float]
) -> RegionFinding:
    formulas = [*rule.relieves.values(), *([rule.time] if rule.time else [])]
    unknown = [one for one in formulas if math.isnan(_value(one, quantities))]
    if unknown or not rule.gains:
        lacking = dict.fromkeys(name for one in unknown for name in one.names)
        return RegionFinding(rule, evidence, None, lacking=tuple(lacking))
    estimate = _estimate(rule, quantities)
    if estimate.likely < WORTH:
        return RegionFinding(rule, evidence, None, negligible=estimate)
    return RegionFinding(rule, evidence, estimate)


def _condition(condition: Expression, quantities: Mapping[str, float]) -> Condition:
    value = _value(condition, quantities)
    return Condition(
        condition.text,
        None if math.isnan(value) else bool(value),
        tuple(_compared(condition.comparisons, quantities)),
        tuple(name for name in condition.names if math.isnan(quantities.get(name, math.nan))),
    )


def _compared(
    comparisons: Sequence[Comparison], quantities: Mapping[str, float]
) -> Iterable[Evidence]:
    for one in comparisons:
        left = _value(one.left, quantities)
        if one.left.names and not math.isnan(left):
            yield Evidence(one.left.text, left, one.sign, _value(one.right, quantities))


def _value(expression: Expression, quantities: Mapping[str, float]) -> float:
    columns = {name: np.array([quantities.get(name, math.nan)]) for name in expression.names}
    return float(np.ravel(expression(columns))[0])


def _estimate(rule: Rule, quantities: Mapping[str, float]) -> Estimate:
    taken = 0.0
    for name, left in rule.relieves.items():
        taken += quantities[name] * (1 - min(max(_value(left, quantities), 0.0), 1.0))
    best = min(max(1 - taken, _LEAST), 1.0)
    likely = min(max(_value(rule.time, quantities) if rule.time else best, best), 1.0)
    span = quantities[_SPAN]
    return Estimate(
        likely=1 / likely,
        low=2 / (1 + likely),
        high=1 / best,
        bounded_by=_OTHER,
        bound_seconds=best * span,
        run=1 / likely,
        saved=span * (1 - likely),
    )
