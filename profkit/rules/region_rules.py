"""Rules about a timeline: what keeps the GPU from working, each with a bounded estimate of its fix.

The time from the first GPU work to the end of the last is a sum of parts (analysis.region). A rule
says which parts a fix takes away, at best to what share, and by `time` what it likely leaves of the
whole; neither the likely nor the best time is below what the other parts take.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from profkit.report.quantities import UNDEFINED
from profkit.rules.engine import Condition, Estimate, Finding, Lack, found, tried

if TYPE_CHECKING:
    from profkit.core.expression import Expression
    from profkit.rules.rule_file import Rule

_LEAST = 1e-3
_OTHER = "everything else"
_SPAN = "gpu_span"


@dataclass(frozen=True)
class RegionTrial:
    """What a rule makes of a timeline, fired (`finding`) or not."""

    conditions: tuple[Condition, ...]
    finding: Finding[None] | None

    @property
    def is_open(self) -> bool:
        """Whether it can't be told if the rule fires."""
        states = [condition.holds for condition in self.conditions]
        return None in states and False not in states


def diagnose_region(
    quantities: Mapping[str, float], rules: Iterable[Rule]
) -> tuple[Finding[None], ...]:
    """Every rule about timelines on one of these quantities, most time saved first."""
    if not quantities:
        return ()
    trials = (explain_region(quantities, rule) for rule in rules if rule.about_timeline)
    fired = (trial.finding for trial in trials if trial.finding)
    return tuple(sorted(fired, key=lambda finding: -finding.saved))


def unknown_region(quantities: Mapping[str, float], rules: Iterable[Rule]) -> Mapping[str, Lack]:
    """The rules about timelines that these quantities leave open, and what they lack."""
    trials = {rule.name: explain_region(quantities, rule) for rule in rules if rule.about_timeline}
    return {
        name: Lack(0, {missing: UNDEFINED for one in trial.conditions for missing in one.missing})
        for name, trial in trials.items()
        if quantities and trial.is_open
    }


def explain_region(quantities: Mapping[str, float], rule: Rule) -> RegionTrial:
    """A rule about timelines tried on one of these quantities."""

    def known(name: str) -> float:
        return quantities.get(name, math.nan)

    conditions = tuple(
        tried(condition, lambda one: _value(one, quantities), known) for condition in rule.when
    )
    if not all(condition.holds for condition in conditions):
        return RegionTrial(conditions, None)
    formulas = [*rule.relieves.values(), *([rule.time] if rule.time else [])]
    unknown = [one for one in formulas if math.isnan(_value(one, quantities))]
    lacking = tuple(dict.fromkeys(name for one in unknown for name in one.names))
    estimate = partial(_estimate, rule, quantities)
    return RegionTrial(conditions, found(rule, None, conditions, known, lacking, estimate))


def _value(expression: Expression, quantities: Mapping[str, float]) -> float:
    columns = {name: np.array([quantities.get(name, math.nan)]) for name in expression.names}
    return float(np.ravel(expression(columns))[0])


def _estimate(rule: Rule, quantities: Mapping[str, float]) -> Estimate:
    taken = sum(
        quantities[name] * (1 - min(max(_value(left, quantities), 0.0), 1.0))
        for name, left in rule.relieves.items()
    )
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
