"""What became of a prediction: the measure, the time, and what both say about the diagnosis.

                   faster as predicted   otherwise faster      not faster
measure moved      held                  held in part          refuted
measure stayed     not tested: the change did not do what it was to do, whatever the time did

`profkit.experiment.times` has what has to be faster.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from profkit.analysis.report import Report
from profkit.comparison.comparability import Aspect
from profkit.comparison.comparison import Diff, KernelDiff
from profkit.comparison.measures import MOVED, Measure
from profkit.comparison.repeats import Change
from profkit.comparison.reports import diff as compare
from profkit.core.json_text import finite
from profkit.core.typed_file import Model, Number, row_of
from profkit.experiment.prediction import Expectation, Prediction
from profkit.experiment.times import Scope, Times, times_of_kernel, times_of_report
from profkit.report.summary import Group

_SUBJECTS = {
    Scope.kernel: "the kernel",
    Scope.call: "its call",
    Scope.kernels: "the kernel with those beside it",
    Scope.report: "the report",
}


class Verdict(StrEnum):
    """What a change said about a diagnosis."""

    held = "HELD"
    partly = "HELD IN PART"
    refuted = "REFUTED"
    untested = "NOT TESTED"
    open = "UNDECIDED"


class Move(Model, frozen=True, kw_only=True):
    """An expected quantity before and after; `share` is by how much it moved as predicted, of the
    larger side: below 0 the other way, None where a side did not record it."""

    quantity: str
    rises: bool
    before: Number | None
    after: Number | None
    share: Number | None


class UnmatchedKernel(Model, frozen=True, kw_only=True):
    """A kernel that only one side launches, with the seconds of its launches under ncu."""

    kernel: str
    duration: Number | None


class Outcome(Model, frozen=True, kw_only=True):
    """The verdict with its reason; `speedup` and its range are the measured ones, of timed
    latencies (`timed`) or else of ncu's durations; None where they can't be compared.

    `scope` is what they are of: the kernel, its call, the kernel with those that were added,
    removed or made slower (`kernels`), or the report. `added` and `removed` are the kernels beside
    it that only one side launches.
    """

    verdict: Verdict
    reason: str
    moves: tuple[Move, ...] = ()
    change: Change = Change.incomparable
    speedup: Number | None = None
    low: Number | None = None
    high: Number | None = None
    timed: bool = False
    scope: Scope = Scope.kernel
    added: tuple[UnmatchedKernel, ...] = ()
    removed: tuple[UnmatchedKernel, ...] = ()


def tested(proposed: Sequence[Prediction], diff: Diff) -> tuple[Prediction, Outcome]:
    """Which of some experiments a change was, with its outcome: the first whose measure moved, else
    the first."""
    outcomes = [(prediction, outcome(prediction, diff)) for prediction in proposed]
    moved = {Verdict.held, Verdict.partly, Verdict.refuted}
    return next((each for each in outcomes if each[1].verdict in moved), outcomes[0])


def compared(
    before: Report, after: Report, match: str = "auto", names: Mapping[str, str] | None = None
) -> Diff:
    """Two reports compared as `diff` does; of one kernel each that is the same one, whatever its
    name."""
    kernels = [{group.name for group in report.summary.groups} for report in (before, after)]
    if match == "auto" and all(len(each) == 1 for each in kernels):
        names = dict(zip(*kernels, strict=True))
    return compare(before, after, match=match, names=names)


def renamed(diff: Diff) -> dict[str, str]:
    """The kernels that have another name after a change: names before, and after."""
    pairs = ((kernel.before.name, kernel.after.name) for kernel in diff.kernels)
    return {before: after for before, after in pairs if before != after}


def outcome(prediction: Prediction, diff: Diff) -> Outcome:
    """What a change did to a prediction: two reports compared, before and after it."""
    is_unmatched = {each.aspect for each in diff.obstacles} == {Aspect.match}
    if diff.refused and not (prediction.chain and is_unmatched):
        return Outcome(verdict=Verdict.open, reason=f"not comparable: {diff.obstacle_words}")
    kernel = _kernel(prediction, diff.kernels)
    if prediction.chain:
        times, moves = times_of_report(diff), tuple(_sums(prediction.expected, diff))
    elif kernel:
        times, moves = times_of_kernel(kernel, diff), tuple(_moves(prediction.expected, kernel))
    else:
        reason = "the kernel has no counterpart after the change"
        return Outcome(verdict=Verdict.open, reason=reason)
    known = [move.share for move in moves if move.share is not None]
    verdict, reason = _verdict(prediction, times, known[0] if known else None)
    return row_of(
        Outcome,
        times,
        verdict=verdict,
        reason=reason,
        moves=moves,
        speedup=finite(times.speedup),
        low=finite(times.low),
        high=finite(times.high),
        added=_unmatched(times.added),
        removed=_unmatched(times.removed),
    )


def _unmatched(groups: Sequence[Group]) -> tuple[UnmatchedKernel, ...]:
    """The one of the most time first."""
    kernels = (UnmatchedKernel(kernel=group.name, duration=finite(group.total)) for group in groups)
    return tuple(sorted(kernels, key=lambda kernel: -(kernel.duration or 0.0)))


def _kernel(prediction: Prediction, kernels: Sequence[KernelDiff]) -> KernelDiff | None:
    """The comparison of the predicted kernel: of its own launch, or else of its name."""
    named = [each for each in kernels if each.before.name == prediction.kernel]
    own = (each for each in named if each.before.typical.index == prediction.launch)
    return next(own, named[0] if named else None)


def _moves(expected: Sequence[Expectation], kernel: KernelDiff) -> Iterator[Move]:
    before, after = kernel.before.typical, kernel.after.typical
    for each in expected:
        sides = before.get(each.quantity), after.get(each.quantity)
        share = Measure((each.quantity,), each.rises).gain(before, after, before)
        yield _move(each, sides, share)


def _sums(expected: Sequence[Expectation], diff: Diff) -> Iterator[Move]:
    """Quantities of all launches together."""
    for each in expected:
        before, after = (
            sum(launch.get(each.quantity) for launch in side.report.launches) for side in diff.sides
        )
        better = after - before if each.rises else before - after
        yield _move(each, (before, after), better / (max(abs(before), abs(after)) or 1.0))


def _move(each: Expectation, sides: tuple[float, float], share: float) -> Move:
    before, after = map(finite, sides)
    return row_of(Move, each, before=before, after=after, share=finite(share))


def _verdict(prediction: Prediction, times: Times, moved: float | None) -> tuple[Verdict, str]:
    """The verdict, by the first measure that both sides recorded."""
    if moved is None:
        return Verdict.open, "a report did not record what was predicted to move"
    if moved < MOVED:
        direction = "moved the other way" if moved <= -MOVED else "did not move"
        return (
            Verdict.untested,
            f"what the change was to move {direction}: it is not the predicted change",
        )
    subject = _SUBJECTS[times.scope]
    match times.change:
        case Change.incomparable:
            return Verdict.open, f"the times can't be compared: {times.obstacle}"
        case Change.inconclusive:
            return Verdict.open, "it moved as predicted; the times are inconclusive"
        case Change.same:
            return Verdict.refuted, "it moved as predicted, and the time did not change"
        case Change.regressed:
            return Verdict.refuted, f"it moved as predicted, and {subject} became slower"
    if prediction.low is None or prediction.high is None:
        return Verdict.held, f"it moved as predicted, and {subject} became faster"
    if times.high < times.scaled(prediction.low):
        return Verdict.partly, f"it moved as predicted; {subject} gained less than predicted"
    if times.low > times.scaled(prediction.high):
        return Verdict.partly, f"it moved as predicted; {subject} gained more than predicted"
    return Verdict.held, f"it moved as predicted, and {subject} gained what was predicted"
