"""Which switches gain, alone and together: interleaved runs within a budget of time.

Each switch is tried on top of what gains so far, whose run stands before every second one: what one
limit hides shows behind it. A combination's runs are paired with unchanged ones next to them, each
used once; pairs are independent, as blocks of `profkit time` are.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

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
FEWEST = 2  # unchanged runs, for their own difference
_FLOOR = 0.5  # chosen: standard deviations of unchanged runs in which a difference is none
_MOST_PAIRS = 8  # chosen: an effect that eight pairs don't show is smaller than others' noise
_EARLY_PAIRS = 4  # chosen: the same, before others have been tried
_LAST_PAIRS = 20  # the same, of what is proven with the time that is left
_COMBINED = 2  # chosen: combinations by switch for which a verdict that is reached has to hold
_PROMISING = 1.02  # chosen: a gain in a single pair that is worth more runs
_STEP = 0.01  # chosen: what a further switch has to add in a single pair
_SPREADS = 3.0  # chosen: standard deviations of unchanged runs that it has to add at least
_CLEAR = 1.10  # chosen: a gain that is proven early
_LARGE = 2.0  # chosen: a gain that is proven at once
_FIRST = 90.0  # s until a clear gain should be proven, chosen: as long as people wait
_REMAINING = 5  # runs until then: two more pairs, and the one that would come before them
_ELSEWHERE = 0.2  # chosen: of its typical gain, where it helps against another limit
_LEAST = 1e-3  # of the time, chosen: what is left without all that is waited for
_AGAIN = 0.3  # chosen: the same, where another of its group has gained
_ONCE_MORE = 0.5  # chosen: the same, where it has been tried without what gains by now
_LIKELY = 1.04  # chosen: a typical gain that is looked for before gains are put together
_WHOLE = 1.5  # chosen: a whole run in those ended early, or its rest in that of the first run
_END = 0.2  # of the budget, chosen: an unchanged run to its end, and as much for what gains
_SPARED = 0.10  # of the budget, chosen: what a run that is seldom made may keep of it
_SCREENING, _EXTENDING = 0.55, 0.85  # shares of the budget, chosen
_SLOW = 3.0  # chosen: runs of the best so far, which are made before one that takes longer
_COMPILING = 1.25  # chosen: by which a half of a run that compiles is slower than the other
_CACHED = 0.3  # chosen: of what compiling takes, with its cache
_NEARBY = 3  # runs that one is compared to, chosen: a host's speed drifts within minutes
_LOOKS = 2  # runs that have to show it: of ten switches that do nothing one seems to add in a run
_MOST_LOOKS = 4  # chosen: what these don't show is less than the scatter
_MAYBE = 0.7  # chosen: standard errors of a gain that is worth another run
_HOPE = 2.0  # chosen: standard errors by which a clear gain may be larger than it seemed
_NOISE = 1.5  # chosen: standard deviations of a mean, below which others are tried first
_NEAR = 0.95  # chosen: a switch that costs less alone may gain with others
_LEVELS: tuple[Changes, ...] = ("precision", "random")
_BESIDE: tuple[Changes, ...] = ("nothing", "random")  # computing is as before
_APART = "optimizer"  # whose work is not in the modules that are compiled
_ORDER: tuple[Changes, ...] = ("nothing", "rounding", "random", "precision")


class Measure(Protocol):
    """Runs the program once with a combination of switches, and ends it when no more than `kept`
    seconds are left; it goes on to its end if that comes within `grace` seconds of the units that
    count."""

    def __call__(
        self,
        switches: Combination,
        *,
        perturb: Perturbation = "",
        grace: float = 0.0,
        kept: float = 0.0,
    ) -> Result: ...


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
        return 0 < looks < _MOST_LOOKS and gain + _HOPE * error > math.log(_CLEAR)

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
        runs = self.of(combination)
        return runs[-1].failure if runs else ""

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
        if len(self.unchanged) < FEWEST:
            return True
        judgment = self.judgment(combination)
        return judgment is None or judgment.is_same

    def is_perturbed(self, combination: Combination) -> bool:
        """Whether perturbed runs show what becomes of other rounding and random numbers."""
        kinds = {checks.KINDS[switch.changes] for switch in combination} - {""}
        known = {run.perturbed for run in self.perturbed}
        return {kind for kind in kinds if _is_possible(kind, self.unchanged[0])} <= known


def _is_possible(kind: Perturbation, run: Result) -> bool:
    """Whether a program can be perturbed so: JAX has no random numbers of its own."""
    return bool(run.features & ({"torch", "jax"} if kind == "rounding" else {"torch"}))


def _is_beside(switch: Switch) -> bool:
    """Whether what a compiler sees is as without a switch."""
    return switch.changes in _BESIDE or switch.group == _APART


def declared(combination: Combination) -> Changes:
    """What the switches of a combination change at most."""
    return max((switch.changes for switch in combination), key=_ORDER.index, default="nothing")


class _Spent(Exception):
    """The budget has ended a run."""


@dataclass(eq=False)
class _Search:
    measure: Measure
    clock: Callable[[], float]
    budget: float
    tell: Callable[[str], None]
    evidence: Evidence
    first: Sequence[str] = ()
    candidates: int = 0
    base: Combination = ()  # what is proven to gain, with what gains on top of it

    def __post_init__(self) -> None:
        self.start = self.clock()

    def used(self, more: float = 0.0) -> float:
        """The share of the budget that is used, with some more seconds."""
        return (self.clock() - self.start + more + self.reserved) / self.budget

    @property
    def reserved(self) -> float:
        """Seconds for whole runs of what gains, and for another unchanged one where that is little
        and results differ: its ends may be chaotic."""
        unchanged = self.evidence.unchanged
        chosen, again = self.worthy, self.whole_cost(())
        judged = filter(None, map(self.evidence.judgment, chosen))
        is_seen = any(run.is_whole for run in self.evidence.perturbed)
        is_spared = any(each.difference for each in judged) and not is_seen and self.is_short
        if not any(run.is_whole for run in unchanged):
            chosen.add(())
        return sum(map(self.whole_cost, chosen)) + again * is_spared

    @property
    def is_short(self) -> bool:
        """Whether another whole unchanged run is known to take little of the budget."""
        is_known = any(run.is_whole for run in self.evidence.unchanged)
        return is_known and self.whole_cost(()) < _SPARED * self.budget

    def whole_cost(self, combination: Combination) -> float:
        """Expected seconds of a whole run, with its imports: what comes after the units that count
        is known from an unchanged run to its end; 0 where none is made."""
        unchanged = self.evidence.unchanged
        if self.evidence.endless or not any(run.stopped for run in unchanged):
            return 0.0
        rest = max((run.rest for run in unchanged if run.is_whole), default=0.0)
        early = self.cost(combination) + unchanged[-1].start
        return max(_WHOLE * early, early + _WHOLE * rest)

    @property
    def worthy(self) -> set[Combination]:
        """The best so far, and the best in full precision if that gains clearly."""
        same, top = (best(self.evidence, level) for level in ("random", "precision"))
        return {top, same if self.evidence.speedup(same) > _CLEAR else top} - {()}

    def promise(self, switch: Switch) -> float:
        """The logarithm of the gain to expect, by what limits the program and what has gained."""
        if switch.name in self.first:
            return self.budget
        evidence = self.evidence
        promise = math.log(switch.typical)
        runs = evidence.of(self.base) if self.base else evidence.unchanged[:1]
        if runs[-1].limit not in switch.helps:
            promise *= _ELSEWHERE
        if {*switch.helps} == {"input"}:  # which can't win more than what is waited for
            promise = min(promise, -math.log(max(1 - runs[-1].waiting, _LEAST)))
        if self.base and evidence.of((switch,)):
            promise *= _ONCE_MORE
        rivals = [each for (each, *more) in evidence.combinations if not more]
        rivals = [each for each in rivals if switch.group and each.group == switch.group]
        if any(gains(evidence, (each,), _CLEAR) for each in rivals if each is not switch):
            promise *= _AGAIN
        return promise

    def trying(self, switch: Switch) -> Combination:
        """A switch with the base, in place of its rival there."""
        rest = [each for each in self.base if not (each.group and each.group == switch.group)]
        return tuple(sorted((*rest, switch), key=lambda each: each.name))

    def is_open(self, switch: Switch) -> bool:
        """Whether a switch has not been tried with the base, and may gain there."""
        evidence = self.evidence
        trying, alone = self.trying(switch), evidence.speedup((switch,))
        is_bad = evidence.of((switch,)) and not alone > _NEAR / evidence.step
        is_tried = trying in evidence.combinations or switch in self.base
        has_failed = any(switch in each and evidence.failure(each) for each in evidence.slower)
        return not (is_tried or is_bad or has_failed or switch in evidence.skipped)

    def cost(self, combination: Combination) -> float:
        """Expected seconds of a run: what compiles takes its start, and less with its cache."""
        first, *later = self.evidence.of(())
        compiling = float(first.facts.get("compiling", 0.0))
        compiling = min(compiling, first.seconds)  # in several threads, perhaps
        unchanged = later[-1].seconds if later else first.seconds - (1 - _CACHED) * compiling
        if not combination:
            return unchanged
        runs = [run.seconds for run in self.evidence.of(combination)]
        if len(runs) == 1 and any(switch.start for switch in combination):
            return unchanged + _CACHED * (runs[0] - unchanged)
        return runs[-1] if runs else self.first_cost(combination)

    def first_cost(self, combination: Combination) -> float:
        """Expected seconds of a first run: switches take theirs at the same time, but for a process
        of its own, which starts once."""
        unchanged, compiled = self.cost(()), self.compiled(combination)
        rest = [switch for switch in combination if switch not in compiled]
        inside = [unchanged + self.more(switch) for switch in rest if not switch.environment]
        has_own = any(switch.environment for switch in compiled)
        apart = [self.more(switch) for switch in rest if switch.environment and not has_own]
        return max([self.cost(compiled), *inside]) + max(apart, default=0.0)

    def compiled(self, combination: Combination) -> Combination:
        """The largest combination that has compiled what one does, as the difference changes no
        computing; () without."""
        known = [
            other
            for other in self.evidence.combinations
            if any(switch.start for switch in other)
            and not self.evidence.failure(other)
            and all(map(_is_beside, {*other} ^ {*combination}))
        ]
        return max(known, key=len, default=())

    def more(self, switch: Switch) -> float:
        """Seconds by which a first run with a switch is longer than an unchanged one: variables are
        read by a process of its own."""
        unchanged = self.evidence.of(())[-1]
        runs = self.evidence.of((switch,))
        if runs:
            return runs[0].seconds - unchanged.seconds
        return switch.start + (unchanged.start if switch.environment else 0.0)

    def proof(self, combination: Combination) -> float:
        """Seconds of the pairs that a verdict on a combination needs yet."""
        runs = len(self.evidence.pairs(combination))
        if not combination or self.is_decided(combination):
            return 0.0
        unchanged, once = self.cost(()), self.cost(combination)
        is_new = not runs and not self.compiled(combination)
        if is_new and any(switch.start for switch in combination):
            again = unchanged + _CACHED * (once - unchanged)
            return once + again * (THRESHOLDS.blocks - 1) + unchanged * THRESHOLDS.blocks
        return (once + unchanged) * max(THRESHOLDS.blocks - runs, 1)

    def fits(self, combination: Combination) -> bool:
        """Whether there is time to run a combination, and to prove what comes of it or the best
        so far."""
        run, before = self.cost(combination) + self.cost(()), self.cost(self.base)
        proofs = sum(map(self.proof, self.worthy))
        return self.used(max(self.proof(combination) + before, run + proofs)) <= 1

    def run(
        self,
        combination: Combination,
        *,
        perturb: Perturbation = "",
        grace: float = 0.0,
        is_paired: bool = False,
        kept: float = 0.0,
    ) -> Result:
        """A run, after one of the base where the last two were others, and it is in no pair, that
        leaves `kept` seconds besides the reserved ones."""
        evidence, names = self.evidence, tuple(switch.name for switch in self.base)
        is_far = all(run.switches != names for run in evidence.runs[-2:])
        if is_far and not is_paired and combination not in ((), self.base):
            self.run(self.base)
        self.tell(" + ".join(switch.name for switch in combination) or "unchanged")
        kept += self.reserved if evidence.runs else 0.0
        result = self.measure(combination, perturb=perturb, grace=grace, kept=kept)
        if combination not in evidence.combinations or evidence.is_late(combination):
            before = evidence.cold.get(combination, 0.0)
            evidence.cold[combination] = before + result.seconds
        if self._is_compiling(combination, result) and self.used(result.seconds) < 1:
            # Of what is in its cache now.
            result = self.measure(combination, perturb=perturb, kept=kept)
        if result.is_cut and evidence.runs:
            raise _Spent
        evidence.runs.append(result)
        if combination and combination not in evidence.combinations:
            evidence.combinations.append(combination)
        return result

    def _is_compiling(self, combination: Combination, result: Result) -> bool:
        """Whether a first run has compiled in the units that count."""
        return (
            combination not in self.evidence.combinations
            and any(switch.start for switch in combination)
            and not result.failure
            and _slowing(result) > _COMPILING * max(map(_slowing, self.evidence.unchanged))
        )

    def run_late(self, combination: Combination) -> None:
        """A run of what a limit has ended, in half of what is left beside proofs: it finds in its
        cache what is compiled by now."""
        proofs = sum(map(self.proof, self.worthy))
        left = self.budget * (1 - self.used(proofs))
        if left > self.cost(combination):
            self.run(combination, kept=proofs + left / 2)

    def prove(
        self, combination: Combination, share: float = _EXTENDING, most: int = _MOST_PAIRS
    ) -> bool:
        """Run a combination until its verdict holds among all of them; whether it does."""
        while not self.is_decided(combination):
            pairs = len(self.evidence.pairs(combination))
            noise = self.evidence.spread * math.sqrt(2 / max(pairs, 1))
            speedup = self.evidence.speedup(combination)
            if pairs >= _pair_limit(speedup, noise, most) or self.evidence.failure(combination):
                return False
            is_early = share < 1 and pairs >= THRESHOLDS.blocks
            least = max(_PROMISING, math.exp(_NOISE * noise) if is_early else 0.0)
            is_hopeful = share == 1 and self.evidence.is_hopeful(combination, ())
            used = self.used(self.cost(combination) + self.cost(()))
            # Many more pairs show it, or there is no time.
            if (speedup < least and not is_hopeful) or used > share:
                return False
            if self.evidence.runs[-1].switches:
                self.run(())
            self.run(combination, is_paired=True)
        return True

    def is_decided(self, combination: Combination) -> bool:
        """Whether a verdict on a combination holds among those that will be tried."""
        comparison = self.evidence.comparison(combination) if combination else None
        count = max(_COMBINED * self.candidates, len(self.evidence.combinations))
        return comparison is not None and comparison.p_value * count < 1 - THRESHOLDS.level


def _pair_limit(speedup: float, noise: float, most: int) -> int:
    """The pairs after which no verdict is expected: `most`, but more for a gain that is clear
    beside the `noise` of its mean, unless others are tried first."""
    is_clear = speedup > max(_CLEAR, math.exp(_SPREADS * noise))
    return _LAST_PAIRS if is_clear and most > _EARLY_PAIRS else most


def _slowing(result: Result) -> float:
    """How much slower the first half of a run is than the second."""
    half = len(result.times) // 2
    first, second = result.times[:half], result.times[half:]
    return statistics.mean(first) / statistics.mean(second) if half else 1.0


def search(
    measure: Measure,
    switches: Sequence[Switch],
    budget: float,
    clock: Callable[[], float],
    tell: Callable[[str], None],
    first: Sequence[str] = (),
) -> Evidence:
    """Try the switches, those named `first` before others, and the best of them together, in at
    most `budget` seconds of `clock`.

    An interruption ends it with what was measured.
    """
    evidence = Evidence()
    trial = _Search(measure, clock, budget, tell, evidence, first)
    try:
        unchanged = trial.run(())
        if unchanged.failure:
            return evidence
        _skip(trial, switches)
        # What it takes, and how far it differs, without a first run's start.
        if trial.used(trial.cost(()) / 2) < 1 and trial.run(()).failure:
            return evidence
        candidates = [switch for switch in switches if switch not in evidence.skipped]
        trial.candidates = len(candidates)
        likely = [each for each in candidates if trial.promise(each) > math.log(_LIKELY)]
        _screen(trial, likely, _SCREENING)
        _see_end(trial)
        _skip(trial, switches)
        candidates = [switch for switch in candidates if switch not in evidence.skipped]
        _unite(trial, candidates)
        _screen(trial, candidates, _EXTENDING)
        _see_end(trial)
        _unite(trial, candidates)
        for chosen in filter(trial.is_decided, [best(evidence, level) for level in _LEVELS]):
            trial.prove(_needed(trial, chosen), 1.0)
        for level in reversed(_LEVELS):
            _extend(trial, candidates, level)
        _look_again(trial, candidates)
        _confirm(trial, candidates)
    except _Spent:
        pass
    except KeyboardInterrupt:
        evidence.interrupted = True
    tried = {switch for combination in evidence.combinations for switch in combination}
    left = (s for s in switches if s not in tried and s not in evidence.skipped)
    rest = trial.whole_cost if evidence.of(()) else None
    evidence.left = {s: trial.proof((s,)) + rest((s,)) if rest else 0.0 for s in left}
    return evidence


def _skip(trial: _Search, switches: Sequence[Switch]) -> None:
    """Leave out the switches that are not for a program of what unchanged runs have seen."""
    evidence = trial.evidence
    features = frozenset[str]().union(*(run.features for run in evidence.unchanged))
    evidence.skipped |= {each: why for each in switches if (why := each.lacks(features))}
    if evidence.skipped.keys() & {*trial.base}:
        trial.base = best(evidence, _LEVELS[0])


def _see_end(trial: _Search) -> None:
    """Have an unchanged run go on to the program's end where something gains, and the first has not
    come to it: its length says how much time whole runs of what gains need."""
    grace = _END * trial.budget
    is_whole = any(run.is_whole or not run.stopped for run in trial.evidence.unchanged)
    is_known = is_whole or trial.evidence.endless
    if trial.worthy and not is_known and trial.used(grace) < 1:
        trial.tell("unchanged, to its end")
        result = trial.measure((), grace=grace)
        is_late = result.status == TIMED_OUT or not result.is_whole
        trial.evidence.endless = result.seconds if is_late else 0.0
        trial.evidence.runs.insert(1, result)  # the first takes longer than others too


def _screen(trial: _Search, candidates: Sequence[Switch], share: float) -> None:
    """Each switch on top of what gains so far, those first that promise most for their time; a
    large gain is proven at once, a clear one before 90 s are over, and before what takes longer."""
    evidence, seen, proven = trial.evidence, set[Combination](), set[Combination]()
    while rows := [
        switch
        for switch in candidates
        if trial.is_open(switch)
        and trial.trying(switch) not in seen
        and trial.used(trial.cost(trial.trying(switch)) - trial.reserved) <= share
        and trial.used(trial.cost(trial.trying(switch))) <= 1
    ]:
        switch = max(rows, key=lambda each: trial.promise(each) / trial.cost(trial.trying(each)))
        together, base = trial.trying(switch), trial.base
        seconds = trial.clock() - trial.start + _REMAINING * trial.cost(())
        is_large = evidence.speedup(base) > _LARGE
        has_proof = any(map(trial.is_decided, evidence.combinations))
        is_late = (seconds > _FIRST or is_large) and not has_proof
        is_slow = trial.cost(together) > _SLOW * trial.cost(base)
        if (is_late or is_slow) and evidence.speedup(base) > _CLEAR and base not in proven:
            proven.add(base)
            trial.prove(base, _EXTENDING, _EARLY_PAIRS)
            continue
        seen.add(together)
        is_only = not evidence.combinations and trial.used(trial.cost(together)) <= 1
        if is_only and not trial.fits(together):  # its gain may leave time to prove it
            trial.run(together)
        else:
            trial.base = _added_to(trial, base, switch, together)
            is_wrong = evidence.failure(together) or not evidence.is_same(together)
            is_wrong = is_wrong and not evidence.is_late(together)
            if is_wrong and not evidence.of((switch,)) and trial.fits((switch,)):
                _is_idle(trial, switch, trial.run((switch,)))  # it may be for what it is tried with


def _is_idle(trial: _Search, switch: Switch, result: Result) -> bool:
    """Whether a switch changed nothing in a run with it, which is then noted."""
    is_idle = not result.failure and switch.name not in result.applied
    if is_idle:
        trial.evidence.skipped[switch] = "it found nothing to change"
    return is_idle


def _is_clean(trial: _Search, combination: Combination) -> bool:
    """Whether results are the same, after perturbed runs where that is not clear without: more of
    them where a single number of each run is in question, which may be small by chance."""
    evidence = trial.evidence
    kinds = {checks.KINDS[switch.changes] for switch in combination} - {""}
    for most in range(1, checks.MOST_PERTURBED + 1):
        for kind in sorted(kinds):
            judgment = evidence.judgment(combination)
            if not evidence.is_same(combination) and (most == 1 or (judgment and judgment.is_late)):
                _perturb(trial, kind, most)
    return evidence.is_same(combination)


def _perturb(trial: _Search, kind: Perturbation, most: int = 1) -> None:
    """An unchanged run with a perturbation, `most` times in all, where there are results to
    compare; to its end where that is near, as ends are compared too."""
    evidence = trial.evidence
    first, known = evidence.unchanged[0], [run.perturbed for run in evidence.runs]
    is_possible = _is_possible(kind, first) and (most == 1 or trial.used(trial.cost(())) < 1)
    if first.results and known.count(kind) < most and is_possible:
        trial.run((), perturb=kind, grace=trial.whole_cost(()) * trial.is_short)


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
        and combination not in evidence.slower
        and not evidence.skipped.keys() & set(combination)
    ]
    gained = {combination: evidence.speedup(combination) for combination in rows}
    least = max(gained.values(), default=0.0) / evidence.step
    fast = [combination for combination in rows if gained[combination] > least]
    return min(fast, key=lambda each: (len(each), -gained[each]), default=())


def _ranked(
    evidence: Evidence, candidates: Sequence[Switch], level: Changes, limit: str = ""
) -> list[Switch]:
    """Switches that change no more than `level`, fastest first, without those that were no use,
    then what was not tried and costs little; of those that help against a `limit` also what was not
    tried alone."""
    allowed, least = _ORDER.index(level), _NEAR / evidence.step
    tried = {switch for combination in evidence.combinations for switch in combination}
    alone = {switch: evidence.share(switch) for switch in candidates}
    return [
        switch
        for switch in sorted(candidates, key=lambda each: -alone[each])
        if switch not in evidence.skipped
        and _ORDER.index(switch.changes) <= allowed
        and (
            alone[switch] > least
            or (switch not in tried and switch.typical > _LIKELY and _is_beside(switch))
            or (limit in switch.helps and not evidence.of((switch,)))
            or evidence.is_hidden(switch)
        )
        and (evidence.is_same((switch,)) or not evidence.is_perturbed((switch,)))
    ]


def _unite(trial: _Search, candidates: Sequence[Switch]) -> None:
    """Put all switches that gain, then all that promise much, together with the best so far, first
    those that compile nothing, and prove what comes of it: two limits of about the same height
    hide what lowers one of them."""
    evidence, base = trial.evidence, trial.base
    for level in _LEVELS:
        ranked = _ranked(evidence, candidates, level)
        gaining = [each for each in ranked if evidence.share(each) > evidence.step]
        likely = [each for each in ranked if each.typical > _LIKELY and evidence.share(each)]
        hopeful = [each for each in likely if level == "precision" or each.changes != "random"]
        rows = ([each for each in row if not each.start] for row in (gaining, hopeful))
        for several in (*rows, gaining, hopeful):
            union: Combination = ()
            for switch in [*several, *best(evidence, level)]:
                union = _added(union, switch) or union
            is_new = len(union) > 1 and union not in evidence.combinations
            if is_new and trial.fits(union):
                trial.run(union)
        _extend(trial, [each for each in ranked if not evidence.share(each)], level)
        chosen = best(evidence, level)
        if chosen in trial.worthy and _is_clean(trial, chosen):
            trial.prove(chosen, 1.0)
    trial.base = base


def _extend(trial: _Search, candidates: Sequence[Switch], level: Changes) -> None:
    """Add switches to the best ones, one after the other, while they gain: first those that help
    against what limits these, where that is not what limits the program."""
    evidence = trial.evidence
    current = trial.base = best(evidence, level)
    limit = evidence.of(current)[-1].limit
    limit = "" if limit == evidence.unchanged[0].limit else limit
    ranked = _ranked(evidence, candidates, level, limit)
    helping = [each for each in ranked if limit in each.helps]
    for switch in dict.fromkeys([*helping, *ranked]):
        together = _added(current, switch)
        if together is None or together in evidence.combinations:
            continue
        current = trial.base = _added_to(trial, current, switch, together)


def _added_to(
    trial: _Search, current: Combination, switch: Switch, together: Combination
) -> Combination:
    """What the best so far becomes with another switch: `together`, if that is faster."""
    is_faster = None
    while is_faster is None and trial.fits(together):
        result = trial.run(together)
        is_sound = not result.failure and not _is_idle(trial, switch, result)
        is_faster = is_sound and trial.evidence.is_faster(together, current)
        if is_faster is not False:
            if switch.changes == "random":
                _perturb(trial, "random")
            if not _is_clean(trial, together):
                return current
    if is_faster is False:
        trial.evidence.slower.add(together)
    elif is_faster:
        trial.evidence.slower.discard(together)
    return together if is_faster else current


def _added(combination: Combination, switch: Switch) -> Combination | None:
    """The combination with another switch; None where it, or one of its group, is in it."""
    is_rival = bool(switch.group) and switch.group in {other.group for other in combination}
    if is_rival or switch in combination:
        return None
    return tuple(sorted((*combination, switch), key=lambda each: each.name))


def _needed(trial: _Search, combination: Combination) -> Combination:
    """A combination without the switches without which it seems as fast."""
    evidence = trial.evidence
    for switch in sorted(combination, key=evidence.share):
        trial.base, fewer = combination, tuple(each for each in combination if each is not switch)
        is_faster = None if fewer and evidence.share(switch) <= evidence.step else True
        while is_faster is None and trial.fits(fewer):
            is_sound = not trial.run(fewer).failure and evidence.is_same(fewer)
            is_faster = not is_sound or evidence.is_faster(combination, fewer)
        combination = fewer if is_faster is False else combination
    return combination


def _look_again(trial: _Search, candidates: Sequence[Switch]) -> None:
    """Once more what compiles and was ended by its limit, then those switches of which few runs
    don't show that they add little: where times scatter, one look is none."""
    evidence, allowed = trial.evidence, _ORDER.index
    for combination in filter(evidence.is_late, tuple(evidence.combinations)):
        if any(switch.start for switch in combination):
            trial.run_late(combination)
        if gains(evidence, combination):
            evidence.slower.discard(combination)
            trial.prove(combination, 1.0)
            _unite(trial, candidates)
    for level in reversed(_LEVELS):
        current = trial.base = best(evidence, level)
        for switch in candidates:
            together = _added(current, switch) or current
            is_allowed = allowed(declared(together)) <= allowed(level)
            if is_allowed and evidence.is_hopeful(together, current) and together != current:
                current = trial.base = _added_to(trial, current, switch, together)


def _confirm(trial: _Search, candidates: Sequence[Switch]) -> None:
    """Pairs of the best combinations, then of single switches, as long as there is time."""
    evidence, trial.base = trial.evidence, ()
    if len(evidence.unchanged) < FEWEST and trial.used(trial.cost(())) < 1:
        trial.run(())
    if evidence.combinations:
        _perturb(trial, "rounding")
    alone = sorted(
        (
            (switch,)
            for switch in candidates
            if gains(evidence, (switch,), 0.0)
            and (gains(evidence, (switch,)) or evidence.is_hopeful((switch,), ()))
        ),
        key=lambda each: -evidence.speedup(each),
    )
    chosen = [each for each in (best(evidence, level) for level in _LEVELS) if each in trial.worthy]
    for combination in dict.fromkeys([*chosen, *alone]):
        trial.prove(combination, 1.0, _LAST_PAIRS)
    for combination in evidence.combinations:
        if trial.used(trial.cost(())) < 1:
            _is_clean(trial, combination)
