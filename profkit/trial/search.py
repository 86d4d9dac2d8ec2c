"""Which switches gain, alone and together: interleaved runs within a budget of time.

The unchanged program stands before every second run. A combination's runs are paired with unchanged
ones next to them, each used once; pairs are independent, as blocks of `profkit time` are.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from profkit.trial import checks
from profkit.trial.checks import Difference
from profkit.trial.run import Perturbation, Result
from profkit.trial.switch import Changes, Switch

Combination = tuple[Switch, ...]

_PAIRS = 3  # the fewest for a verdict: two degrees of freedom
_MOST_PAIRS = 6  # chosen: an effect that six pairs don't show is smaller than others' noise
_PROMISING = 1.02  # chosen: a gain in a single pair that is worth more runs
_STEP = 0.01  # chosen: what a further switch has to add in a single pair
_SPREADS = 3.0  # chosen: standard deviations of unchanged runs that it has to add at least
_CLEAR = 1.05  # chosen: the first gain above it is proven at once
_SCREENING, _COMBINING = 0.45, 0.70  # shares of the budget, chosen
_NEAR = 0.95  # chosen: a switch that costs less alone may gain with others
_ORDER: tuple[Changes, ...] = ("nothing", "random", "rounding", "precision")


class Measure(Protocol):
    """Runs the program once with a combination of switches."""

    def __call__(self, switches: Combination, *, perturb: Perturbation = "") -> Result: ...


@dataclass(eq=False)
class Evidence:
    """All runs in their order; `skipped` are reasons by switch, `left` are those not tried."""

    runs: list[Result] = field(default_factory=list)
    combinations: list[Combination] = field(default_factory=list)
    skipped: dict[Switch, str] = field(default_factory=dict)
    left: list[Switch] = field(default_factory=list)
    interrupted: bool = False

    @property
    def unchanged(self) -> list[Result]:
        """The runs without switches that say something."""
        return [self.runs[place] for place in self._places(())]

    @property
    def perturbed(self) -> list[Result]:
        """The runs without switches that were perturbed and say something."""
        return [run for run in self.runs if run.perturbed and not run.failure]

    def of(self, combination: Combination) -> list[Result]:
        """The runs of a combination, failures too."""
        names = tuple(switch.name for switch in combination)
        return [run for run in self.runs if run.switches == names and not run.perturbed]

    def _places(self, combination: Combination) -> list[int]:
        names = tuple(switch.name for switch in combination)
        return [
            place
            for place, run in enumerate(self.runs)
            if run.switches == names and not run.failure and not run.perturbed
        ]

    def pairs(
        self, combination: Combination, *, is_shared: bool = False
    ) -> list[tuple[Result, Result]]:
        """Unchanged and changed runs next to each other; each in one pair unless they may be
        shared."""
        free, pairs = self._places(()), []
        for place in self._places(combination):
            if free:
                nearest = min(free, key=lambda other: (abs(other - place), other))
                if not is_shared:
                    free.remove(nearest)
                pairs.append((self.runs[nearest], self.runs[place]))
        return pairs

    def speedup(self, combination: Combination) -> float:
        """The geometric mean over pairs, against the unchanged run nearest to each; 0 without."""
        logs = [math.log(a.mean / b.mean) for a, b in self.pairs(combination, is_shared=True)]
        return math.exp(sum(logs) / len(logs)) if logs else 0.0

    @property
    def spread(self) -> float:
        """The standard deviation of the logarithm of unchanged runs' times; 0 of one run."""
        times = [math.log(run.mean) for run in self.unchanged]
        return statistics.stdev(times) if len(times) > 1 else 0.0

    @property
    def step(self) -> float:
        """The factor from which on a single pair shows a difference."""
        return 1 + max(_STEP, _SPREADS * self.spread)

    def failure(self, combination: Combination) -> str:
        """Why the last run of a combination says nothing, "" where it does."""
        runs = self.of(combination)
        return runs[-1].failure if runs else ""

    def change(self, combination: Combination) -> tuple[Difference | None, Difference]:
        """The largest difference of results, and what is allowed for what the switches declare."""
        limit = checks.allowed(self.unchanged, self.perturbed, {s.changes for s in combination})
        known = [
            found
            for run in self.of(combination)
            if not run.failure and (found := checks.difference(self.unchanged[0], run))
        ]
        if not known:
            return None, limit
        return Difference(max(d.early for d in known), max(d.late for d in known)), limit

    def is_same(self, combination: Combination) -> bool:
        """Whether results are those of the unchanged program, as far as its switches declare."""
        found, limit = self.change(combination)
        return found is None or found.within(limit)


def declared(combination: Combination) -> Changes:
    """What the switches of a combination change at most."""
    return max((switch.changes for switch in combination), key=_ORDER.index, default="nothing")


@dataclass(eq=False)
class _Search:
    measure: Measure
    clock: Callable[[], float]
    budget: float
    tell: Callable[[str], None]
    evidence: Evidence

    def __post_init__(self) -> None:
        self.start = self.clock()

    def used(self, more: float = 0.0) -> float:
        """The share of the budget that is used, with some more seconds."""
        return (self.clock() - self.start + more) / self.budget

    def cost(self, combination: Combination) -> float:
        """Expected seconds of a run."""
        runs = self.evidence.of(combination) or self.evidence.runs
        return max(run.seconds for run in runs[-3:])

    def run(self, combination: Combination, *, perturb: Perturbation = "") -> Result:
        """A run, after an unchanged one where the last two were changed."""
        evidence = self.evidence
        if combination and all(run.switches for run in evidence.runs[-2:]):
            self.run(())
        self.tell(" + ".join(switch.name for switch in combination) or "unchanged")
        result = self.measure(combination, perturb=perturb)
        evidence.runs.append(result)
        if combination and combination not in evidence.combinations:
            evidence.combinations.append(combination)
        return result

    def prove(self, combination: Combination, pairs: int, share: float) -> bool:
        """Run a combination until it has so many pairs; whether there was time for that."""
        while len(self.evidence.pairs(combination)) < pairs:
            if self.used(self.cost(combination) + self.cost(())) > share:
                return False
            if self.evidence.failure(combination):
                return False
            if self.evidence.runs[-1].switches:
                self.run(())
            self.run(combination)
        return True


def search(
    measure: Measure,
    switches: Sequence[Switch],
    budget: float,
    clock: Callable[[], float],
    tell: Callable[[str], None],
) -> Evidence:
    """Try the switches, and the best of them together, in at most `budget` seconds of `clock`.

    An interruption ends it with what was measured.
    """
    evidence = Evidence()
    trial = _Search(measure, clock, budget, tell, evidence)
    try:
        first = trial.run(())
        if first.failure:
            return evidence
        candidates = list(_ordered(switches, first, evidence))
        _screen(trial, candidates)
        for level in ("rounding", "precision"):
            _combine(trial, candidates, level)
        _confirm(trial, candidates)
    except KeyboardInterrupt:
        evidence.interrupted = True
    tried = {switch for combination in evidence.combinations for switch in combination}
    evidence.left = [s for s in switches if s not in tried and s not in evidence.skipped]
    return evidence


def _ordered(switches: Sequence[Switch], first: Result, evidence: Evidence) -> Iterator[Switch]:
    """The switches that the program may gain from, those that help what limits it first."""
    for is_first in (True, False):
        for switch in switches:
            reason = switch.lacks(first.features)
            if reason:
                evidence.skipped[switch] = reason
            elif (first.limit in switch.helps) == is_first:
                yield switch


def _screen(trial: _Search, candidates: Sequence[Switch]) -> None:
    """One run of each switch; the first clear gain is proven at once."""
    evidence, is_proven = trial.evidence, False
    for number, switch in enumerate(candidates):
        alone = (switch,)
        if trial.used(trial.cost(())) > _SCREENING:
            return
        if number == 2 or (is_proven and not evidence.perturbed):
            _perturb(trial, "rounding")
        result = trial.run(alone)
        if not result.failure and switch.name not in result.applied:
            evidence.skipped[switch] = "it found nothing to change"
            continue
        if switch.changes == "random" and evidence.speedup(alone) > _PROMISING:
            _perturb(trial, "random")
        if not is_proven and evidence.speedup(alone) > _CLEAR and evidence.is_same(alone):
            is_proven = trial.prove(alone, _PAIRS, 1.0)


def _perturb(trial: _Search, kind: Perturbation) -> None:
    """An unchanged run with a perturbation, once, where there are results to compare."""
    evidence = trial.evidence
    if evidence.unchanged[0].results and kind not in {run.perturbed for run in evidence.runs}:
        trial.run((), perturb=kind)


def gains(evidence: Evidence, combination: Combination, least: float = _PROMISING) -> bool:
    """Whether a combination seems to gain, with results that are the same as far as declared."""
    return evidence.speedup(combination) > least and evidence.is_same(combination)


def best(evidence: Evidence, level: Changes) -> Combination:
    """The fastest combination that changes no more than `level`, of those that are as fast the one
    of fewest switches; () where none gains."""
    rows = [
        combination
        for combination in evidence.combinations
        if _ORDER.index(declared(combination)) <= _ORDER.index(level)
        and gains(evidence, combination)
        and not evidence.skipped.keys() & set(combination)
    ]
    top = max(map(evidence.speedup, rows), default=0.0)
    fast = [
        combination for combination in rows if evidence.speedup(combination) > top / evidence.step
    ]
    return min(fast, key=lambda each: (len(each), -evidence.speedup(each)), default=())


def _combine(trial: _Search, candidates: Sequence[Switch], level: Changes) -> None:
    """Add switches to the best ones, one after the other, while they gain."""
    evidence = trial.evidence
    ranked = sorted(candidates, key=lambda switch: -evidence.speedup((switch,)))
    current = best(evidence, level)
    for switch in ranked:
        if not current or _ORDER.index(switch.changes) > _ORDER.index(level):
            continue
        if switch in evidence.skipped or evidence.speedup((switch,)) < _NEAR:
            continue
        if switch in current or not evidence.is_same((switch,)):
            continue
        groups = {other.group for other in current if other.group}
        combination = tuple(sorted((*current, switch), key=lambda each: each.name))
        if switch.group in groups or combination in evidence.combinations:
            continue
        if trial.used(trial.cost(current)) > _COMBINING:
            return
        result = trial.run(combination)
        faster = evidence.speedup(combination) > evidence.step * evidence.speedup(current)
        if not result.failure and faster and evidence.is_same(combination):
            current = combination


def _confirm(trial: _Search, candidates: Sequence[Switch]) -> None:
    """Pairs of the best combinations, then of single switches, as long as there is time."""
    evidence = trial.evidence
    _perturb(trial, "rounding")
    alone = sorted(
        ((switch,) for switch in candidates if gains(evidence, (switch,))),
        key=lambda each: -evidence.speedup(each),
    )
    chosen = [best(evidence, "precision"), best(evidence, "rounding"), *alone]
    for pairs in range(_PAIRS, _MOST_PAIRS + 1):
        for combination in dict.fromkeys(filter(None, chosen)):
            if not evidence.failure(combination):
                trial.prove(combination, pairs, 1.0)
