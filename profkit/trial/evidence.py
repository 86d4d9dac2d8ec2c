"""What runs of a program with switches say: speedups, verdicts, and whether results are the same.

A combination's runs are paired with unchanged ones next to them, each used once; pairs are
independent, as blocks of `profkit time` are.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field

from profkit.timing.results import Comparison, Thresholds
from profkit.timing.verdict import compare
from profkit.trial import checks
from profkit.trial.run import TIMED_OUT, Perturbation, Result
from profkit.trial.switch import Switch
from profkit.trial.trial_file import Changes

Combination = tuple[Switch, ...]

THRESHOLDS = Thresholds(level=0.99, blocks=3, samples=1)
"""Processes are few and stable: three pairs at 99%, so that of 40 trials without a difference none
names one."""
_FEWEST = 2  # unchanged runs, for their own difference
_FLOOR = 0.5  # chosen: standard deviations of unchanged runs in which a difference is none
_PROMISING = 1.02  # chosen: a gain in a single pair that is worth more runs
_STEP = 0.01  # chosen: what a further switch has to add in a single pair
_SPREADS = 3.0  # chosen: standard deviations of unchanged runs that it has to add at least
CLEAR = 1.10  # chosen: a gain that is proven early
_NEARBY = 3  # runs that one is compared to, chosen: a host's speed drifts within minutes
_LOOKS = 2  # runs that have to show it: of ten switches that do nothing one seems to add in a run
_MOST_LOOKS = 4  # chosen: what these don't show is less than the scatter
_MAYBE = 0.7  # chosen: standard errors of a gain that is worth another run
_NOISE = 1.5  # chosen: standard deviations of a mean, below which others are tried first
_HOPE = 2.0  # chosen: standard errors by which a clear gain may be larger than it seemed
_ORDER: tuple[Changes, ...] = ("nothing", "rounding", "random", "precision")


@dataclass(eq=False)
class Evidence:
    """All runs in their order; `skipped` are reasons by switch, `left` the seconds of a proof by
    switch that was not tried, `cold` the seconds by combination until it ran with full caches of
    what it compiles. The program takes more than `endless` seconds, if it was not seen to end."""

    runs: list[Result] = field(default_factory=list)
    combinations: list[Combination] = field(default_factory=list)
    skipped: dict[Switch, str] = field(default_factory=dict)
    left: dict[Switch, float] = field(default_factory=dict)
    cold: dict[Combination, float] = field(default_factory=dict)
    slower: set[Combination] = field(default_factory=set)  # than without a switch, or failed
    interrupted: bool = False
    endless: float = 0.0
    _judged: dict[tuple[Combination, int], checks.Judgment | None] = field(default_factory=dict)

    @property
    def unchanged(self) -> list[Result]:
        """The runs without switches that say something."""
        return [self.runs[place] for place in self._places(())]

    @property
    def is_repeated(self) -> bool:
        """Whether there are unchanged runs enough for their own difference."""
        return len(self.unchanged) >= _FEWEST

    @property
    def perturbed(self) -> list[Result]:
        """The runs without switches that were perturbed and say something."""
        return [run for run in self.runs if run.perturbed and not run.failure]

    def of(self, combination: Combination) -> list[Result]:
        """The runs of a combination, failures too."""
        return [self.runs[place] for place in self._of(combination)]

    def _of(self, combination: Combination) -> list[int]:
        names = tuple(switch.name for switch in combination)
        return [n for n, run in enumerate(self.runs) if run.switches == names and not run.perturbed]

    def _places(self, combination: Combination) -> list[int]:
        return [place for place in self._of(combination) if not self.runs[place].failure]

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

    def comparison(self, combination: Combination) -> Comparison | None:
        """The verdict on a combination, for it alone; None below three pairs."""
        pairs = self.pairs(combination)
        if len(pairs) < THRESHOLDS.blocks:
            return None
        before, after = zip(*((a.block, b.block) for a, b in pairs), strict=True)
        floor = _FLOOR * self.spread
        others = self._scatter(combination)
        return compare(before, after, floor=floor, thresholds=THRESHOLDS, others=others)

    def _scatter(self, combination: Combination) -> list[list[float]]:
        """Logarithms of ratios of what was measured several times besides a combination: their
        scatter is that of its own, and three pairs alone say little of it."""
        logs = [math.log(run.mean) for run in self.unchanged]
        pairs = zip(logs[::2], logs[1::2], strict=False)
        others = [[(a - b) / math.sqrt(2), (b - a) / math.sqrt(2)] for a, b in pairs]
        others += [
            [math.log(b.mean / a.mean) for a, b in self.pairs(other)]
            for other in self.combinations
            if other != combination
        ]
        return [row for row in others if len(row) > 1]

    @property
    def spread(self) -> float:
        """The standard deviation of the logarithm of unchanged runs' times; 0 of one run."""
        times = [math.log(run.mean) for run in self.unchanged]
        return statistics.stdev(times) if len(times) > 1 else 0.0

    @property
    def step(self) -> float:
        """The factor from which on a single pair shows a difference."""
        return 1 + max(_STEP, _SPREADS * self.spread)

    def is_faster(self, together: Combination, current: Combination) -> bool | None:
        """Whether a combination is faster than another, by runs next to each other, as far as these
        show it; None where more would."""
        looks, gain, error = self._gain(together, current)
        if looks >= _LOOKS and gain > max(_STEP, _SPREADS * error):
            return True
        is_open = 0 < looks < _MOST_LOOKS and gain > max(_STEP, _MAYBE * error)
        return None if is_open else False

    def is_hopeful(self, together: Combination, current: Combination) -> bool:
        """Whether a combination may still be clearly faster than another, after so few runs."""
        looks, gain, error = self._gain(together, current)
        return 0 < looks < _MOST_LOOKS and gain + _HOPE * error > math.log(CLEAR)

    def is_promising(self, combination: Combination, *, is_early: bool) -> bool:
        """Whether more pairs of a combination may show that it gains, when others are tried first
        if it `is_early`."""
        least = math.exp(_NOISE * self._noise(combination)) if is_early else 0.0
        return self.speedup(combination) >= max(_PROMISING, least)

    def is_clear(self, combination: Combination) -> bool:
        """Whether its gain is clear beside the scatter of the mean over its pairs."""
        return self.speedup(combination) > max(CLEAR, math.exp(_SPREADS * self._noise(combination)))

    def _noise(self, combination: Combination) -> float:
        """The standard deviation of the mean over a combination's pairs, as logarithms."""
        return self.spread * math.sqrt(2 / max(len(self.pairs(combination)), 1))

    def _gain(self, together: Combination, current: Combination) -> tuple[int, float, float]:
        """The runs that show how much faster a combination is than another, the logarithm of the
        mean factor, and its standard error."""
        places, before = self._places(together), self._places(current)
        times = [math.log(self.runs[place].mean) for place in before]
        scatter = self.spread
        if len(times) >= THRESHOLDS.blocks:  # of which few may scatter less by chance
            scatter = max(statistics.stdev(times), scatter / math.sqrt(len(times) - 1))
        gains = []
        for place in places:
            near = sorted(range(len(before)), key=lambda each: abs(before[each] - place))[:_NEARBY]
            own = math.log(self.runs[place].mean)
            gains.append(statistics.mean(times[each] for each in near) - own)
        if not gains:
            return 0, 0.0, 0.0
        error = scatter * math.sqrt(1 / len(gains) + 1 / min(len(before), _NEARBY))
        return len(gains), statistics.mean(gains), error

    def share(self, switch: Switch) -> float:
        """The largest speedup by a switch, alone or added to others; 0 where it is unknown."""
        known = {frozenset(each): each for each in self.combinations}
        shares = [self.speedup((switch,))]
        for names, combination in known.items():
            rest = names - {switch}
            if rest != names and rest in known and self.speedup(known[rest]):
                shares.append(self.speedup(combination) / self.speedup(known[rest]))
        return max(shares)

    def is_hidden(self, switch: Switch) -> bool:
        """Whether a switch was tried, but only where it does not help against what limits it."""
        rests = [[each for each in row if each is not switch] for row in self.combinations]
        tried = [rest for rest, row in zip(rests, self.combinations, strict=True) if rest != [*row]]
        limits = {run.limit for rest in tried for run in self.of(tuple(rest))}
        return bool(limits) and not limits & {*switch.helps}

    def failure(self, combination: Combination) -> str:
        """Why the last run of a combination says nothing, "" where it does."""
        return next((run.failure for run in reversed(self.of(combination))), "")

    def is_late(self, combination: Combination) -> bool:
        """Whether the budget ended the last run of a combination, which may have been compiling."""
        return any(run.status == TIMED_OUT for run in self.of(combination)[-1:])

    def judgment(self, combination: Combination) -> checks.Judgment | None:
        """How far results are from the unchanged program's; None where there are none."""
        key = combination, len(self.runs)
        if key not in self._judged:
            runs = [run for run in self.of(combination) if not run.failure]
            kinds = {switch.changes for switch in combination}
            self._judged[key] = checks.judged(self.unchanged, self.perturbed, runs, kinds)
        return self._judged[key]

    def is_same(self, combination: Combination) -> bool:
        """Whether results are those of the unchanged program, as far as its switches declare; not
        known of one unchanged run."""
        if not self.is_repeated:
            return True
        judgment = self.judgment(combination)
        return judgment is None or judgment.is_same

    def is_perturbed(self, combination: Combination, times: int = 1) -> bool:
        """Whether perturbed runs, so many, show what becomes of other rounding and random
        numbers."""
        kinds = {checks.KINDS[switch.changes] for switch in combination} - {""}
        known = [run.perturbed for run in self.perturbed]
        return all(known.count(kind) >= times for kind in filter(self.can_perturb, kinds))

    def can_perturb(self, kind: Perturbation) -> bool:
        """Whether the program can be perturbed so: JAX has no random numbers of its own."""
        needed = {"torch", "jax"} if kind == "rounding" else {"torch"}
        return not needed.isdisjoint(self.unchanged[0].features)


def declared(combination: Combination) -> Changes:
    """What the switches of a combination change at most."""
    return max((switch.changes for switch in combination), key=_ORDER.index, default="nothing")


def is_within(combination: Combination, level: Changes) -> bool:
    """Whether a combination changes no more than `level`."""
    return _ORDER.index(declared(combination)) <= _ORDER.index(level)


def gains(evidence: Evidence, combination: Combination, least: float = _PROMISING) -> bool:
    """Whether a combination seems to gain, with results that are the same as far as declared."""
    return evidence.speedup(combination) > least and evidence.is_same(combination)


def best(evidence: Evidence, level: Changes) -> Combination:
    """The fastest combination that changes no more than `level`, of those that are as fast the one
    of fewest switches; () where none gains."""
    rows = [
        combination
        for combination in evidence.combinations
        if is_within(combination, level)
        and gains(evidence, combination)
        and combination not in evidence.slower
        and not evidence.skipped.keys() & set(combination)
    ]
    gained = {combination: evidence.speedup(combination) for combination in rows}
    least = max(gained.values(), default=0.0) / evidence.step
    fast = [combination for combination in rows if gained[combination] > least]
    return min(fast, key=lambda each: (len(each), -gained[each]), default=())
