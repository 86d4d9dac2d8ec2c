"""Which variant of a target to use: interleaved blocks until that is decided or the budget is
spent.

Each is compared with the one in use several times during the measurement. For that the confidence
levels are raised so that all looks together have the error rate of one (Bonferroni over the looks).
"""

import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

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
from profkit.timing.latency_view import latency_words, times_as_fast
from profkit.timing.measurement import Opened, Session, Tell, TimingPlan
from profkit.timing.orders import order
from profkit.timing.results import DEFAULT, Comparison, Thresholds, Verdict
from profkit.timing.verdict import Reason, holm
from profkit.ui import document as doc

LOOKS = (8, 16, 32, 64)
"""The numbers of blocks after which the variants are compared; chosen: the default 8, doubled."""


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


def thresholds_of_looks() -> Thresholds:
    """Thresholds for comparisons at all looks; blocks of FEWEST_IN_A_BLOCK samples suffice."""
    level, same = (1 - (1 - level) / len(LOOKS) for level in (DEFAULT.level, DEFAULT.same_level))
    return structs.replace(DEFAULT, level=level, same_level=same, samples=FEWEST_IN_A_BLOCK)


def standing(comparison: Comparison, target: float) -> Standing:
    """Whether a comparison's interval lies at or above a target speedup (1.10), or below it."""
    if comparison.verdict is Verdict.INVALID:
        return Standing.invalid
    if comparison.low >= target and comparison.verdict is Verdict.IMPROVED:
        return Standing.reaches
    return Standing.short if comparison.high < target else Standing.open


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


Decision: TypeAlias = tuple[Outcome, TimedCandidate | None]
"""The outcome, and the candidate that it is about: the one to use, else the fastest of those that
are not slower; None where all are."""


def decide(candidates: Sequence[TimedCandidate]) -> Decision:
    """The decision that candidates, the fastest first, allow; to use one, only open ones that look
    slower may be left."""
    standings = [candidate.standing for candidate in candidates]
    if Standing.reaches in standings:
        first = standings.index(Standing.reaches)
        outcome = Outcome.undecided if Standing.open in standings[:first] else Outcome.use
        return outcome, candidates[first]
    outcome = Outcome.invalid if Standing.invalid in standings else Outcome.keep
    if Standing.open in standings:
        outcome = Outcome.undecided
    return outcome, next((each for each in candidates[:1] if each.speedup > 1), None)


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
    """The result: its file, and the latencies behind it by variant."""

    file: OptimizeFile
    timed: Mapping[str, Series]


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
        timed, candidates = _searched(ours, others, plan, speedup, started + budget, tell)
    loaded, variants = opened.loaded, opened.loaded.variants
    outcome, best = decide(candidates)
    use = best.variant if best and outcome is Outcome.use else None
    chosen = variants[name].chosen
    file = OptimizeFile(
        profkit=__version__,
        target=loaded.target,
        in_use=name,
        chosen=chosen,
        target_speedup=speedup,
        outcome=outcome,
        verdict=_verdict((outcome, best), name, chosen, speedup, len(ours.blocks)),
        use=use,
        setting=variants[use].setting or None if use else None,
        median=timed[name].summary.median,
        candidates=tuple(candidates),
        left_out={**opened.left_out, **opened.wrong},
        blocks=len(ours.blocks),
        budget=budget,
        seconds=time.monotonic() - started,
        fingerprint=loaded.used,
        fingerprint_sha256=loaded.fingerprint_sha256,
    )
    return Optimum(file, timed)


def _verdict(
    decision: Decision, in_use: str, chosen: str | None, speedup: float, blocks: int
) -> str:
    """The verdict in a sentence."""
    match decision:
        case Outcome.use, TimedCandidate() as best:
            return f"Use {best.variant}: {_change(best)} than {in_use}"
        case Outcome.keep, best:
            already = f" ({in_use} dispatches to {chosen})" if chosen else ""
            words = f"Keep {in_use}{already}: no other variant is {speedup:.2f}x as fast"
            if best and best.standing is Standing.short and best.low > 1:
                return f"{words}; {best.variant} is {_change(best)}"
            return words
        case Outcome.invalid, _:
            return "Invalid measurement: throttling, or different SM clocks"
    best_words = f", {decision[1].variant} looks best" if decision[1] else ""
    if blocks >= LOOKS[-1]:
        return f"Undecided{best_words}: too much scatter between {blocks} blocks"
    return f"Undecided{best_words}: give a longer --budget"


def _change(candidate: TimedCandidate) -> str:
    return times_as_fast(candidate.speedup, candidate.low, candidate.high)


def optimize_document(optimum: Optimum) -> doc.Document:
    """The verdict first, then every variant."""
    file, timed = optimum.file, optimum.timed
    work = (file.target.work.what if file.target.work else "") or ""
    times = f"{_seconds(file.seconds)} of {_seconds(file.budget)}, {file.blocks} blocks"
    rows = [(file.in_use, latency_words(timed[file.in_use]), "in use", "")]
    rows += [
        (each.variant, latency_words(timed[each.variant]), _change(each), _STANDING[each.standing])
        for each in file.candidates
    ]
    note = "Ratios: geometric mean over interleaved blocks; medians: over all samples"
    title = f"Variants (target speedup {file.target_speedup:.2f}x)"
    columns = ("Variant", "Median", f"vs {file.in_use}", "")
    blocks: list[doc.Block] = [
        doc.Heading(f"{file.target.name}  {work}", 1),
        doc.Lines((file.verdict, *([f"  {file.setting}"] if file.setting else []))),
        doc.Table(title, columns, tuple(rows), note, words=1),
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


def _searched(
    ours: Session,
    others: Sequence[Session],
    plan: TimingPlan,
    speedup: float,
    until: float,
    tell: Tell,
) -> tuple[dict[str, Series], list[TimedCandidate]]:
    """Interleaved blocks with several looks, until every candidate is decided, or the looks or the
    budget are used up; latencies by variant, and the candidates, the fastest first.

    Variants that can't reach the target speedup any more, or not be the best, are dropped.
    """
    # As many samples per block as allow the first look after a third of the budget.
    sample = sum(series.sample_seconds for series in (ours, *others))
    left = (until - time.monotonic()) / 3
    samples = max(FEWEST_IN_A_BLOCK, min(DEFAULT.samples, int(left / (LOOKS[0] * sample))))
    turn, live, pairs = 0, list(others), dict[str, Pair]()
    for look in LOOKS:
        for index in range(len(ours.blocks), look):
            if index >= FEWEST_BLOCKS and time.monotonic() >= until:
                break
            sides = [ours, *live]
            for place in order(len(sides), index):
                tell("time", f"block {index + 1}, {sides[place].label}")
                sides[place].block(samples, turn)
                turn += 1
        timed = analyze_latency(ours.latency(plan))
        known = read_floor(*timed.latency.measured_with)
        compared = compare_with(
            timed,
            [analyze_latency(series.latency(plan)) for series in live],
            thresholds=thresholds_of_looks(),
            floor=known.within_process if known else None,
        )
        pairs |= {pair.b.label: pair for pair in compared}
        corrected = holm([pair.comparison for pair in pairs.values()])
        candidates = [
            row_of(
                TimedCandidate,
                comparison,
                variant=pair.b.label,
                standing=standing(comparison, speedup),
                median=pair.b.summary.median,
            )
            for pair, comparison in zip(pairs.values(), corrected, strict=True)
        ]
        candidates.sort(key=lambda candidate: -candidate.speedup)
        outcome, best = decide(candidates)
        least = best.low if best else 0.0
        open_names = {
            candidate.variant
            for candidate in candidates
            if candidate.standing is not Standing.short and candidate.high >= least
        }
        live = [series for series in live if series.label in open_names]
        if outcome is not Outcome.undecided or not live or len(ours.blocks) < look:
            break
    return {timed.label: timed, **{name: pair.b for name, pair in pairs.items()}}, candidates
