"""The engine: rules over a report's kernels, each finding with a bounded estimate of its fix.

Times here are shares of a kernel's present time. With f_r the floor of resource r (analysis.limits)
and k_r what a fix leaves of its need, the time after the fix is not below max(f_r · k_r); what is
exposed above the floors is taken to shrink by the share that the highest falls, or the rule says
what is left; no nearer to the next floor than kernels usually come (limits.USUAL). Estimates are
never added up. Derived, with the cases in which it fails, in docs/estimates.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from profkit.core.columns import Column
from profkit.core.expression import HOLDS, Expression
from profkit.report.floors import ESSENTIAL, LAUNCH, SHORTEST, USUAL, WORTH, shares
from profkit.report.quantities import NOT_HERE, UNDEFINED
from profkit.report.resources import RESOURCES
from profkit.report.summary import Group, LaunchSummary, ReportSummary
from profkit.rules.rule_file import CONTEXT, Rule
from profkit.rules.samples import SAMPLED, SAMPLED_FROM, Sampled

NOT_SAMPLED = "samples by instruction were not read: short kernels and long code are left out"
"""Why a fact from samples is missing where they were recorded."""

_LEAST = 1e-3
_AT_THE_ROOF = "at_the_roof"
_STALL = "stall_"
_INTERMEDIATE = "intermediate_bytes"
_NOT_ATTRIBUTED = "too few waits could be attributed to a load"
_NO_PREVIOUS = "the previous launch was not selected, or has no such counters"

About = TypeVar("About", bound=Group | None, covariant=True)
Whose = TypeVar("Whose", bound=Group | None)
Sampling = Callable[[LaunchSummary], Sampled | None]
"""Tells what a launch's samples by instruction say; None where they say nothing."""


@dataclass(frozen=True)
class Evidence:
    """A value that a rule looked at; `threshold` is NaN where it was not compared."""

    what: str
    value: float
    sign: str = ""
    threshold: float = math.nan

    @property
    def holds(self) -> bool:
        """Whether the comparison holds; what was not compared does."""
        return not self.sign or HOLDS[self.sign](self.value, self.threshold)


@dataclass(frozen=True)
class Estimate:
    """What a fix gives: factors by which the kernel gets faster, each at least 1.

    `bound_seconds` is the time below which the floor of `bounded_by` holds the kernel after the
    fix, "" where all floors are far below what the fix leaves; `run` is the likely factor for the
    whole report, `saved` what is likely saved of it (s).
    """

    likely: float
    low: float
    high: float
    bounded_by: str
    bound_seconds: float
    run: float
    saved: float


@dataclass(frozen=True)
class Finding(Generic[About]):
    """A rule that fired on a kernel, or, without a `group`, on a timeline as a whole.

    `saved` is the likely time saved over the report, or of the timeline's time, seconds.
    A rule that promises time has no `estimate` where that is below WORTH (then it is `negligible`),
    and where quantities are `lacking` that it rests on.
    """

    rule: Rule
    group: About
    evidence: tuple[Evidence, ...]
    estimate: Estimate | None
    negligible: Estimate | None = None
    lacking: tuple[str, ...] = ()

    @property
    def saved(self) -> float:
        return self.estimate.saved if self.estimate else 0.0


@dataclass(frozen=True)
class Condition:
    """A rule's condition on a kernel; `holds` is None where `missing` quantities leave it open."""

    text: str
    holds: bool | None
    compared: tuple[Evidence, ...]
    missing: tuple[str, ...]


Value = Callable[[Expression], float]
"""Tells what an expression is worth to a kernel or a timeline; NaN where that is unknown."""
Known = Callable[[str], float]
"""The same of a name."""


def tried(condition: Expression, value: Value, known: Known) -> Condition:
    """A condition on a kernel or a timeline, with what it compares."""
    held = value(condition)
    compared = (
        Evidence(one.left.text, left, one.sign, value(one.right))
        for one in condition.comparisons
        if one.left.names and not one.is_guard and not math.isnan(left := value(one.left))
    )
    return Condition(
        condition.text,
        None if math.isnan(held) else bool(held),
        tuple(compared),
        tuple(name for name in condition.names if math.isnan(known(name))),
    )


def found(
    rule: Rule,
    group: Whose,
    conditions: Iterable[Condition],
    known: Known,
    lacking: tuple[str, ...],
    estimate: Callable[[], Estimate],
) -> Finding[Whose]:
    """The finding of a rule whose conditions hold; `estimate` is asked where nothing is lacking."""
    evidence = [told for condition in conditions for told in condition.compared]
    seen = {told.what for told in evidence}
    beside = [Evidence(name, known(name)) for name in rule.evidence if name not in seen]
    told = (*evidence, *(one for one in beside if not math.isnan(one.value)))
    if lacking or not rule.gains:
        return Finding(rule, group, told, None, lacking=lacking)
    promise = estimate()
    if promise.likely < WORTH:
        return Finding(rule, group, told, None, negligible=promise)
    return Finding(rule, group, told, promise)


@dataclass(frozen=True)
class Trial:
    """What a rule makes of one kernel, fired (`finding`) or not.

    `now` and `after` are the floors before and after the fix as shares of the kernel's present
    time; `time` is the rule's own share of the time that is left, NaN where it gives none.
    """

    group: Group
    conditions: tuple[Condition, ...]
    finding: Finding[Group] | None
    now: Mapping[str, float]
    after: Mapping[str, float]
    time: float


@dataclass(frozen=True)
class Lack:
    """What keeps a rule from being evaluated: on how many kernels, and why each quantity is
    missing, by its name."""

    kernels: int
    reasons: Mapping[str, str]


@dataclass(frozen=True)
class Diagnosis:
    """Findings, most time saved first, those that promise none last.

    `unknown` are the rules that could not be evaluated for some kernel: by name, what they lack.
    """

    findings: tuple[Finding[Group], ...]
    unknown: Mapping[str, Lack]
    kernels: int


def diagnose(
    report: ReportSummary, rules: Sequence[Rule], sampling: Sampling = lambda _: None
) -> Diagnosis:
    """Every rule on the typical launch of every kernel of a report that has a duration.

    `sampling` is asked of a kernel only where all else that a rule looks for holds.
    """
    groups = [group for group in report.groups if group.count > group.failed]
    table = _Table(report, groups, sampling)
    findings: list[Finding[Group]] = []
    unknown: dict[str, Lack] = {}
    for rule in rules:
        if rule.about_timeline:
            continue
        held = table.held(rule)
        findings += [table.finding(rule, int(at)) for at in np.flatnonzero(held == 1)]
        if np.isnan(held).any():
            open_places = [int(place) for place in np.flatnonzero(np.isnan(held))]
            unknown[rule.name] = table.lack(rule, open_places)
    return Diagnosis(_ranked(findings), unknown, len(groups))


def explain(
    report: ReportSummary, rule: Rule, sampling: Sampling = lambda _: None
) -> tuple[Trial, ...]:
    """A rule tried on every kernel of a report that has a duration, most time first."""
    groups = [group for group in report.groups if group.count > group.failed]
    table = _Table(report, groups, sampling)
    return tuple(table.trial(rule, at) for at in range(len(groups)))


def _ranked(findings: Sequence[Finding[Group]]) -> tuple[Finding[Group], ...]:
    """By time saved; of one category on one kernel the more cautious estimate alone."""
    kept: dict[tuple[str, int], Finding[Group]] = {}
    for finding in findings:
        key = (finding.rule.category, id(finding.group))
        other = kept.get(key)
        if other is None or _promised(finding) < _promised(other):
            kept[key] = finding
    return tuple(sorted(kept.values(), key=_order))


def _order(finding: Finding[Group]) -> tuple[float, bool, bool, str]:
    """By time saved; then what a fix would relieve though another floor holds the kernel, what only
    informs, and last that a kernel is at its roof."""
    rule = finding.rule
    return -finding.saved, not rule.gains, rule.category == _AT_THE_ROOF, rule.name


def _promised(finding: Finding[Group]) -> float:
    estimate = finding.estimate or finding.negligible
    return estimate.likely - 1 if estimate else math.inf


class _Table:
    """Catalogue quantities as columns of one value a kernel, and what rules make of them."""

    def __init__(self, report: ReportSummary, groups: Sequence[Group], sampling: Sampling) -> None:
        self._groups = groups
        self._sampling = sampling
        self._total = report.total
        self._launches = {launch.index: launch for launch in report.launches}
        self._columns: dict[str, Column] = {}
        self._values: dict[str, Column] = {}
        self._unsampled: set[int] = set()

    def held(self, rule: Rule) -> Column:
        """1 where all conditions hold, 0 where one does not, NaN where it can't be told.

        Looks at samples by instruction only where what the counters tell holds.
        """
        held = np.ones(len(self._groups))
        for condition in sorted(rule.when, key=_on_samples):
            if _on_samples(condition):
                self._sample(rule, held)
            value = self._value(condition, rule)
            false = (held == 0) | (value == 0)
            held = np.where(false, 0.0, np.where(np.isnan(value), np.nan, held))
        self._sample(rule, held)
        return held

    def _sample(self, rule: Rule, held: Column) -> None:
        """Look up what the rule reads of the samples by instruction, where it may still fire."""
        for name in SAMPLED:
            key = _key(name, rule)
            if name not in rule.names or key in self._columns:
                continue
            column = np.full(len(self._groups), np.nan)
            for at in np.flatnonzero(held == 1):
                sampled = self._sampling(self._groups[int(at)].typical)
                column[at] = sampled.get(name, rule.match) if sampled else np.nan
                if not sampled:
                    self._unsampled.add(int(at))
            self._columns[key] = column

    def lack(self, rule: Rule, places: Sequence[int]) -> Lack:
        """What leaves the rule open on the kernels at these places."""
        reasons: dict[str, str] = {}
        for place in places:
            for condition in rule.when:
                if np.isnan(self._value(condition, rule)[place]):
                    names = self._absent(condition, rule, place) or condition.names
                    reasons |= {name: self._why(name, place) for name in names}
        return Lack(len(places), reasons)

    def _absent(self, expression: Expression, rule: Rule, place: int) -> tuple[str, ...]:
        """The names in an expression that have no value for a kernel."""
        return tuple(name for name in expression.names if np.isnan(self._column(name, rule)[place]))

    def _why(self, name: str, place: int) -> str:
        typical = self._groups[place].typical
        if name in SAMPLED:
            unread = place in self._unsampled
            return typical.why_missing(SAMPLED_FROM) or (NOT_SAMPLED if unread else _NOT_ATTRIBUTED)
        if name in CONTEXT:
            return _NO_PREVIOUS
        return typical.why_missing(name) or UNDEFINED

    def finding(self, rule: Rule, at: int) -> Finding[Group]:
        """The rule's finding on the kernel at this place."""
        return found(
            rule,
            self._groups[at],
            self._conditions(rule, at),
            lambda name: float(self._column(name, rule)[at]),
            self._lacking(rule, at),
            lambda: self._estimate(rule, at),
        )

    def trial(self, rule: Rule, at: int) -> Trial:
        """What the rule makes of the kernel at this place."""
        held = self.held(rule)
        after = self._relieved(rule)
        return Trial(
            self._groups[at],
            self._conditions(rule, at),
            self.finding(rule, at) if held[at] == 1 else None,
            {name: float(floor[at]) for name, floor in self._floors.items()},
            {name: float(floor[at]) for name, floor in after.items()},
            float(self._value(rule.time, rule)[at]) if rule.time else math.nan,
        )

    def _conditions(self, rule: Rule, at: int) -> tuple[Condition, ...]:
        return tuple(
            tried(
                condition,
                lambda one: float(self._value(one, rule)[at]),
                lambda name: float(self._column(name, rule)[at]),
            )
            for condition in rule.when
        )

    def _lacking(self, rule: Rule, place: int) -> tuple[str, ...]:
        """What an estimate rests on and the report lacks: of the rule's formulas, and of the
        resources that bound any kernel."""
        if not rule.gains:
            return ()
        now = self._floors
        formulas = [formula for name, formula in rule.relieves.items() if now[name][place] > 0]
        formulas += [*rule.takes.values(), *([rule.time] if rule.time else [])]
        unknown = [one for one in formulas if np.isnan(self._value(one, rule)[place])]
        names = [name for one in unknown for name in self._absent(one, rule, place) or one.names]
        launch = self._groups[place].typical
        names += [name for name in ESSENTIAL if launch.why_missing(name) not in {"", NOT_HERE}]
        return tuple(dict.fromkeys(names))

    def _estimate(self, rule: Rule, at: int) -> Estimate:
        group = self._groups[at]
        now, after = self._floors, self._relieved(rule)
        highest = max((float(floor[at]) for floor in now.values()), default=0.0)
        floors_after = {RESOURCES[name]: float(floor[at]) for name, floor in after.items()}
        floors_after[LAUNCH] = SHORTEST / group.typical.duration
        bounding = max(floors_after, key=floors_after.__getitem__)
        bound = min(floors_after[bounding], 1.0)
        total = group.total
        if rule.spans_previous:
            bound, bounding = 0.0, ""
            total += sum(launch.duration for launch in self._previous(at) or ())
        likely, low, high = self._left(rule, at, highest, bound)
        return Estimate(
            likely=1 / likely,
            low=1 / low,
            high=1 / high,
            bounded_by=bounding if bound > likely / 2 else "",
            bound_seconds=bound * group.typical.duration,
            run=self._total / (self._total - total * (1 - likely)),
            saved=total * (1 - likely),
        )

    def _left(
        self, rule: Rule, at: int, highest: float, bound: float
    ) -> tuple[float, float, float]:
        """Shares of the time that the fix leaves: likely, at worst, at best."""
        near = bound / USUAL
        if rule.time is not None:
            told = min(max(float(self._value(rule.time, rule)[at]), _LEAST), 1.0)
            likely = min(max(told, near), 1.0)
            best = max(bound, told - (1 - told) / 4, _LEAST)
            return likely, max((1 + told) / 2, likely), min(best, likely)
        exposed = 1 - highest
        relieved = max(highest - bound, 0.0)
        likely = min(max(bound + exposed * (1 - relieved), near, _LEAST), 1.0)
        return likely, min(max(bound + exposed, likely), 1.0), max(min(bound, likely), _LEAST)

    @cached_property
    def _floors(self) -> Mapping[str, Column]:
        floors = shares({name: self._column(name) for name in RESOURCES})
        return {name: np.nan_to_num(floor) for name, floor in floors.items()}

    def _relieved(self, rule: Rule) -> Mapping[str, Column]:
        """The floors after the fix; what can't be told is taken as not relieved."""
        after = dict(self._floors)
        for name, left in rule.relieves.items():
            if name in after:
                share = np.clip(np.nan_to_num(self._value(left, rule), nan=1.0), 0.0, 1.0)
                after[name] = after[name] * share
        for name, taken in rule.takes.items():
            if name in after:
                after[name] = after[name] + np.nan_to_num(self._value(taken, rule))
        return after

    def _value(self, expression: Expression, rule: Rule) -> Column:
        key = expression.text
        if _on_samples(expression):
            key = f"{rule.name}: {key}"
        if key not in self._values:
            columns = {name: self._column(name, rule) for name in expression.names}
            value = np.broadcast_to(expression(columns), len(self._groups)).astype(np.float64)
            self._values[key] = value
        return self._values[key]

    def _column(self, name: str, rule: Rule | None = None) -> Column:
        if name in SAMPLED:
            return self._columns[_key(name, rule)]
        if name not in self._columns:
            get = self._context if name in CONTEXT else self._recorded
            values = [get(name, place) for place in range(len(self._groups))]
            self._columns[name] = np.array(values, dtype=np.float64)
        return self._columns[name]

    def _recorded(self, name: str, place: int) -> float:
        """A quantity of a kernel; a unit or state that its architecture lacks takes none of it."""
        launch = self._groups[place].typical
        if launch.why_missing(name) == NOT_HERE and (name in RESOURCES or name.startswith(_STALL)):
            return 0.0
        return launch.get(name)

    def _context(self, name: str, place: int) -> float:
        """A fact about the launch before; nothing is handed over where there is no such kernel."""
        previous = self._previous(place)
        if not previous:
            unknown = previous is None or name != _INTERMEDIATE
            return math.nan if unknown else 0.0
        launch = self._groups[place].typical
        before = self._launches[launch.index - 1]
        match name:
            case "previous_duration":
                return before.duration
            case "previous_dram_bytes":
                return before.get("dram_bytes")
            case _:
                return min(before.get("dram_write_bytes"), launch.get("dram_read_bytes"))

    def _previous(self, place: int) -> tuple[LaunchSummary, ...] | None:
        """The launch before each of a kernel's launches, where each follows the same other kernel.

        None where one that the report has was not selected, or has no duration. A kernel's repeats
        follow itself: they work on the same buffers, for all that is known.
        """
        launches = [launch for launch in self._groups[place].launches if not launch.failed]
        indices = [launch.index - 1 for launch in launches]
        if min(indices) < 0:
            return ()
        found = [self._launches.get(index) for index in indices]
        previous = tuple(launch for launch in found if launch and not launch.failed)
        if len(previous) < len(indices):
            return None
        kernels = {self._place_of.get(launch.index, place) for launch in previous}
        return previous if len(kernels) == 1 and place not in kernels else ()

    @cached_property
    def _place_of(self) -> Mapping[int, int]:
        """The place of each launch's kernel, by the launch's index."""
        return {
            launch.index: place
            for place, group in enumerate(self._groups)
            for launch in group.launches
        }


def _on_samples(expression: Expression) -> bool:
    return not SAMPLED.keys().isdisjoint(expression.names)


def _key(name: str, rule: Rule | None) -> str:
    """The key of a fact from samples: each rule has its own."""
    return f"{rule.name}: {name}" if rule else name
