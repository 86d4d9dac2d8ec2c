"""The next experiment: the change that tells most, and what it does if the diagnosis is right.

A finding predicts two things of its fix: that its measure moves (sectors per request fall), and
that the kernel becomes faster by a factor in the estimate's range. Either can fail, and each
failure means something else: a change to one kernel at a time is a test of the diagnosis.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from profkit.analysis.report import Report
from profkit.core.typed_file import Amount, Count, Model, Number
from profkit.report.summary import Group, LaunchSummary
from profkit.rules.engine import AT_THE_ROOF
from profkit.rules.finding import Estimate, Finding
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


def predictions(report: Report, tried: Collection[tuple[str, str]] = ()) -> Iterator[Prediction]:
    """Experiments, the one that tells most first: by the time that the report's launches save.

    Those without an estimated speedup come last. Only findings whose measures were collected can be
    refuted, so others are left out, as are those in `tried`: pairs of rule and kernel whose
    diagnosis was refuted.
    """
    launches = report.summary.launches
    for item in report.checklist(blamed=0).findings:
        prediction = None if item.rule.category == AT_THE_ROOF else _prediction(item, launches)
        if prediction and (prediction.rule, prediction.kernel) not in tried:
            yield prediction


def next_experiments(
    report: Report, count: int, tried: Collection[tuple[str, str]] = ()
) -> tuple[Prediction, ...]:
    """The first so many of them."""
    return tuple(islice(predictions(report, tried), count))


def _prediction(item: Finding, launches: Sequence[LaunchSummary]) -> Prediction | None:
    estimate, group = item.estimate, item.group
    if group is None or not math.isfinite(group.typical.duration):
        return None
    chain = item.rule.spans == "chain"
    expected = tuple(
        replace(each, now=_sum(launches, each.quantity)) if chain else each
        for each in _expectations(measures(item.rule.verify), group)
    )
    if not expected:
        return None
    prediction = Prediction(
        rule=item.rule.name,
        category=item.rule.category,
        title=item.title,
        kernel=item.kernel,
        launch=group.typical.index,
        duration=group.typical.duration,
        changes=item.actions[:_ACTIONS],
        expected=expected,
        assumes=item.assumes,
        chain=chain,
    )
    return _with_gain(prediction, estimate) if estimate else prediction


def _with_gain(prediction: Prediction, estimate: Estimate) -> Prediction:
    low, likely, high = (
        _of_whole(estimate, factor) if prediction.chain else factor
        for factor in (estimate.low, estimate.likely, estimate.high)
    )
    return replace(prediction, low=low, likely=likely, high=high, whole=estimate.run)


def _of_whole(estimate: Estimate, factor: float) -> float:
    """A factor of the whole report from one of a part: Amdahl's law."""
    if estimate.likely <= 1:
        return 1.0
    part = (1 - 1 / estimate.run) / (1 - 1 / estimate.likely)
    return 1 / (1 - part * (1 - 1 / factor))


def _sum(launches: Sequence[LaunchSummary], quantity: str) -> float | None:
    """A quantity of all launches together; None where one did not record it."""
    total = math.fsum(launch.get(quantity) for launch in launches)
    return total if math.isfinite(total) else None


def _expectations(moves: tuple[Measure, ...], group: Group) -> Iterator[Expectation]:
    """The worst quantity of each measure that the report collected."""
    for measure in moves:
        names = [name for name in measure.names if name in group.typical.values]
        if not names:
            continue
        name = measure.worst_quantity(group.typical) or names[0]
        yield Expectation(quantity=name, rises=measure.rises, now=group.typical.values[name])
