"""Switches of a target's kernels: compiled so, checked against the reference, timed interleaved.

Each that applies is timed against the unchanged variant, then the best are combined one by one.
Those that change the rounding of results stand apart: they are combined last.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import filterfalse

from msgspec import structs

from profkit.capture.correctness import Declared
from profkit.core.errors import TargetFailed, UsageError
from profkit.core.fingerprint import Fingerprint
from profkit.core.grouping import grouped
from profkit.core.typed_file import File, Model, T, row_of
from profkit.core.version import __version__
from profkit.recompilation.kernel_switches import PROGRAM, Changes, Offer, fixed_by, further
from profkit.rules.tried import Tried, TriedVerdict
from profkit.timing import measurement
from profkit.timing.loaded import Declaration
from profkit.timing.measurement import Tell, TimingPlan
from profkit.timing.optimum import OptimizeFile, TimedCandidate, optimize
from profkit.timing.results import Verdict
from profkit.timing.turns import Died, Silent
from profkit.ui import document as doc
from profkit.ui.text import number

WORTH = 1.02  # chosen: the smallest gain for which a switch is combined with others
_LEAST = 10.0  # s, chosen: the least time for timing after all was compiled and checked
_SHARE = 0.5  # of the budget for all switches alone, chosen: the rest is for combinations
_PATIENCE, _SLOWER = 30.0, 3.0  # s, and times the check of the unchanged variant, chosen: one hangs
_ERROR = 2.0  # chosen: times the error of the unchanged variant that no change of results has
_MOST_COMBINED = 4  # switches that are tried together, chosen


class TriedSwitch(Model, frozen=True, kw_only=True):
    """A switch, or some together, against the unchanged variant: `seconds` is its median."""

    switches: tuple[str, ...]
    changes: Changes
    keep: tuple[str, ...]
    seconds: float
    speedup: float
    low: float
    high: float
    verdict: Verdict


class KernelTrial(File, frozen=True, kw_only=True, tag="profkit.try_kernels/1"):
    """What switches of a variant's kernels gave.

    `proven` are faster beyond chance, the fastest first, `best` what was reached without a change
    of results, `rounding` with one of rounding; null where there is none. `idle` gave nothing,
    `undecided` may be faster, `failed` are wrong or can't run here, and why. Times in seconds.
    """

    profkit: str
    target: Declared
    variant: str
    seconds: float
    median: float
    best: TriedSwitch | None
    rounding: TriedSwitch | None
    proven: tuple[TriedSwitch, ...]
    idle: tuple[str, ...]
    undecided: tuple[str, ...] = ()
    slower: tuple[str, ...]
    failed: dict[str, str]
    budget: float
    fingerprint: Fingerprint


def try_kernels(
    plan: TimingPlan, variant: str | None, budget: float, tell: Tell, only: Sequence[str] = ()
) -> KernelTrial:
    """Try the switches of a variant's kernels, the target's first without a name.

    Raises UsageError where no switch applies, or none is of `only`.
    """
    started = time.monotonic()
    plan = replace(plan, program=PROGRAM)
    (subject,) = plan.subjects
    environment = measurement.environment_of(plan)
    tell("start", "")
    with measurement.process_of(subject, environment, program=PROGRAM) as turn:
        target = {"path": str(subject.path), "arguments": list(plan.arguments)}
        about = turn.ask("declare", Declaration, **target)
        variant = variant or (about.target.variants or ("",))[0]
        offers = turn.ask(
            "offers", tuple[Offer, ...], **target,
            variant=variant, seed=plan.seed, device=plan.device,
        )  # fmt: skip
    if not offers:
        raise UsageError(
            f"{variant}: no CUDA source or Triton kernel of its own",
            "try switches of a program: profkit try -- python ...",
        )
    by_name = {offer.name: offer for offer in offers if not only or offer.name in only}
    if not by_name:
        known = ", ".join(offer.name for offer in offers)
        raise UsageError("none of these switches applies", f"use {known}")
    trial = _Trial(plan, variant, by_name, tell)
    checking = time.monotonic()
    trial.check(())
    trial.patience = _PATIENCE + _SLOWER * (time.monotonic() - checking)
    sound = trial.sound(by_name)
    until = max(started + budget, time.monotonic() + _LEAST)
    first = trial.decided([f"{variant}+{name}" for name in sound], _within(until))
    candidates = first.candidates
    candidates += () if only else trial.followed(list(filter(_gains, candidates)), until)
    gaining = sorted(filter(_gains, candidates), key=lambda each: -each.speedup)
    best, rounding = trial.combine(gaining, until)
    return KernelTrial(
        profkit=__version__,
        target=about.target,
        variant=variant,
        seconds=time.monotonic() - started,
        median=first.median,
        best=best,
        rounding=rounding,
        proven=tuple(trial.tried(c) for c in gaining if trial.name(c.variant) not in trial.failed),
        idle=trial.names(c for c in candidates if 1 <= c.high <= WORTH and c not in gaining),
        undecided=trial.names(filter(_may_gain, candidates)),
        slower=trial.names(each for each in candidates if each.high < 1),
        failed=trial.failed | {trial.name(k): v for k, v in first.left_out.items()},
        budget=budget,
        fingerprint=first.fingerprint,
    )


def tried_rows(trial: KernelTrial) -> tuple[Tried, ...]:
    """What was tried on the kernels, with what was reached together."""
    proven = {row.switches: row for row in (*trial.proven, trial.best, trial.rounding) if row}
    rows = []
    for row in proven.values():
        reason = "" if row.changes == "nothing" else f"other {row.changes}"
        rows.append(row_of(Tried, row, verdict="proven", reason=reason))
    for verdict, names in _unproven(trial):
        rows += [Tried(verdict=verdict, switches=tuple(name.split("+"))) for name in names]
    failed = trial.failed.items()
    rows += [Tried(verdict="failed", switches=tuple(k.split("+")), reason=v) for k, v in failed]
    return tuple(rows)


def tried_by_category(trial: KernelTrial) -> Mapping[str, Sequence[Tried]]:
    """What was tried by the category of findings that its switches are a fix of."""
    alone = [row for row in tried_rows(trial) if len(row.switches) == 1]
    return grouped((category, row) for row in alone for category in fixed_by(row.switches))


def _unproven(trial: KernelTrial) -> tuple[tuple[TriedVerdict, tuple[str, ...]], ...]:
    return ("no gain", trial.idle), ("undecided", trial.undecided), ("slower", trial.slower)


def _within(until: float) -> float:
    return until - (until - time.monotonic()) * (1 - _SHARE)


def _gains(candidate: TimedCandidate) -> bool:
    return candidate.verdict is Verdict.IMPROVED and candidate.low > 1


def _may_gain(candidate: TimedCandidate) -> bool:
    return not _gains(candidate) and candidate.high > WORTH


@dataclass(eq=False)
class _Trial:
    """The trial of one variant."""

    plan: TimingPlan
    variant: str
    offers: dict[str, Offer]
    tell: Tell
    patience: float | None = None
    failed: dict[str, str] = field(default_factory=dict)

    def race(self, names: Sequence[str], budget: float, *, check: bool = False) -> OptimizeFile:
        """Variants with switches against the unchanged one, which is the first."""
        (subject,) = self.plan.subjects
        plan = replace(self.plan, subjects=(replace(subject, variants=tuple(names)),), check=check)
        return optimize(plan, self.variant, WORTH, budget, self.tell).file

    def decided(self, variants: Sequence[str], until: float) -> OptimizeFile:
        """Variants against the unchanged one. A race ends with the fastest known: those that it
        left open race again, `until` a time."""
        file = self.race([self.variant, *variants], max(until - time.monotonic(), _LEAST / 2))
        still = [each.variant for each in filter(_may_gain, file.candidates)]
        if 0 < len(still) < len(variants) and until - time.monotonic() > _LEAST / 2:
            rows = *filterfalse(_may_gain, file.candidates), *self.decided(still, until).candidates
            file = structs.replace(file, candidates=rows)
        return file

    def sound(self, names: Iterable[str]) -> Sequence[str]:
        """The switches with which the variant is right. One that hangs or takes the GPU from its
        process is left out, and the others are checked again."""
        left = list(names)
        while left:
            try:
                return self.check(left)
            except Died as error:
                culprit = self.name(error.doing)
                if culprit not in left:
                    raise
                reason = "illegal access, or another error that ends the process"
                self.failed[culprit] = "it hangs" if isinstance(error, Silent) else reason
                left.remove(culprit)
        return left

    def check(self, names: Sequence[str]) -> Sequence[str]:
        """Those of the switches with which the variant is right; raises where it is not without."""
        (subject,) = self.plan.subjects
        labels = {f"{self.variant}+{name}": name for name in names}
        subject = replace(subject, variants=(self.variant, *labels))
        environment = measurement.environment_of(self.plan)
        with measurement.process_of(subject, environment, self.patience, PROGRAM) as turn:
            opened = measurement.open_target(turn, subject, self.plan, self.tell)
        wrong = {**opened.wrong, **opened.left_out}
        if self.variant in wrong:
            raise TargetFailed(f"{self.variant}: {wrong[self.variant]}", "fix it first")
        self.failed |= {name: wrong[label] for label, name in labels.items() if label in wrong}
        errors = {check.name: check.error or 0.0 for check in opened.loaded.checks}
        for label, name in labels.items():
            if name in self.offers and errors.get(label, 0.0) > _ERROR * errors[self.variant]:
                self.offers[name] = structs.replace(self.offers[name], changes="rounding")
        return [name for label, name in labels.items() if label not in wrong]

    def followed(
        self, gaining: Sequence[TimedCandidate], until: float
    ) -> tuple[TimedCandidate, ...]:
        """Values of constants beyond those that gain."""
        names = [name for each in self._best(gaining) for name in self.switches(each.variant)]
        beyond = {offer.name: offer for name in names for offer in further(name, self.offers)}
        self.offers |= beyond
        names = [f"{self.variant}+{name}" for name in self.sound(beyond)]
        return self.decided(names, _within(until)).candidates if names else ()

    def combine(
        self, gaining: Sequence[TimedCandidate], until: float
    ) -> tuple[TriedSwitch | None, TriedSwitch | None]:
        """The best without a change of results, and with one of rounding: to the fastest alone each
        switch is added as long as that makes it faster."""
        same = [each for each in gaining if self._changes(self.switches(each.variant)) == "nothing"]
        best = self._chosen(same, until)
        others = [each for each in gaining if each not in same]
        both = sorted([*others, *filter(None, [best])], key=lambda each: -each.speedup)
        rounded = self._chosen(both, until) if others else None
        if rounded and best and rounded.variant == best.variant:
            rounded = None
        return self.tried(best) if best else None, self.tried(rounded) if rounded else None

    def _chosen(self, rows: Sequence[TimedCandidate], until: float) -> TimedCandidate | None:
        """The fastest with what is added, checked and timed again: its first time was chosen, too,
        and what is wrong by chance may have been right; the next one where it was."""
        chosen = self._added(rows, until)
        if chosen is None:
            return None
        try:
            again = self.race([self.variant, chosen.variant], _LEAST / 2, check=True)
        except TargetFailed as error:
            self.failed[self.name(chosen.variant)] = f"when run again: {error.message}"
            return self._chosen(rows[1:], until)
        return next(filter(_gains, again.candidates), None)

    def _added(self, gaining: Sequence[TimedCandidate], until: float) -> TimedCandidate | None:
        rows = self._best(gaining)[:_MOST_COMBINED]
        if not rows:
            return None
        best = rows[0]
        for other in rows[1:]:
            left = until - time.monotonic()
            is_alike = _kind(self.switches(best.variant)) & _kind(self.switches(other.variant))
            if left <= 0 or is_alike:
                continue
            together = "+".join([best.variant, *self.switches(other.variant)])
            if not self.sound([self.name(together)]):
                continue
            names = [self.variant, best.variant, together]
            known = {each.variant: each for each in self.race(names, left / 2).candidates}
            mine, both = known.get(best.variant, best), known.get(together)
            best = both if both and _gains(both) and both.low > mine.speedup else mine
        return best

    def _best(self, gaining: Sequence[TimedCandidate]) -> list[TimedCandidate]:
        """The fastest value of each switch, of rows with the fastest first."""
        return _best_of_each((self.switches(each.variant), each) for each in gaining)

    def name(self, variant: str) -> str:
        """The switches in a variant's name."""
        return variant[len(self.variant) + 1 :]

    def switches(self, variant: str) -> tuple[str, ...]:
        return tuple(self.name(variant).split("+"))

    def names(self, candidates: Iterable[TimedCandidate]) -> tuple[str, ...]:
        return tuple(self.name(each.variant) for each in candidates)

    def _changes(self, switches: Iterable[str]) -> Changes:
        rounding = any(self.offers[name].changes == "rounding" for name in switches)
        return "rounding" if rounding else "nothing"

    def tried(self, candidate: TimedCandidate) -> TriedSwitch:
        """A candidate with what it changes and how to keep it."""
        switches = self.switches(candidate.variant)
        return row_of(
            TriedSwitch,
            candidate,
            switches=switches,
            changes=self._changes(switches),
            keep=tuple(self.offers[name].keep for name in switches),
            seconds=candidate.median,
        )


def kernel_document(trial: KernelTrial) -> doc.Document:
    """What is proven and how to keep it, then what did nothing, what is slower, what failed."""
    together = [each for each in (trial.best, trial.rounding) if each]
    best = _best_of_each((row.switches, row) for row in trial.proven)
    rows = [*together, *(row for row in best if row not in together)]
    table = tuple(
        (
            " + ".join(row.switches),
            number(row.seconds, "s"),
            _factor(row),
            "" if row.changes == "nothing" else row.changes,
        )
        for row in rows
    )
    title = f"{trial.target.name}: {trial.variant}, {number(trial.median, 's')}"
    columns = ("Switch", "Median", "Speedup", "Changes")
    blocks: list[doc.Block] = [
        doc.Heading(title, 1),
        doc.Lines(tuple(_verdict(trial))),
        *([doc.Table("Proven", columns, table, "", words=1)] if table else []),
        doc.Lines(tuple(_keeping(rows)), gap=True),
        doc.Lines(tuple(_rest(trial, rows)), gap=True),
    ]
    return doc.Document(f"Switches of {trial.target.name}", tuple(blocks))


def _keeping(rows: Iterable[TriedSwitch]) -> Iterator[str]:
    """What to write to keep each, once."""
    pairs = (pair for row in rows for pair in zip(row.keep, row.switches, strict=True))
    for text, names in grouped(pairs).items():
        yield f"To keep {' and '.join(sorted(set(names)))}: {text}"


def _kind(switches: Iterable[str]) -> frozenset[str]:
    """What switches set, without the values."""
    return frozenset(name.rpartition("-")[0] or name for name in switches)


def _best_of_each(rows: Iterable[tuple[Iterable[str], T]]) -> list[T]:
    """The first value of each switch."""
    by_kind = grouped((_kind(switches), each) for switches, each in rows)
    return [first for first, *_ in by_kind.values()]


def _verdict(trial: KernelTrial) -> Iterator[str]:
    for row, results in ((trial.best, "same results"), (trial.rounding, "other rounding")):
        if row:
            yield f"Proven {_factor(row)}, {results}: {' + '.join(row.switches)}"
    if not (trial.best or trial.rounding):
        yield "No switch is faster beyond chance"


def _rest(trial: KernelTrial, shown: Iterable[TriedSwitch]) -> Iterator[str]:
    kinds = {_kind(each.switches) for each in shown}
    less = [each for each in trial.proven if each not in shown and _kind(each.switches) in kinds]
    if less:
        named = (f"{'+'.join(each.switches)} {each.speedup:.2f}x" for each in less)
        yield f"Less: {', '.join(named)}"
    for verdict, names in _unproven(trial):
        if names:
            yield f"{verdict.capitalize()}: {', '.join(names)}"
    refused = grouped((_kind_of_reason(why), name) for name, why in trial.failed.items())
    for why, several in refused.items():
        yield f"Refused ({why}): {', '.join(several)}"
    yield f"Time: {trial.seconds:.0f} s"


def _kind_of_reason(why: str) -> str:
    is_right = not ("relative error" in why or "not finite" in why)
    return why.rpartition(": ")[2] if is_right else "wrong results"


def _factor(tried: TriedSwitch) -> str:
    return f"{tried.speedup:.2f}x [{tried.low:.2f}, {tried.high:.2f}]"
