"""Which variant of a target to use: all take turns until that is decided or the time is over."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from profkit.core.errors import EnvironmentProblem, TargetFailed, UsageError
from profkit.core.fingerprint import Fingerprint
from profkit.core.lock import gpu_lock
from profkit.core.typed_file import convert
from profkit.timing.floor import read_floor
from profkit.timing.latency import Timed, analyze_latency, compare_with
from profkit.timing.latency_format import Declared
from profkit.timing.measurement import (
    Opened,
    Series,
    Tell,
    TimingPlan,
    environment_of,
    lock_of,
    of_device,
    open_target,
    process_of,
)
from profkit.timing.optimum import (
    LOOKS,
    Candidate,
    Decision,
    Outcome,
    Standing,
    decide,
    standing,
    thresholds_of_looks,
)
from profkit.timing.orders import order
from profkit.timing.verdict import holm

_MOST, _FEWEST = 30, 10
_FEWEST_BLOCKS = 6


@dataclass(frozen=True)
class Optimum:
    """What was found: the decision, the variant in use, every candidate, what could not run.

    `settings` is what a program writes to have a variant, `chosen` the variant that the one in use
    comes down to, None where it does not say. `blocks` were taken of the one in use, `budget` and
    `seconds` are wall time.
    """

    target: Declared
    decision: Decision
    in_use: Timed
    candidates: tuple[Candidate, ...]
    left_out: Mapping[str, str]
    settings: Mapping[str, str]
    chosen: str | None
    speedup: float
    budget: float
    seconds: float
    blocks: int
    fingerprint: Fingerprint
    fingerprint_sha256: str


def optimize(
    plan: TimingPlan, in_use: str | None, speedup: float, budget: float, tell: Tell
) -> Optimum:
    """Find the variant to use: one that is `speedup` times as fast as `in_use` (None: the first).

    Raises UsageError for a variant that there is not or one alone, TargetFailed where the one in
    use is wrong or all others are, EnvironmentProblem where it or none of the others can run here.
    """
    started = time.monotonic()
    (subject,) = plan.subjects
    with gpu_lock(lock_of(plan)), process_of(subject, environment_of(plan)) as turn:
        tell("start", "")
        opened = open_target(turn, subject, plan, tell)
        name = in_use or opened.told["target"]["variants"][0]
        ours = _in_use(opened, name)
        _refuse_none(opened, name)
        others = [one for one in opened.series if one.variant != name]
        for one in (ours, *others):
            tell("warm up", one.label)
            one.prepare(plan)
        search = _Search(ours, others, plan, speedup, started + budget, tell)
        search.run()
    told = opened.told
    return Optimum(
        target=convert(told["target"], Declared),
        decision=search.decision,
        in_use=search.timed(ours),
        candidates=tuple(search.found.values()),
        left_out={**opened.left_out, **opened.wrong},
        settings={key: one["setting"] for key, one in told["variants"].items() if one["setting"]},
        chosen=told["variants"][name]["chosen"],
        speedup=speedup,
        budget=budget,
        seconds=time.monotonic() - started,
        blocks=len(ours.blocks),
        fingerprint=convert(of_device(told), Fingerprint),
        fingerprint_sha256=told["fingerprint_sha256"],
    )


def _in_use(opened: Opened, name: str) -> Series:
    known = opened.told["target"]["variants"]
    if name not in known:
        raise UsageError(f"no variant {name!r}", f"there are {', '.join(known)}")
    if name in opened.wrong:
        raise TargetFailed(f"{name}: {opened.wrong[name]}", "mend it first")
    if name in opened.left_out:
        raise EnvironmentProblem(
            f"{name} can't run here: {opened.left_out[name]}", "name another with --baseline"
        )
    if len(known) < 2:
        raise UsageError(f"{name} is the only variant", "name a target that has alternatives")
    return next(one for one in opened.series if one.variant == name)


def _refuse_none(opened: Opened, name: str) -> None:
    """Raise with what is in the way of each alternative where not one can be timed."""
    if any(one.variant != name for one in opened.series):
        return
    kind = EnvironmentProblem if opened.left_out else TargetFailed
    whys = {**opened.left_out, **opened.wrong}
    told = "; ".join(f"{label}: {why}" for label, why in whys.items())
    raise kind(f"nothing to compare {name} with ({told})", "name variants that can run here")


class _Search:
    """Blocks in turns, looked at now and then; what has fallen short takes no more of them."""

    def __init__(
        self,
        ours: Series,
        others: Sequence[Series],
        plan: TimingPlan,
        speedup: float,
        until: float,
        tell: Tell,
    ) -> None:
        self._ours = ours
        self._live = list(others)
        self._plan = plan
        self._speedup = speedup
        self._until = until
        self._tell = tell
        self._turn = 0
        self._samples = self._samples_in_a_block()
        self.found: dict[str, Candidate] = {}
        self.decision = Decision(Outcome.keep, None)

    def run(self) -> None:
        """Until every candidate is decided, the looks are over or the time is."""
        for look in LOOKS:
            if not self._live or not self._blocks(look):
                break
            self._look()
        if self._live and len(self._ours.blocks) >= _FEWEST_BLOCKS:
            self._look()

    def timed(self, one: Series) -> Timed:
        """The latency of a series as it is."""
        return analyze_latency(one.latency(self._plan))

    def _samples_in_a_block(self) -> int:
        """As many as let the first look come in a third of the time."""
        round_ = sum(one.sample_seconds for one in (self._ours, *self._live))
        left = (self._until - time.monotonic()) / 3
        return max(_FEWEST, min(_MOST, int(left / (LOOKS[0] * round_))))

    def _blocks(self, until: int) -> bool:
        """Take blocks up to so many; False where the time is over before."""
        while len(self._ours.blocks) < until:
            at = len(self._ours.blocks)
            if at >= _FEWEST_BLOCKS and time.monotonic() >= self._until:
                return False
            series = [self._ours, *self._live]
            for one in [series[place] for place in order(len(series), at)]:
                self._tell("time", f"block {at + 1}, {one.label}")
                one.block(self._samples, self._turn)
                self._turn += 1
        return True

    def _look(self) -> None:
        """Compare what still takes turns; let go of what is decided and not the best."""
        ours = self.timed(self._ours)
        known = read_floor(*ours.latency.measured_with)
        pairs = compare_with(
            ours,
            [self.timed(one) for one in self._live],
            thresholds=thresholds_of_looks(),
            floor=known.within_process if known else None,
        )
        for pair in pairs:
            self.found[pair.b.label] = Candidate(pair, standing(pair.comparison, self._speedup))
        self._correct()
        self.decision = decide(list(self.found.values()))
        if self.decision.outcome is not Outcome.undecided:
            self._live = []
        best = self.decision.candidate
        self._live = [one for one in self._live if self._matters(one.label, best)]

    def _correct(self) -> None:
        """Holm over all candidates, those let go of included."""
        corrected = holm([one.pair.comparison for one in self.found.values()])
        for (label, one), comparison in zip(list(self.found.items()), corrected, strict=True):
            pair = replace(one.pair, comparison=comparison)
            self.found[label] = Candidate(pair, standing(comparison, self._speedup))

    def _matters(self, label: str, best: Candidate | None) -> bool:
        one = self.found[label]
        if one.standing is Standing.short:
            return False
        return best is None or one.pair.comparison.high >= best.pair.comparison.low
