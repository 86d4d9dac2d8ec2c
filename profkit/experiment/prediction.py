"""The next experiment: the change that tells most, and what it does if the diagnosis is right.

A finding predicts two things of its fix: that its measure moves (sectors per request fall), and
that the kernel becomes faster by a factor in the estimate's range. Either can fail, and each
failure means something else: a change to one kernel at a time is a test of the diagnosis.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from profkit.analysis.report import Report
from profkit.core.typed_file import Amount, Count, Model, Number, part
from profkit.report.summary import Group, LaunchSummary
from profkit.rules.engine import AT_THE_ROOF
from profkit.rules.finding import Finding
from profkit.rules.measures import Measure, measures

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
    the factors by which it becomes faster, `whole` that of the whole report. Of a `chain` of
    kernels, of which it is one, they are of the whole report, as are its quantities: a fused kernel
    has no counterpart. They are None where the gain was not estimated.
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
    assumes: str = ""
    chain: bool = False


def next_experiments(
    report: Report, count: int, tried: Collection[tuple[str, str]] = ()
) -> tuple[Prediction, ...]:
    """The `count` experiments that tell most, by the time that the report's launches save.

    Those without an estimated speedup come last. Only findings whose measures were collected can be
    refuted, so others are left out, as are those in `tried`: pairs of rule and kernel whose
    diagnosis was refuted.
    """
    predictions = (
        _prediction(finding, report.summary.launches)
        for finding in report.checklist(blamed=0).findings
        if (finding.rule.name, finding.kernel) not in tried
        if finding.rule.category != AT_THE_ROOF
    )
    return tuple(islice(filter(None, predictions), count))


def _prediction(finding: Finding, launches: Sequence[LaunchSummary]) -> Prediction | None:
    rule, group = finding.rule, finding.group
    if group is None or not math.isfinite(group.typical.duration):
        return None
    chain = rule.spans == "chain"
    recorded = launches if chain else [group.typical]
    expected = tuple(_expectations(measures(rule.verify), group, recorded))
    if not expected:
        return None
    low, likely, high, whole = _gains(finding)
    return Prediction(
        rule=rule.name,
        **part(rule, "category", "title"),
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
    )


def _gains(finding: Finding) -> tuple[float | None, float | None, float | None, float | None]:
    """The factors of a prediction; by Amdahl's law those of the whole report for a chain."""
    estimate = finding.estimate
    if estimate is None:
        return None, None, None, None
    low, likely, high = estimate.low, estimate.likely, estimate.high
    if finding.rule.spans == "chain":
        share = (1 - 1 / estimate.run) / (1 - 1 / likely) if likely > 1 else 0.0
        low, likely, high = (1 / (1 - share * (1 - 1 / end)) for end in (low, likely, high))
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
