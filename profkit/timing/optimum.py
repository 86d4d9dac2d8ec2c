"""Which variant of a target to use: interleaved blocks until that is decided or the budget is
spent.

Each is compared with the one in use several times during the measurement. For that the confidence
levels are raised so that all looks together have the error rate of one (Bonferroni over the looks).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct, structs

from profkit.capture.correctness import Declared
from profkit.core.errors import EnvironmentProblem, TargetFailed, UsageError
from profkit.core.fingerprint import Fingerprint
from profkit.core.lock import gpu_lock
from profkit.core.typed_file import File, Model, row_of
from profkit.core.version import __version__
from profkit.timing import measurement
from profkit.timing.floor import read_floor
from profkit.timing.latency import (
    FEWEST_BLOCKS,
    FEWEST_IN_A_BLOCK,
    analyze_latency,
    compare_with,
)
from profkit.timing.latency_format import Pair, Series
from profkit.timing.latency_view import change, latency_words
from profkit.timing.measurement import Opened, Session, Tell, TimingPlan
from profkit.timing.orders import order
from profkit.timing.results import DEFAULT, Comparison, Thresholds, Verdict
from profkit.timing.verdict import Reason, holm
from profkit.ui import document as doc

# Samples per block: as many as a comparison has, or the fewest of a between-block interval.
_MOST, _FEWEST = DEFAULT.samples, FEWEST_IN_A_BLOCK
_FEWEST_BLOCKS = FEWEST_BLOCKS
LOOKS = (8, 16, 32, 64)
"""The numbers of blocks after which the variants are compared; chosen: the default 8, doubled."""
_VISIBLE = 0.05  # chosen: a ratio of medians that differs by 5% from that of blocks needs a note


class Standing(StrEnum):
    """A variant's state: it reaches the target speedup, falls short of it, or is undecided."""

    reaches = "reaches"
    short = "short"
    open = "open"
    invalid = "invalid"


_STANDING = {
    Standing.reaches: "reaches the target speedup",
    Standing.short: "below the target speedup",
    Standing.open: "undecided",
    Standing.invalid: "invalid measurement",
}


class Outcome(StrEnum):
    """The decision: use another variant, keep the one in use, or measure longer."""

    use = "use"
    keep = "keep"
    undecided = "undecided"
    invalid = "invalid"


class Candidate(Struct, frozen=True):
    """A variant against the one in use, `pair.a`."""

    pair: Pair
    standing: Standing

    @property
    def label(self) -> str:
        return self.pair.b.label

    @property
    def comparison(self) -> Comparison:
        return self.pair.comparison


class Decision(Struct, frozen=True):
    """The outcome, and the candidate that it is about: the one to use, else the fastest of those
    that are not slower; None where all are."""

    outcome: Outcome
    candidate: Candidate | None


def thresholds_of_looks() -> Thresholds:
    """Thresholds for comparisons at all looks; blocks of FEWEST_IN_A_BLOCK samples suffice."""
    level, same = (1 - (1 - level) / len(LOOKS) for level in (DEFAULT.level, DEFAULT.same_level))
    return structs.replace(DEFAULT, level=level, same_level=same, samples=_FEWEST)


def standing(comparison: Comparison, target: float) -> Standing:
    """Whether a comparison's interval lies at or above a target speedup (1.10), or below it."""
    if comparison.verdict is Verdict.INVALID:
        return Standing.invalid
    if comparison.low >= target and comparison.verdict is Verdict.IMPROVED:
        return Standing.reaches
    return Standing.short if comparison.high < target else Standing.open


def decide(candidates: Sequence[Candidate]) -> Decision:
    """The decision that the candidates allow; to use one, only the open ones must not be faster."""
    ranking = _ranked(candidates)
    standings = {candidate.standing for candidate in candidates}
    if Standing.reaches in standings:
        best = next(each for each in ranking if each.standing is Standing.reaches)
        rivals = [each for each in candidates if each.standing is Standing.open]
        faster = any(each.comparison.speedup > best.comparison.speedup for each in rivals)
        return Decision(Outcome.undecided if faster else Outcome.use, best)
    outcome = Outcome.invalid if Standing.invalid in standings else Outcome.keep
    if Standing.open in standings:
        outcome = Outcome.undecided
    leads = ranking and ranking[0].comparison.speedup > 1
    return Decision(outcome, ranking[0] if leads else None)


class TimedCandidate(Model, frozen=True, kw_only=True):
    """A variant against the one in use; `median` in seconds, `p_adjusted` is Holm's over all."""

    variant: str
    standing: Standing
    median: float
    speedup: float
    low: float
    high: float
    level: float
    verdict: Verdict
    reason: Reason
    details: tuple[str, ...]
    p_adjusted: float | None
    blocks: int


class OptimizeFile(File, frozen=True, kw_only=True, tag="profkit.optimize/1"):
    """Which variant to `use`, and the evidence; it contains no samples.

    `chosen` is the variant that the one in use dispatches to, `setting` the code that selects the
    one to use; `median` (of the one in use), `budget` and `seconds` are in seconds.
    """

    profkit: str
    target: Declared
    in_use: str
    chosen: str | None
    target_speedup: float
    outcome: Outcome
    verdict: str
    use: str | None
    setting: str | None
    median: float
    candidates: tuple[TimedCandidate, ...]
    left_out: dict[str, str]
    blocks: int
    budget: float
    seconds: float
    fingerprint: Fingerprint
    fingerprint_sha256: str


class Optimum(Struct, frozen=True):
    """The result: its file, and the candidates behind it, the fastest first."""

    file: OptimizeFile
    in_use: Series
    candidates: tuple[Candidate, ...]


def optimize(
    plan: TimingPlan, in_use: str | None, speedup: float, budget: float, tell: Tell
) -> Optimum:
    """Find the variant to use: one that is `speedup` times as fast as `in_use` (None: the first).

    Raises UsageError for a variant that does not exist or one alone, TargetFailed where the one in
    use is wrong or all others are, EnvironmentProblem where it or none of the others can run here.
    """
    started = time.monotonic()
    (subject,) = plan.subjects
    environment = measurement.environment_of(plan)
    with (
        gpu_lock(measurement.lock_of(plan)),
        measurement.process_of(subject, environment, program=plan.program) as turn,
    ):
        tell("start", "")
        opened = measurement.open_target(turn, subject, plan, tell)
        name = in_use or opened.loaded.names[0]
        ours, others = _sides(opened, name)
        for series in (ours, *others):
            tell("warm up", series.label)
            series.prepare(plan)
        search = _Search(ours, others, plan, speedup, started + budget, tell)
        search.run()
    loaded, variants = opened.loaded, opened.loaded.variants
    decision, reference = search.decision, search.timed(ours)
    best = decision.candidate
    use = best.label if best and decision.outcome is Outcome.use else None
    chosen = variants[name].chosen
    ranking = _ranked(search.candidates.values())
    file = OptimizeFile(
        profkit=__version__,
        target=loaded.target,
        in_use=name,
        chosen=chosen,
        target_speedup=speedup,
        outcome=decision.outcome,
        verdict=_verdict(decision, name, chosen, speedup, len(ours.blocks)),
        use=use,
        setting=variants[use].setting or None if use else None,
        median=reference.summary.median,
        candidates=tuple(map(_timed, ranking)),
        left_out={**opened.left_out, **opened.wrong},
        blocks=len(ours.blocks),
        budget=budget,
        seconds=time.monotonic() - started,
        fingerprint=loaded.used,
        fingerprint_sha256=loaded.fingerprint_sha256,
    )
    return Optimum(file, reference, tuple(ranking))


def _timed(candidate: Candidate) -> TimedCandidate:
    median = candidate.pair.b.summary.median
    return row_of(
        TimedCandidate,
        candidate.comparison,
        variant=candidate.label,
        standing=candidate.standing,
        median=median,
    )


def _ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda candidate: -candidate.comparison.speedup)


def _verdict(
    decision: Decision, in_use: str, chosen: str | None, speedup: float, blocks: int
) -> str:
    """The verdict in a sentence."""
    best = decision.candidate
    match decision.outcome:
        case Outcome.use if best:
            return f"Use {best.label}: {change(best.comparison)} than {in_use}"
        case Outcome.keep:
            already = f" ({in_use} dispatches to {chosen})" if chosen else ""
            words = f"Keep {in_use}{already}: no other variant is {speedup:.2f}x as fast"
            if best and best.standing is Standing.short and best.comparison.low > 1:
                return f"{words}; {best.label} is {change(best.comparison)}"
            return words
        case Outcome.invalid:
            return "Invalid measurement: throttling, or different SM clocks"
    best_words = f", {best.label} looks best" if best else ""
    if blocks >= LOOKS[-1]:
        return f"Undecided{best_words}: too much scatter between {blocks} blocks"
    return f"Undecided{best_words}: give a longer --budget"


def optimize_document(optimum: Optimum) -> doc.Document:
    """The verdict first, then every variant."""
    file, in_use = optimum.file, optimum.in_use
    work = (file.target.work.what if file.target.work else "") or ""
    times = f"{_seconds(file.seconds)} of {_seconds(file.budget)}, {file.blocks} blocks"
    rows = [(in_use.label, latency_words(in_use), "in use", "")]
    differ = False
    for candidate in optimum.candidates:
        other, comparison = candidate.pair.b, candidate.comparison
        standing = _STANDING[candidate.standing]
        rows.append((candidate.label, latency_words(other), change(comparison), standing))
        ratio = in_use.summary.median / other.summary.median
        differ = differ or abs(ratio / comparison.speedup - 1) > _VISIBLE
    note = "Ratios: geometric mean over interleaved blocks; medians: over all samples"
    title = f"Variants (target speedup {file.target_speedup:.2f}x)"
    columns = ("Variant", "Median", f"vs {in_use.label}", "")
    blocks: list[doc.Block] = [
        doc.Heading(f"{file.target.name}  {work}", 1),
        doc.Lines((file.verdict, *([f"  {file.setting}"] if file.setting else []))),
        doc.Table(title, columns, tuple(rows), note if differ else "", words=1),
        *([doc.Lines((), gap=True)] if file.left_out else []),
        *(doc.Note(f"{name}: {why}") for name, why in file.left_out.items()),
        doc.Lines((f"Time    {times}",), gap=True),
    ]
    return doc.Document(f"Variants of {file.target.name}", tuple(blocks))


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 10 else f"{value:.2g} s"


def _sides(opened: Opened, name: str) -> tuple[Session, list[Session]]:
    """The variant in use and the others; raises where there are none to compare."""
    known = opened.loaded.names
    if name not in known:
        raise UsageError(f"no variant {name!r}", f"use {', '.join(known)}")
    if name in opened.wrong:
        raise TargetFailed(f"{name}: {opened.wrong[name]}", "fix it first")
    if name in opened.left_out:
        raise EnvironmentProblem(
            f"{name} can't run here: {opened.left_out[name]}", "name another with --baseline"
        )
    if len(known) < 2:
        raise UsageError(f"{name} is the only variant", "name a target with several")
    others = [series for series in opened.series if series.variant != name]
    if not others:
        kind = EnvironmentProblem if opened.left_out else TargetFailed
        obstacles = {**opened.left_out, **opened.wrong}
        words = "; ".join(f"{label}: {why}" for label, why in obstacles.items())
        raise kind(f"nothing to compare {name} with ({words})", "name variants that can run here")
    return next(series for series in opened.series if series.variant == name), others


class _Search:
    """Interleaved blocks with several looks; variants below the target speedup are dropped."""

    def __init__(
        self,
        ours: Session,
        others: Sequence[Session],
        plan: TimingPlan,
        speedup: float,
        until: float,
        tell: Tell,
    ) -> None:
        self._ours, self._live, self._plan = ours, list(others), plan
        self._speedup, self._until, self._tell = speedup, until, tell
        self._turn = 0
        # As many samples per block as allow the first look after a third of the budget.
        sample = sum(series.sample_seconds for series in (ours, *others))
        left = (until - time.monotonic()) / 3
        self._samples = max(_FEWEST, min(_MOST, int(left / (LOOKS[0] * sample))))
        self.candidates: dict[str, Candidate] = {}
        self.decision = Decision(Outcome.keep, None)

    def run(self) -> None:
        """Measure until every candidate is decided, or the looks or the budget are used up."""
        for look in LOOKS:
            if not self._live or not self._take_blocks(look):
                break
            self._look()
        if self._live and len(self._ours.blocks) >= _FEWEST_BLOCKS:
            self._look()

    def timed(self, series: Session) -> Series:
        """The latency of a series as it is."""
        return analyze_latency(series.latency(self._plan))

    def _take_blocks(self, until: int) -> bool:
        """Take blocks up to a number; False where the budget is spent before."""
        while (index := len(self._ours.blocks)) < until:
            if index >= _FEWEST_BLOCKS and time.monotonic() >= self._until:
                return False
            live = [self._ours, *self._live]
            for place in order(len(live), index):
                self._tell("time", f"block {index + 1}, {live[place].label}")
                live[place].block(self._samples, self._turn)
                self._turn += 1
        return True

    def _look(self) -> None:
        """Compare the live variants; drop those that are decided and not the best."""
        ours = self.timed(self._ours)
        known = read_floor(*ours.latency.measured_with)
        pairs = {label: candidate.pair for label, candidate in self.candidates.items()}
        pairs |= {
            pair.b.label: pair
            for pair in compare_with(
                ours,
                [self.timed(series) for series in self._live],
                thresholds=thresholds_of_looks(),
                floor=known.within_process if known else None,
            )
        }
        corrected = holm([pair.comparison for pair in pairs.values()])
        for pair, comparison in zip(pairs.values(), corrected, strict=True):
            candidate = Candidate(
                structs.replace(pair, comparison=comparison), standing(comparison, self._speedup)
            )
            self.candidates[candidate.label] = candidate
        self.decision = decide(list(self.candidates.values()))
        if self.decision.outcome is not Outcome.undecided:
            self._live = []
        self._live = [series for series in self._live if self._matters(series.label)]

    def _matters(self, label: str) -> bool:
        """Whether a variant may still reach the target and be the best."""
        candidate, best = self.candidates[label], self.decision.candidate
        if candidate.standing is Standing.short:
            return False
        return best is None or candidate.comparison.high >= best.comparison.low
