"""The next experiment: the change that tells most, and what it does if the diagnosis is right.

A finding predicts two things of its fix: that its measure moves (sectors per request fall), and
that the kernel becomes faster by a factor in the estimate's range. Either can fail, and each
failure means something else: a change to one kernel at a time is a test of the diagnosis.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from profkit.analysis.report import Report
from profkit.comparison.measures import Measure, measures
from profkit.core.typed_file import Amount, Count, Model, Number
from profkit.report.floors import WORTH, floors
from profkit.report.summary import Group, LaunchSummary
from profkit.rules.checklist import Checklist
from profkit.rules.engine import AT_THE_ROOF, NOMINAL
from profkit.rules.finding import Finding, FindingGroup

_ACTIONS = 3  # chosen: changes to try, of which the first is the usual one


class Expectation(Model, frozen=True, kw_only=True):
    """A quantity that the change lowers, or raises (`rises`), from its value now; None where it is
    negligible now."""

    quantity: str
    rises: bool
    now: Number | None


class Prediction(Model, frozen=True, kw_only=True):
    """What a change to a kernel does if its diagnosis is right.

    `duration` is the kernel's now in seconds, as ncu measured it; `low`, `likely` and `high` are
    the factors by which it becomes faster, `whole` that of the whole report, where a fix of several
    `kernels` with this finding is worth an experiment and that of one is not, of all of them. Of a
    `chain` of kernels, of which it is one, they are of the whole report, as are its quantities: a
    fused kernel has no counterpart. They are None where quantities are `missing` to estimate them.
    """

    rule: str
    category: str
    title: str
    kernel: str
    launch: Count
    duration: Amount
    changes: tuple[str, ...]
    expected: tuple[Expectation, ...]
    low: Amount | None = None
    likely: Amount | None = None
    high: Amount | None = None
    whole: Amount | None = None
    kernels: Count = 1
    missing: tuple[str, ...] = ()
    assumes: str = ""
    chain: bool = False


class Untestable(Model, frozen=True, kw_only=True):
    """A finding whose measures the report did not collect (`missing`), so that nothing would refute
    it; its estimate as in a prediction."""

    rule: str
    title: str
    kernel: str
    missing: tuple[str, ...]
    low: Amount | None = None
    likely: Amount | None = None
    high: Amount | None = None


class Roof(Model, frozen=True):
    """A kernel at a roof: its busiest resource with the share of the time that it is busy, and the
    `change` that needs less of that resource, "" where none is known."""

    kernel: str
    resource: str
    busy: Amount
    change: str


class Stop(Model, frozen=True, kw_only=True):
    """Why no experiment is left: the `largest` estimated speedup of the report, of the finding
    `title`, is below 1.02x, or there is none; kernels are at `roofs`; the titles of diagnoses that
    were `refuted`. `unevaluated` rules of all `rules` lack data, which `sections` of ncu
    would have; `inconclusive`: those are most."""

    largest: Amount | None
    title: str
    roofs: tuple[Roof, ...]
    refuted: tuple[str, ...]
    unevaluated: Count
    rules: Count
    sections: tuple[str, ...]
    inconclusive: bool


@dataclass(frozen=True, kw_only=True)
class Proposals:
    """The experiments worth making, best first, how many `more` there are, and what can't be
    tested; `stop` where there is neither."""

    proposed: tuple[Prediction, ...]
    more: int
    untestable: tuple[Untestable, ...]
    stop: Stop | None


def next_experiments(
    report: Report,
    count: int,
    tried: Collection[tuple[str, str]] = (),
    measured: Collection[tuple[str, str]] = (),
) -> Proposals:
    """The `count` experiments that tell most, by the time that the report's launches save.

    Only those that are estimated to make the report 1.02x faster or more, alone or with the other
    kernels of the same finding, and, last, those without an estimate; where a roof holds the
    kernel, neither these nor what is assumed of it. Only findings whose measures
    were collected can be refuted; those in `tried`, pairs of rule and kernel, were, and of those in
    `measured` switches decided.
    """
    checklist = report.checklist(blamed=0)
    left = list(_worthwhile(checklist, tried))
    refuted = [finding.title for finding, _ in left if _diagnosis(finding) in tried]
    proposed: list[Prediction] = []
    untestable: list[Untestable] = []
    for finding, kernels in left:
        if _diagnosis(finding) in {*tried, *measured}:
            continue
        if prediction := _prediction(finding, report.summary.launches, kernels):
            proposed.append(prediction)
        elif finding.group is not None:
            untestable.append(_untestable(finding, report.summary.launches))
    return Proposals(
        proposed=tuple(proposed[:count]),
        more=len(proposed[count:]),
        untestable=tuple(untestable),
        stop=None if proposed or untestable else _stop(checklist, tried, refuted),
    )


def _diagnosis(finding: Finding) -> tuple[str, str]:
    return finding.rule.name, finding.kernel


def _worthwhile(
    checklist: Checklist, tried: Collection[tuple[str, str]]
) -> Iterator[tuple[Finding, FindingGroup | None]]:
    """The findings whose fix is worth an experiment, each with the group of kernels that it takes
    to make the report faster by as much, None for the kernel alone. Those that show a cause whose
    first finding was not tried wait for it."""
    major = checklist.major
    groups = {id(each): group for group in checklist.rule_items for each in group.findings}
    for finding in checklist.findings:
        group, estimate = groups.get(id(finding)), finding.estimate
        if finding.facet_of and (finding.facet_of, finding.kernel) not in tried:
            continue
        if estimate is None:
            if group in major and finding.group not in checklist.roofs:
                yield finding, None
        elif _is_held(finding, checklist):
            continue
        elif estimate.run >= WORTH:
            yield finding, None
        elif group and finding is group.best and group.speedup >= WORTH:
            yield finding, group


def _is_held(finding: Finding, checklist: Checklist) -> bool:
    """Whether a roof holds the kernel, and no counter shows that bytes can be saved."""
    return finding.rule.name in NOMINAL and finding.group in checklist.roofs


def _stop(checklist: Checklist, tried: Collection[tuple[str, str]], refuted: Sequence[str]) -> Stop:
    untried = (item for item in checklist.items if _diagnosis(item) not in tried)
    open_ones = (item for item in untried if not _is_held(item, checklist))
    best = max(open_ones, key=lambda item: item.saved, default=None)
    roofs = [
        Roof(group.name, floor.label, floor.busy, _first_action(checklist, group))
        for group in checklist.roofs
        for floor in floors(group.typical.values)[:1]
    ]
    return Stop(
        largest=best.estimate.run if best and best.estimate else None,
        title=best.title if best else "",
        roofs=tuple(roofs),
        refuted=tuple(dict.fromkeys(refuted)),
        unevaluated=len(checklist.lacking),
        rules=checklist.rules,
        sections=tuple(sorted({name for rule in checklist.lacking for name in rule.sections})),
        inconclusive=checklist.inconclusive,
    )


def _first_action(checklist: Checklist, group: Group) -> str:
    """The first action of the findings on a kernel at a roof, that of the roof itself last."""
    findings = [finding for finding in checklist.findings_on(group) if finding.actions]
    findings.sort(key=lambda finding: finding.rule.category == AT_THE_ROOF)
    return findings[0].actions[0] if findings else ""


def _untestable(finding: Finding, launches: Sequence[LaunchSummary]) -> Untestable:
    names = (name for measure in measures(finding.rule.verify) for name in measure.names)
    low, likely, high, _ = _gains(finding, launches)
    return Untestable(
        rule=finding.rule.name,
        title=finding.title,
        kernel=finding.kernel,
        missing=tuple(dict.fromkeys(names)),
        low=low,
        likely=likely,
        high=high,
    )


def _prediction(
    finding: Finding, launches: Sequence[LaunchSummary], kernels: FindingGroup | None
) -> Prediction | None:
    rule, group = finding.rule, finding.group
    if group is None or not math.isfinite(group.typical.duration):
        return None
    chain = rule.spans == "chain"
    recorded = launches if chain else [group.typical]
    expected = tuple(_expectations(measures(rule.verify), group, recorded))
    if not expected:
        return None
    low, likely, high, whole = _gains(finding, launches)
    if kernels:
        whole = kernels.speedup
        if kernels.variant:
            whole = _of_report(sum(each.saved for each in kernels.findings), launches)
    return Prediction(
        rule=rule.name,
        category=rule.category,
        title=finding.title,
        kernel=finding.kernel,
        launch=group.typical.index,
        duration=group.typical.duration,
        changes=finding.actions[:_ACTIONS],
        expected=expected,
        assumes=finding.assumes,
        chain=chain,
        low=low,
        likely=likely,
        high=high,
        whole=whole,
        kernels=len(kernels.findings) if kernels else 1,
        missing=finding.lacking,
    )


def _of_report(saved: float, launches: Sequence[LaunchSummary]) -> float:
    total = sum(launch.duration for launch in launches if not launch.failed)
    return total / (total - saved)


def _gains(
    finding: Finding, launches: Sequence[LaunchSummary]
) -> tuple[float | None, float | None, float | None, float | None]:
    """The factors of a prediction; by Amdahl's law those of the whole report for a chain. A
    checklist counts what is saved of a variant, an experiment of the report."""
    estimate = finding.estimate
    if estimate is None:
        return None, None, None, None
    if finding.variant:
        estimate = replace(estimate, run=_of_report(estimate.saved, launches))
    ends = estimate.low, estimate.likely, estimate.high
    is_chain = finding.rule.spans == "chain"
    low, likely, high = map(estimate.of_run, ends) if is_chain else ends
    return low, likely, high, estimate.run


def _expectations(
    moves: tuple[Measure, ...], group: Group, launches: Sequence[LaunchSummary]
) -> Iterator[Expectation]:
    """The worst quantity of each measure that the report collected, summed over some launches."""
    for measure in moves:
        names = [name for name in measure.names if name in group.typical.values]
        if names:
            name = measure.worst_quantity(group.typical) or names[0]
            now = math.fsum(launch.get(name) for launch in launches)
            known = now if math.isfinite(now) else None
            yield Expectation(quantity=name, rises=measure.rises, now=known)
