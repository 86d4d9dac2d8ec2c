"""The engine: rules over a report's kernels or a timeline, findings with bounded estimates.

Times here are shares of a kernel's present time. With f_r the floor of resource r (report.floors)
and k_r the share of its use that remains after a fix, the time after the fix is at least
max(f_r · k_r). The exposed time above the floors is assumed to shrink by the same share as the
highest floor, unless the rule has a formula for the remaining time; the result is no nearer to the
next floor than kernels usually come (floors.USUAL). Estimates are not additive. Derivation and
limits: docs/reference/methods/estimates.md.

The time of a timeline, from the first GPU work to the end of the last, is a sum of parts
(timeline.region). A rule has the share of each part that remains at best after a fix, and by `time`
the likely remaining share of the whole; neither is below the time of the other parts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from profkit.core.columns import Column, both
from profkit.core.expression import Expression
from profkit.core.grouping import grouped
from profkit.core.typed_file import part
from profkit.report.checks import NOT_COLLECTED, NOT_HERE, UNDEFINED
from profkit.report.floors import ESSENTIAL, LAUNCH, SHORTEST, USUAL, WORTH, shares
from profkit.report.resources import RESOURCES
from profkit.report.summary import Group, LaunchSummary, ReportSummary
from profkit.rules.calibration import shipped_calibration
from profkit.rules.chain import Chain, chains
from profkit.rules.finding import (
    Estimate,
    Evidence,
    Finding,
    UnevaluatedRule,
    evidence,
    unevaluated,
)
from profkit.rules.headroom import Headroom, headroom
from profkit.rules.memory import shipped_memory
from profkit.rules.rule_file import CONTEXT, LATENCY, Rule, is_stall
from profkit.rules.samples import NOT_SAMPLED, SAMPLED, SAMPLED_FROM, Sampled
from profkit.rules.standing import remember

AT_THE_ROOF = "at_the_roof"
NOMINAL = ("dram_bandwidth", "data_read_again")
"""Rules whose estimate is for one byte in twelve; without one, nearer to DRAM's peak than usual."""
_PICKED = "kernel-name"  # ncu's option for some kernels: others ran between their launches
_SPANS = {"timeline": "gpu_span", "application": "step_time"}
_SUPPOSED = 0.5  # chosen: the share that a fix leaves of what was not recorded
_LEAST = 1e-3  # share of the time that is left at least, chosen: no estimate exceeds 1000x
_BEYOND = 2.0
"""Times the replayed factor, chosen: recorded changes of programs gained at most 1.6 times it."""
_NOT_ATTRIBUTED = "too few stalls could be attributed to a load"

Row = TypeVar("Row", bound=Group | None)
Sampling = Callable[[LaunchSummary], Sampled | str]
"""The quantities from a launch's warp samples, or why there are none."""


@dataclass(frozen=True)
class Condition:
    """A rule's condition on a kernel; `holds` is None where `missing` quantities leave it open, for
    a reason each."""

    text: str
    holds: bool | None
    compared: tuple[Evidence, ...]
    missing: Mapping[str, str]


@dataclass(frozen=True)
class Trial:
    """The evaluation of a rule on a kernel or a timeline, fired (`finding`) or not.

    `now` and `after` are the floors before and after the fix as shares of the kernel's present
    time; `stalls` are likewise shares of the warps' latency, `waited` is the share of the time that
    is left by them alone, `time` by the rule's own formula; NaN where there are none.
    """

    group: Group | None
    conditions: tuple[Condition, ...]
    finding: Finding | None
    now: Mapping[str, float]
    after: Mapping[str, float]
    time: float
    stalls: Mapping[str, tuple[float, float]]
    waited: float


@dataclass(frozen=True)
class Diagnosis:
    """Findings by their standing, most time saved first, those without an estimate last.

    `unknown` are the rules that could not be evaluated for some kernel, with what they lack.
    """

    findings: tuple[Finding, ...]
    unknown: Mapping[str, UnevaluatedRule]
    kernels: int
    headrooms: Mapping[int, Headroom] = field(default_factory=dict)


def diagnose(
    report: ReportSummary,
    rules: Iterable[Rule],
    sampling: Sampling = lambda _: NOT_SAMPLED,
) -> Diagnosis:
    """Every rule on the typical launch of every kernel of a report that has a duration.

    `sampling` is asked of a kernel only where all else that a rule looks for holds. Of one category
    on one kernel the largest saving counts; those below WORTH are left out.
    """
    table = _Kernels(report, sampling)
    findings, unknown = table.diagnose(rule for rule in rules if rule.about == "kernel")
    largest: dict[tuple[str, int], Finding] = {}
    for finding in findings:
        if finding.is_negligible and finding.rule.name in NOMINAL:
            finding = replace(finding, estimate=None)
        key = finding.rule.category, id(finding.group)
        if not finding.is_negligible:
            largest[key] = _larger(largest[key], finding) if key in largest else finding
    headrooms = table.headrooms(findings)
    capped = (
        _within(finding, headrooms[finding.launch].factor, report.total)
        for finding in largest.values()
        if finding.launch is not None
    )
    remembered = remember(filter(None, capped), shipped_memory(), shipped_calibration())
    return Diagnosis(tuple(sorted(remembered, key=_order)), unknown, len(table.subjects), headrooms)


def _larger(known: Finding, other: Finding) -> Finding:
    """Of two findings of a category on a kernel the one that saves more, of one that is only
    possible the other, or the one that comes first: with the larger estimate."""
    larger = max(known, other, key=lambda finding: (not finding.possible, finding.saved))
    first = next((each for each in (known, other) if each.rule.first), larger)
    if first is larger:
        return first
    facts = {each.quantity: each for each in (*first.evidence, *larger.evidence)}.values()
    return replace(first, evidence=tuple(facts), **part(larger, "estimate", "lacking", "bound"))


def _within(finding: Finding, most: float, total: float) -> Finding | None:
    """A finding within its kernel's headroom, `most`; None where that is too little to report,
    without an estimate where the headroom keeps the bytes that its fix avoids. `total` is the
    report's time."""
    estimate = finding.estimate
    if not estimate or finding.rule.spans == "chain":
        return finding
    likely = min(estimate.likely, most)
    if likely < WORTH:
        return replace(finding, estimate=None) if finding.rule.name in NOMINAL else None
    saved = estimate.saved * (1 - 1 / likely) / (1 - 1 / estimate.likely)
    run = total / (total - saved)
    return replace(
        finding, estimate=replace(estimate, likely=likely, most=most, run=run, saved=saved)
    )


def explain(
    report: ReportSummary, rule: Rule, sampling: Sampling = lambda _: NOT_SAMPLED
) -> tuple[Trial, ...]:
    """A rule tried on every kernel of a report that has a duration, most time first."""
    table = _Kernels(report, sampling)
    return tuple(table.trial(rule, index) for index in range(len(table.subjects)))


def diagnose_timeline(quantities: Mapping[str, float], rules: Iterable[Rule]) -> Diagnosis:
    """Every rule about timelines on the quantities of one; nothing where it has none."""
    about_timeline = [rule for rule in rules if rule.about == "timeline" and quantities]
    findings, unknown = _Timeline(quantities).diagnose(about_timeline)
    reported = (finding for finding in findings if not finding.is_negligible)
    return Diagnosis(tuple(sorted(reported, key=lambda finding: -finding.saved)), unknown, 0)


def diagnose_application(
    quantities: Mapping[str, float], rules: Iterable[Rule]
) -> tuple[Finding, ...]:
    """What rules about applications find in the quantities of one's step."""
    about_application = [rule for rule in rules if rule.about == "application" and quantities]
    findings, _ = _Timeline(quantities).diagnose(about_application)
    return tuple(finding for finding in findings if finding.estimate and not finding.is_negligible)


def explain_timeline(quantities: Mapping[str, float], rule: Rule) -> Trial:
    """A rule about timelines or applications tried on the quantities of one."""
    return _Timeline(quantities).trial(rule, 0)


def _order(finding: Finding) -> tuple[float, bool, bool, str]:
    """By the time that its standing saves; then what a fix would relieve though another floor holds
    the kernel, what only informs, and last that a kernel is at its roof."""
    rule = finding.rule
    saved = finding.standing.saved if finding.standing else finding.saved
    return -saved, not rule.formulas, rule.category == AT_THE_ROOF, rule.name


class _Table(ABC, Generic[Row]):
    """Quantities as columns of one value a kernel (or timeline), and what rules make of them."""

    def __init__(self, subjects: Sequence[Row]) -> None:
        self.subjects = subjects
        self._columns: dict[str, Column] = {}
        self._values: dict[str, Column] = {}

    @cached_property
    def floors(self) -> Mapping[str, Column]:
        return {}

    def diagnose(self, rules: Iterable[Rule]) -> tuple[list[Finding], dict[str, UnevaluatedRule]]:
        """The findings of all rules, and what keeps others from being evaluated.

        Conditions say what a rule is about, not how much that takes: without an estimate that the
        rule has formulas for, whether there is anything to find is not known. What is known may
        bound it even so: such a finding is `lacking` what was not recorded.
        """
        findings: list[Finding] = []
        unknown: dict[str, UnevaluatedRule] = {}
        for rule in rules:
            undecided = []
            for index, held in enumerate(self._held(rule)):
                if held == 0:
                    continue
                finding = self._finding(rule, index, decided=held == 1)
                if math.isnan(held) or finding.lacking:
                    undecided.append(index)
                if (held == 1 and not finding.lacking) or finding.estimate:
                    findings.append(finding)
            if undecided:
                unknown[rule.name] = self._lack(rule, undecided)
        return findings, unknown

    def trial(self, rule: Rule, index: int) -> Trial:
        """What the rule makes of the subject at this index."""
        held = self._held(rule)
        finding = self._finding(rule, index, decided=bool(held[index] == 1))
        return Trial(
            self.subjects[index],
            tuple(self._condition(condition, rule, index) for condition in rule.when),
            finding if held[index] == 1 or (held[index] != 0 and finding.estimate) else None,
            {name: float(floor[index]) for name, floor in self.floors.items()},
            {name: float(floor[index]) for name, floor in self._relieved(rule).items()},
            self._at(rule.time, rule, index) if rule.time else math.nan,
            stalls := self._stalls(rule, index),
            self._waited(rule, index) if stalls else math.nan,
        )

    def _stalls(self, rule: Rule, index: int) -> Mapping[str, tuple[float, float]]:  # noqa: ARG002
        """The stalls that a fix relieves, before and after it, as shares of the warps' latency."""
        return {}

    def _waited(self, rule: Rule, index: int) -> float:  # noqa: ARG002
        """The share of the time that the fix leaves by the stalls that it takes away."""
        return 1.0

    def _held(self, rule: Rule) -> Column:
        """1 where all conditions hold, 0 where one does not, NaN where it is unknown.

        Looks at samples by instruction only where what the counters tell holds.
        """
        held = np.ones(len(self.subjects))
        for on_samples in (False, True):
            if on_samples:
                self._sample(rule, held)
            for condition in rule.when:
                if _on_samples(condition) == on_samples:
                    held = both(held, self._value(condition, rule))
        return held

    def _sample(self, rule: Rule, held: Column) -> None:
        """Look up what the rule reads of the samples by instruction, where it may still fire."""

    def _finding(self, rule: Rule, index: int, *, decided: bool = True) -> Finding:
        compared = [each for when in rule.when for each in self._compared(when, rule, index)]
        shown = [each for pair in compared if (each := _shown(*pair))]
        quantities = {each.quantity for each in shown}
        for name in rule.evidence:
            value = self._known(name, rule, index)
            if name not in quantities and not math.isnan(value):
                shown.append(evidence(name, value))
        lacking = self._lacking(rule, index) if rule.formulas else ()
        if not decided:
            lacking = tuple(dict.fromkeys([*self._open(rule, index), *lacking]))
        estimate = None
        if rule.formulas:
            estimate = (self._supposed if lacking else self._estimate)(rule, index)
        if lacking and estimate:
            shown.extend(self._relieved_most(rule, index, quantities))
        held = tuple(each for each in shown if each.holds)
        is_bounded = lacking or not rule.divides
        bound = self._at(rule.bound, rule, index) if rule.bound and is_bounded else math.nan
        return Finding(
            rule, self.subjects[index], held, estimate, lacking, bound, possible=not decided
        )

    def _relieved_most(self, rule: Rule, index: int, but: Collection[str]) -> Iterator[Evidence]:
        """The use of the busiest resource that a fix relieves, unless it is one of some."""
        used = {
            name: float(self.floors[name][index]) for name in rule.relieves if name in self.floors
        }
        name = max(used, key=used.__getitem__, default="")
        if name and name not in {*but, *rule.evidence}:
            yield evidence(name, self._known(name, rule, index))

    def _condition(self, condition: Expression, rule: Rule, index: int) -> Condition:
        """A condition on a subject, with what it compares."""
        held = self._at(condition, rule, index)
        compared = tuple(each for each, _ in self._compared(condition, rule, index))
        absent = self._absent(condition, rule, index)
        missing = {name: self._why_missing(name, index) for name in absent}
        holds = None if math.isnan(held) else bool(held)
        return Condition(condition.text, holds, compared, missing)

    def _compared(
        self, condition: Expression, rule: Rule, index: int
    ) -> Iterator[tuple[Evidence, tuple[str, ...]]]:
        """What a condition compares, and with which other quantities."""
        for each in condition.comparisons:
            value = self._at(each.left, rule, index) if each.left.names else math.nan
            if not (each.is_guard or math.isnan(value)):
                threshold = self._at(each.right, rule, index)
                shown = evidence(each.left.text, value, each.sign, threshold)
                yield shown, each.right.names

    def _lack(self, rule: Rule, indices: Sequence[int]) -> UnevaluatedRule:
        """What leaves the rule open on these subjects: conditions, or else the estimate."""
        reasons = {
            name: self._why_missing(name, index)
            for index in indices
            for name in self._open(rule, index) or self._lacking(rule, index)
        }
        kernels = sum(self.subjects[index] is not None for index in indices)
        return unevaluated(rule.name, kernels, reasons)

    def _open(self, rule: Rule, index: int) -> tuple[str, ...]:
        """What the conditions that are not decided lack."""
        unknown = [each for each in rule.when if math.isnan(self._at(each, rule, index))]
        return self._needed(unknown, rule, index)

    def _needed(self, unknown: Iterable[Expression], rule: Rule, index: int) -> tuple[str, ...]:
        """The names that leave expressions without a value."""
        names = (self._absent(each, rule, index) or each.names for each in unknown)
        return tuple(dict.fromkeys(name for group in names for name in group))

    def _absent(self, expression: Expression, rule: Rule, index: int) -> tuple[str, ...]:
        """The names in an expression that have no value for a subject."""
        return tuple(name for name in expression.names if np.isnan(self._column(name, rule)[index]))

    def _why_missing(self, name: str, index: int) -> str:  # noqa: ARG002
        return UNDEFINED

    def _lacking(self, rule: Rule, index: int) -> tuple[str, ...]:
        """What an estimate rests on and is not known: of what the fix relieves, as far as the
        kernel is known to use it, or all of that where none is known."""
        use = {name: self._use(name)[index] for name in rule.relieves}
        used = [name for name, share in use.items() if share > 0]
        formulas = [*(rule.relieves[name] for name in used), *rule.takes.values()]
        formulas += [rule.time] if rule.time else []
        unknown = [each for each in formulas if math.isnan(self._at(each, rule, index))]
        blind = () if formulas or not all(map(math.isnan, use.values())) else tuple(use)
        return (*blind, *self._needed(unknown, rule, index))

    def _use(self, name: str) -> Column:  # noqa: ARG002
        """How much of a resource, or of what else a fix relieves, each subject uses."""
        return np.ones(len(self.subjects))

    @abstractmethod
    def _estimate(self, rule: Rule, index: int) -> Estimate: ...

    def _supposed(self, rule: Rule, index: int) -> Estimate | None:  # noqa: ARG002
        """What is known of the effect of a fix although some of it was not recorded."""
        return None

    def _relieved(self, rule: Rule, unknown: float = 1.0) -> Mapping[str, Column]:
        """The floors after the fix, which leaves a share of `unknown` of what is not known."""
        after = dict(self.floors)
        for name in rule.relieves.keys() & after.keys():
            left = np.nan_to_num(self._value(rule.relieves[name], rule), nan=unknown)
            after[name] = after[name] * np.clip(left, 0.0, 1.0)
        for name in rule.takes.keys() & after.keys():
            after[name] = after[name] + np.nan_to_num(self._value(rule.takes[name], rule))
        return after

    def _known(self, name: str, rule: Rule, index: int) -> float:
        return float(self._column(name, rule)[index])

    def _at(self, expression: Expression, rule: Rule, index: int) -> float:
        return float(self._value(expression, rule)[index])

    def _value(self, expression: Expression, rule: Rule) -> Column:
        key = _key(expression.text, rule) if _on_samples(expression) else expression.text
        if key not in self._values:
            columns = {name: self._column(name, rule) for name in expression.names}
            value = np.broadcast_to(expression(columns), len(self.subjects))
            self._values[key] = value.astype(np.float64)
        return self._values[key]

    def _column(self, name: str, rule: Rule | None = None) -> Column:
        key = _key(name, rule) if name in SAMPLED else name
        if key not in self._columns:
            values = [self._recorded(name, index) for index in range(len(self.subjects))]
            self._columns[key] = np.array(values, dtype=np.float64)
        return self._columns[key]

    @abstractmethod
    def _recorded(self, name: str, index: int) -> float: ...


class _Timeline(_Table[None]):
    """The quantities of one timeline (timeline.region), or of an application's step."""

    def __init__(self, quantities: Mapping[str, float]) -> None:
        super().__init__((None,))
        self._quantities = quantities

    def _recorded(self, name: str, _: int) -> float:
        return self._quantities.get(name, math.nan)

    def _known(self, name: str, _: Rule, index: int) -> float:
        return self._recorded(name, index)  # a count stays an integer

    def _estimate(self, rule: Rule, index: int) -> Estimate:
        relieved = sum(
            self._quantities[name] * (1 - min(max(self._at(left, rule, index), 0.0), 1.0))
            for name, left in rule.relieves.items()
        )
        best = min(max(1 - relieved, _LEAST), 1.0)
        left = self._at(rule.time, rule, index) if rule.time else best
        likely = min(max(left, best), 1.0)
        lowest = (1 + likely) / 2
        if rule.reached:
            low, usual, high = rule.reached
            kept = min(self._quantities.get("gpu_busy_share", 0.0), best) if rule.idle else 0.0
            if rule.bound and not math.isnan(most := self._at(rule.bound, rule, index)):
                kept = max(kept, 1 / most)
            lowest, likely, best = left**low, likely**usual, max(best**high, best / _BEYOND)
            lowest, likely, best = (max(each, kept) for each in (lowest, likely, best))
        span = self._quantities[_SPANS[rule.about]]
        return Estimate(
            likely=1 / likely,
            low=1 / lowest,
            high=1 / best,
            bounded_by="everything else" if rule.about == "timeline" else "",
            bound_seconds=best * span,
            run=1 / likely,
            saved=span * (1 - likely),
        )


class _Kernels(_Table[Group]):
    """Catalog quantities of the typical launch of each kernel of a report."""

    def __init__(self, report: ReportSummary, sampling: Sampling) -> None:
        super().__init__([group for group in report.groups if group.count > group.failed])
        self._sampling = sampling
        self._total = report.total
        self._launches = report.launches
        self._is_picked = _PICKED in report.session.options
        self._unsampled: dict[int, str] = {}

    @cached_property
    def floors(self) -> Mapping[str, Column]:
        floors = shares({name: self._column(name) for name in RESOURCES})
        return {name: np.nan_to_num(floor) for name, floor in floors.items()}

    def _sample(self, rule: Rule, held: Column) -> None:
        for name in SAMPLED.keys() & set(rule.names):
            key = _key(name, rule)
            if key not in self._columns:
                column = self._columns[key] = np.full(len(self.subjects), np.nan)
                for index in np.flatnonzero(held == 1).tolist():
                    sampled = self._sampling(self.subjects[index].typical)
                    if isinstance(sampled, str):
                        self._unsampled[index] = sampled
                    else:
                        column[index] = sampled.get(name, rule.match)

    def _why_missing(self, name: str, index: int) -> str:
        typical = self.subjects[index].typical
        if name in SAMPLED:
            unread = self._unsampled.get(index, _NOT_ATTRIBUTED)
            return typical.why_missing(SAMPLED_FROM) or unread
        return typical.why_missing(name) or UNDEFINED

    def _use(self, name: str) -> Column:
        return self._column(name)

    def _lacking(self, rule: Rule, index: int) -> tuple[str, ...]:
        """Also the resources that every kernel needs: without one a limit may be passed unseen; and
        the issue rate, which no launch has whose time includes work of ncu's."""
        launch = self.subjects[index].typical
        own = [name for name in ESSENTIAL if launch.why_missing(name) not in {"", NOT_HERE}]
        own += [] if launch.is_timed else ["issue_busy"]
        return tuple(dict.fromkeys([*super()._lacking(rule, index), *own]))

    def _estimate(self, rule: Rule, index: int) -> Estimate:
        group = self.subjects[index]
        bound, bounding, most = self._limits(rule, index)
        launches = tuple(launch for launch in group.launches if not launch.failed)
        is_chain = rule.spans == "chain"
        if is_chain:
            chains = self._chains[index]
            members = [each for chain in chains for each in chain.launches]
            bound = sum(chain.least for chain in chains) / sum(chain.duration for chain in chains)
            most = 1 / max(bound, _LEAST)
            launches = tuple(sorted(members, key=lambda launch: launch.index))
            left = self._left(rule, index, 0.0)  # the chain's formula has the usual rate of DRAM
            bound = min(bound, left)
        else:
            left = self._left(rule, index, bound)
            if (
                rule.bound
                and not rule.divides
                and (factor := self._at(rule.bound, rule, index)) > 1
            ):
                left = max(left, 1 / factor)
        avoided = self._avoided(rule, index)
        return replace(
            self._estimated(group, left, most, launches),
            bounded_by="" if is_chain or most > 2 / left else RESOURCES.get(bounding, bounding),
            without_stalls=1 / (1 - avoided if avoided else left),
        )

    def _estimated(
        self, group: Group, left: float, most: float, launches: tuple[LaunchSummary, ...]
    ) -> Estimate:
        """The estimate for these launches of a kernel where a share of their time is left, and the
        next limit allows a factor of `most`."""
        saved = sum(launch.duration for launch in launches) * (1 - left)
        return Estimate(
            likely=1 / left,
            low=1.0,
            high=most,
            most=most,
            limit=most,
            bounded_by="",
            bound_seconds=group.typical.duration / most,
            run=self._total / (self._total - saved),
            saved=saved,
            launches=launches,
            without_stalls=1 / left,
        )

    def _limits(self, rule: Rule, index: int, unknown: float = 1.0) -> tuple[float, str, float]:
        """The highest floor after a fix; the next limit, a resource that the fix does not relieve,
        and the factor that it allows."""
        columns = self._relieved(rule, unknown)
        after = {name: float(column[index]) for name, column in columns.items()}
        after[LAUNCH] = SHORTEST / self.subjects[index].typical.duration
        limits = {name: share for name, share in after.items() if name not in rule.relieves}
        bounding = max(limits, key=limits.__getitem__)
        most = 1 / min(max(limits[bounding], _LEAST), 1.0)
        return min(max(after.values()), 1.0), bounding, most

    def _supposed(self, rule: Rule, index: int) -> Estimate | None:
        """From 1 to what the next limit allows, likely what half of the unknown would give."""
        group = self.subjects[index]
        missing = {*self._open(rule, index), *self._lacking(rule, index)}
        if not all(group.typical.why_missing(name).startswith(NOT_COLLECTED) for name in missing):
            return None
        bound, bounding, most = self._limits(rule, index, _SUPPOSED)
        left = min(self._by_floors(bound, index), max(self._waited(rule, index), bound))
        if rule.bound and not math.isnan(factor := self._at(rule.bound, rule, index)):
            bounding, most = ("", factor) if factor < most else (bounding, most)
            left = min(left, factor**-_SUPPOSED) if rule.time else left  # what the launch allows
            left = max(left, bound, 1 / factor)
        if rule.spans == "chain" or 1 / left < WORTH:
            return None
        launches = tuple(launch for launch in group.launches if not launch.failed)
        estimate = self._estimated(group, left, most, launches)
        return replace(estimate, bounded_by=RESOURCES.get(bounding, bounding))

    def _by_floors(self, bound: float, index: int) -> float:
        """The share of the time that is left where the highest floor falls to `bound`, and the time
        above it by the same share."""
        highest = self._highest(index)
        return bound + (1 - highest) * (1 - max(highest - bound, 0.0))

    def _highest(self, index: int) -> float:
        """The highest floor, as a share of the time."""
        return max((float(floor[index]) for floor in self.floors.values()), default=0.0)

    def _left(self, rule: Rule, index: int, bound: float) -> float:
        """The share of the time that the fix likely leaves."""
        left = [self._waited(rule, index)]
        if rule.relieves or rule.takes:
            left.append(self._by_floors(bound, index))
        if rule.time is not None:
            left.append(self._at(rule.time, rule, index))
        reached = max(USUAL, self._highest(index))
        return min(max(min(left), bound / reached, _LEAST), 1.0)

    @cached_property
    def _exposure(self) -> Column:
        """The share of a stalled warp's time in which its scheduler issues nothing; where warps
        were not counted, the share of the time in which schedulers issue nothing."""
        exposure, issue = self._column("wait_exposure"), self._column("issue_busy")
        return np.where(np.isnan(exposure), 1 - np.nan_to_num(issue), exposure)

    def _avoided(self, rule: Rule, index: int) -> float:
        """The share of the warps' latency that the fix avoids, as far as it was recorded."""
        stalls = self._stalls(rule, index).values()
        return min(sum(now - after for now, after in stalls), 1 - _LEAST)

    def _waited(self, rule: Rule, index: int) -> float:
        return 1 - float(self._exposure[index]) * self._avoided(rule, index)

    def _stalls(self, rule: Rule, index: int) -> Mapping[str, tuple[float, float]]:
        latency = float(self._column(LATENCY)[index])
        if not latency > 0:
            return {}
        stalls = {
            name: (share, share * min(max(self._at(left, rule, index), 0.0), 1.0))
            for name, left in rule.relieves.items()
            if is_stall(name)
            for share in [min(float(self._column(name)[index]) / latency, 1.0)]
        }
        return {name: ends for name, ends in stalls.items() if not math.isnan(sum(ends))}

    def headrooms(self, findings: Iterable[Finding]) -> Mapping[int, Headroom]:
        """The headroom of each kernel by its typical launch, with the DRAM traffic and FLOP that
        its findings leave, on tensor cores where one of them says so."""
        by_group = grouped((id(finding.group), finding.rule) for finding in findings)
        return {
            group.typical.index: headroom(
                group,
                self._least_left(_dram_left, rules, index),
                self._least_left(lambda rule: rule.flop, rules, index),
                fits_tensor_cores=any("tensor_busy" in rule.takes for rule in rules),
            )
            for index, group in enumerate(self.subjects)
            for rules in [by_group.get(id(group), ())]
        }

    def _least_left(
        self, part: Callable[[Rule], Expression | None], rules: Iterable[Rule], index: int
    ) -> float:
        """The smallest share of a part of the work that any of some rules leaves."""
        formulas = ((rule, formula) for rule in rules if (formula := part(rule)))
        shares = (self._at(formula, rule, index) for rule, formula in formulas)
        return min((max(share, 0.0) for share in shares if not math.isnan(share)), default=1.0)

    def _recorded(self, name: str, index: int) -> float:
        """A quantity of a kernel; a unit or state that its architecture lacks takes none of it."""
        launch = self.subjects[index].typical
        if name in SAMPLED or name in launch.impossible:
            return math.nan
        if name in CONTEXT:
            return self._context(name, index)
        is_use = name in RESOURCES or name.startswith("stall_")
        return 0.0 if is_use and launch.why_missing(name) == NOT_HERE else launch.get(name)

    def _context(self, name: str, index: int) -> float:
        """A quantity of a kernel's chains; 0 where it is in none."""
        chains = self._chains.get(index, ())
        if name == "chain_duration":
            return sum(chain.duration for chain in chains)
        if name == "chain_fused_duration":
            return sum(chain.fused for chain in chains)
        return max((len(chain.launches) for chain in chains), default=0)

    @cached_property
    def _chains(self) -> Mapping[int, Sequence[Chain]]:
        """The chains in which a kernel takes the most time, by the kernel's index."""
        launches = [launch for launch in self._launches if not launch.failed]
        by_kernel: dict[int, list[Chain]] = defaultdict(list)
        for chain in () if self._is_picked else chains(launches, self._kernel_of):
            longest = max(chain.launches, key=lambda launch: launch.duration)
            if longest.index in self._kernel_of:
                by_kernel[self._kernel_of[longest.index]].append(chain)
        return by_kernel

    @cached_property
    def _kernel_of(self) -> Mapping[int, int]:
        """The index of each launch's kernel, by the launch's index."""
        return {
            launch.index: index
            for index, group in enumerate(self.subjects)
            for launch in group.launches
        }


def _shown(compared: Evidence, other_quantities: tuple[str, ...]) -> Evidence | None:
    """What a condition shows: of one that something is there, or more than other quantities make
    likely, its amount, of one that it is not there nothing."""
    if compared.threshold != 0 and not other_quantities:
        return compared
    is_amount = compared.comparison == ">" and compared.quantity.isidentifier()
    return evidence(compared.quantity, compared.value) if is_amount else None


def _dram_left(rule: Rule) -> Expression | None:
    """The share of the DRAM traffic that its fix leaves, without handing it to another resource."""
    return None if rule.takes or rule.name in NOMINAL else rule.relieves.get("dram_busy")


def _on_samples(expression: Expression) -> bool:
    return not SAMPLED.keys().isdisjoint(expression.names)


def _key(name: str, rule: Rule | None) -> str:
    """The key of a fact from samples: each rule has its own."""
    return f"{rule.name}: {name}" if rule else name
