"""Which switches gain, alone and together: interleaved runs within a budget of time.

Each switch is tried on top of what gains so far, whose run stands before every second one: what one
limit hides shows behind it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from profkit.trial import checks
from profkit.trial.evidence import CLEAR, THRESHOLDS, Combination, Evidence, best, gains, is_within
from profkit.trial.run import TIMED_OUT, Perturbation, Result
from profkit.trial.switch import Switch
from profkit.trial.trial_file import Changes

_MOST_PAIRS = 8  # chosen: an effect that eight pairs don't show is smaller than others' noise
_EARLY_PAIRS = 4  # chosen: the same, before others have been tried
_LAST_PAIRS = 20  # the same, of what is proven with the time that is left
_COMBINED = 2  # chosen: combinations by switch for which a verdict that is reached has to hold
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
_NEAR = 0.95  # chosen: a switch that costs less alone may gain with others
_LEVELS: tuple[Changes, ...] = ("precision", "random")
_BESIDE: tuple[Changes, ...] = ("nothing", "random")  # computing is as before
_APART = "optimizer"  # whose work is not in the modules that are compiled


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


def _is_beside(switch: Switch) -> bool:
    """Whether what a compiler sees is as without a switch."""
    return switch.changes in _BESIDE or switch.group == _APART


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
    is_spent: bool = False  # there is no time for whole runs

    def __post_init__(self) -> None:
        self.start = self.clock()

    def used(self, more: float = 0.0) -> float:
        """The share of the budget that is used, with some more seconds."""
        return (self.clock() - self.start + more + self.reserved) / self.budget

    @property
    def reserved(self) -> float:
        """Seconds for whole runs of what gains, and for another unchanged one where that is little
        and results differ: its ends may be chaotic."""
        chosen, again = self.worthy, self.whole_cost(())
        judged = filter(None, map(self.evidence.judgment, chosen))
        is_seen = any(run.is_whole for run in self.evidence.perturbed)
        is_spared = any(each.difference for each in judged) and not is_seen and self.is_short
        if not any(run.is_whole for run in self.evidence.unchanged):
            chosen.add(())
        return (not self.is_spent) * (sum(map(self.whole_cost, chosen)) + again * is_spared)

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
        return {top, same if self.evidence.speedup(same) > CLEAR else top} - {()}

    def promise(self, switch: Switch) -> float:
        """The logarithm of the gain to expect, by what limits the program and what has gained."""
        if switch.name in self.first:
            return self.budget
        evidence, promise = self.evidence, math.log(switch.typical)
        runs = evidence.of(self.base) if self.base else evidence.unchanged[:1]
        if runs[-1].limit not in switch.helps:
            promise *= _ELSEWHERE
        if {*switch.helps} == {"input"}:  # which can't win more than what is waited for
            promise = min(promise, -math.log(max(1 - runs[-1].waiting, _LEAST)))
        if self.base and evidence.of((switch,)):
            promise *= _ONCE_MORE
        rivals = [each for (each, *more) in evidence.combinations if not more]
        rivals = [each for each in rivals if switch.group and each.group == switch.group]
        if any(gains(evidence, (each,), CLEAR) for each in rivals if each is not switch):
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
        if runs := self.evidence.of((switch,)):
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
        is_new = bool(combination) and combination not in evidence.combinations
        if is_new or evidence.is_late(combination):
            before = evidence.cold.get(combination, 0.0)
            evidence.cold[combination] = before + result.seconds
        starts = is_new and not result.failure and any(switch.start for switch in combination)
        usual = max(map(_slowing, evidence.unchanged), default=1.0)
        if starts and _slowing(result) > _COMPILING * usual and self.used(result.seconds) < 1:
            # Of what is in its cache now.
            result = self.measure(combination, perturb=perturb, kept=kept)
        is_spent = result.is_cut and bool(evidence.runs)
        if is_new or not is_spent:
            evidence.runs.append(result)
        evidence.combinations += [combination] * is_new
        if is_spent:
            raise _Spent
        return result

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
            if pairs >= self._most(combination, most) or self.evidence.failure(combination):
                return False
            is_early = share < 1 and pairs >= THRESHOLDS.blocks
            is_hopeful = share == 1 and self.evidence.is_hopeful(combination, ())
            is_hopeful |= self.evidence.is_promising(combination, is_early=is_early)
            # Many more pairs show it, or there is no time.
            if not is_hopeful or self.used(self.cost(combination) + self.cost(())) > share:
                return False
            if self.evidence.runs[-1].switches:
                self.run(())
            self.run(combination, is_paired=True)
        return True

    def _most(self, combination: Combination, most: int) -> int:
        """The pairs after which no verdict is expected: `most`, but more for a gain that is clear,
        unless others are tried first."""
        is_last = most > _EARLY_PAIRS and self.evidence.is_clear(combination)
        return _LAST_PAIRS if is_last else most

    def is_decided(self, combination: Combination) -> bool:
        """Whether a verdict on a combination holds among those that will be tried."""
        comparison = self.evidence.comparison(combination) if combination else None
        count = max(_COMBINED * self.candidates, len(self.evidence.combinations))
        return comparison is not None and comparison.p_value * count < 1 - THRESHOLDS.level


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
    rest, trial.is_spent = (trial.whole_cost if evidence.of(()) else None), False
    reserve = trial.reserved
    evidence.left = {s: trial.proof((s,)) + rest((s,)) + reserve if rest else 0.0 for s in left}
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
        if (is_late or is_slow) and evidence.speedup(base) > CLEAR and base not in proven:
            proven.add(base)
            trial.prove(base, _EXTENDING, _EARLY_PAIRS)
            continue
        seen.add(together)
        is_only = not evidence.combinations and trial.used(trial.cost(together)) <= 1
        if is_only and not trial.fits(together):  # its gain may leave time to prove it
            _is_idle(trial, switch, trial.run(together))
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
    """Whether results are the same, after perturbed runs where that is not clear without: several,
    as a single run may move little by chance."""
    evidence = trial.evidence
    for most in range(1, checks.MOST_PERTURBED + 1):
        for kind in sorted({checks.KINDS[switch.changes] for switch in combination} - {""}):
            if not evidence.is_same(combination):
                _perturb(trial, kind, most)
    return evidence.is_same(combination)


def _perturb(trial: _Search, kind: Perturbation, most: int = 1) -> None:
    """An unchanged run with a perturbation, `most` times in all, where there are results to
    compare; to its end where that is near, as ends are compared too."""
    evidence = trial.evidence
    first, known = evidence.unchanged[0], [run.perturbed for run in evidence.runs]
    is_possible = evidence.can_perturb(kind) and (most == 1 or trial.used(trial.cost(())) < 1)
    if first.results and known.count(kind) < most and is_possible:
        trial.run((), perturb=kind, grace=trial.whole_cost(()) * trial.is_short)


def _ranked(
    evidence: Evidence, candidates: Sequence[Switch], level: Changes, limit: str = ""
) -> list[Switch]:
    """Switches that change no more than `level`, fastest first, without those that were no use,
    then what was not tried and costs little; of those that help against a `limit` also what was not
    tried alone."""
    least = _NEAR / evidence.step
    tried = {switch for combination in evidence.combinations for switch in combination}
    alone = {switch: evidence.share(switch) for switch in candidates}
    return [
        switch
        for switch in sorted(candidates, key=lambda each: -alone[each])
        if switch not in evidence.skipped
        and is_within((switch,), level)
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
    evidence = trial.evidence
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
            is_new = together != current and is_within(together, level)
            if is_new and evidence.is_hopeful(together, current):
                current = trial.base = _added_to(trial, current, switch, together)


def _confirm(trial: _Search, candidates: Sequence[Switch]) -> None:
    """Pairs of the best combinations, then of single switches, as long as there is time."""
    evidence, trial.base = trial.evidence, ()
    if not evidence.is_repeated and trial.used(trial.cost(())) < 1:
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
    trial.is_spent = not any(map(trial.is_decided, evidence.combinations))
    for combination in chosen[: trial.is_spent]:
        trial.prove(combination, 1.0)
    for combination in evidence.combinations:
        if trial.used(trial.cost(())) < 1:
            _is_clean(trial, combination)
