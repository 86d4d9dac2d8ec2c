"""The time that judges a prediction: a kernel's own, its call's, or its with kernels beside it.

A change may make a kernel faster by moving its work into another one. So a kernel's gain counts
only where its call gained too: by the call's timed latency, or else by ncu's durations of the
kernel and of those that the change added, removed or made slower.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from profkit.comparison.comparison import Diff, KernelDiff, Side
from profkit.comparison.repeats import NOISE, Change, noise, within_noise
from profkit.comparison.timed_change import TimedChange
from profkit.report.summary import Group

# ncu's options that choose which launches a report has
_SELECTING = (
    *("kernel-name", "k", "kernel-id", "launch-count", "c", "launch-skip", "s"),
    *("launch-skip-before-match", "nvtx-include", "nvtx-exclude", "range-filter", "devices"),
)


class Scope(StrEnum):
    """What a measured time is of."""

    kernel = "kernel"
    call = "call"
    kernels = "kernels"
    report = "report"


@dataclass(frozen=True)
class Beside:
    """The kernels beside one that a change added, removed or made slower."""

    added: tuple[Group, ...] = ()
    removed: tuple[Group, ...] = ()
    slower: tuple[KernelDiff, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.slower)


_ALONE = Beside()


@dataclass(frozen=True)
class Times:
    """What is known of the time: a verdict, and the factor with its range.

    `share` is the part that the kernel had of that time before the change.
    """

    change: Change
    speedup: float = math.nan
    low: float = math.nan
    high: float = math.nan
    timed: bool = False
    obstacle: str = ""
    scope: Scope = Scope.kernel
    share: float = 1.0
    beside: Beside = _ALONE

    def scaled(self, factor: float) -> float:
        """What a factor of the kernel makes of this time: Amdahl's law."""
        return 1 / (1 - self.share * (1 - 1 / factor))


def times_of_kernel(kernel: KernelDiff, diff: Diff) -> Times:
    """The time by which a prediction for a kernel is judged: what a change did to it, and to what
    is called with it."""
    own = _own(kernel)
    if own.timed or own.change is Change.incomparable:
        return own
    beside = _beside(kernel, diff)
    if not beside and own.change is not Change.improved:
        return own
    sums = _together(kernel, beside) if beside else own
    call = _call(kernel, diff)
    return _of_call(call, sums, beside, kernel, diff) if call else sums


def times_of_report(diff: Diff) -> Times:
    """Of all launches: those of a chain have no counterparts where they were fused."""
    if (call := _only_call(diff)) is not None:
        return _timed(call, Scope.report)
    before, after = (side.report.total for side in diff.sides)
    return _sums(before, after, Scope.report)


def _own(kernel: KernelDiff) -> Times:
    if kernel.change is Change.incomparable:
        return Times(kernel.change, obstacle=kernel.obstacle_words)
    low, high = (value if math.isfinite(value) else kernel.speedup for value in kernel.range)
    return Times(kernel.change, kernel.speedup, low, high, kernel.by_timing)


def _beside(kernel: KernelDiff, diff: Diff) -> Beside:
    """Those of its call, where the call is known; none where ncu was to profile other launches."""
    options = [side.report.session.options for side in diff.sides]
    if any(options[0].get(name) != options[1].get(name) for name in _SELECTING):
        return _ALONE
    before, after = diff.sides
    slower = (
        other
        for other in diff.kernels
        if other is not kernel and other.change is Change.regressed
        if _is_beside(other.before, kernel.before, before)
        if _is_beside(other.after, kernel.after, after)
    )
    return Beside(
        tuple(group for group in diff.added if _is_beside(group, kernel.after, after)),
        tuple(group for group in diff.removed if _is_beside(group, kernel.before, before)),
        tuple(slower),
    )


def _is_beside(group: Group, kernel: Group, side: Side) -> bool:
    label = side.timings.label_of(kernel)
    return not label or side.timings.label_of(group) == label


def _together(kernel: KernelDiff, beside: Beside) -> Times:
    """Of the kernel and those beside it, by ncu's durations for each launch of it."""
    pairs = (kernel, *beside.slower)
    groups_before = [*(pair.before for pair in pairs), *beside.removed]
    groups_after = [*(pair.after for pair in pairs), *beside.added]
    before = _total(groups_before, kernel) / kernel.before.count
    after = _total(groups_after, kernel) / kernel.after.count
    share = _total([kernel.before], kernel) / kernel.before.count / before
    return _sums(before, after, Scope.kernels, share, beside)


def _total(groups: Iterable[Group], kernel: KernelDiff) -> float:
    """Seconds of groups of launches; at the kernel's SM clock before, where clocks differ."""
    clock = kernel.before.typical.get("sm_clock")
    return math.fsum(
        group.total * (group.typical.get("sm_clock") / clock if kernel.in_cycles else 1.0)
        for group in groups
    )


def _sums(
    before: float, after: float, scope: Scope, share: float = 1.0, beside: Beside = _ALONE
) -> Times:
    """The verdict on sums of ncu's durations (s)."""
    if not (before > 0 and after > 0):
        return Times(Change.incomparable, obstacle="no duration on a side")
    speedup, spread = before / after, noise(before, after)
    change = Change.improved if speedup > 1 else Change.regressed
    if within_noise(before, after):
        change = Change.same
    low, high = speedup / (1 + spread), speedup * (1 + spread)
    return Times(change, speedup, low, high, scope=scope, share=share, beside=beside)


def _call(kernel: KernelDiff, diff: Diff) -> TimedChange | None:
    """The valid timed change of the variant that a kernel is of."""
    groups = kernel.before, kernel.after
    labels = [side.timings.label_of(group) for side, group in zip(diff.sides, groups, strict=True)]
    pairs = (each for each in diff.timed if [each.before.label, each.after.label] == labels)
    return next((each for each in pairs if each.valid), None)


def _of_call(
    call: TimedChange, sums: Times, beside: Beside, kernel: KernelDiff, diff: Diff
) -> Times:
    """The call's timed change, or the sums where their gain is too small a part of the call for its
    timing to show."""
    before, _ = diff.sides
    launches = (
        launch for launch in before.report.measured if call.before.label in launch.launch.nvtx
    )
    total = math.fsum(launch.duration for launch in launches)
    part = kernel.before.total / sums.share / total
    is_seen = call.change in {Change.improved, Change.regressed}
    if not is_seen and part * abs(1 - 1 / sums.speedup) <= (call.margin or NOISE):
        return sums
    share = kernel.before.total / total
    return _timed(call, Scope.call, share, beside)


def _only_call(diff: Diff) -> TimedChange | None:
    """The valid timed change of the variant that all launches of both sides are of."""
    for change in diff.timed:
        labels = change.before.label, change.after.label
        counts = [side.launches.get(label) for side, label in zip(diff.sides, labels, strict=True)]
        if change.valid and counts == [len(side.report.launches) for side in diff.sides]:
            return change
    return None


def _timed(change: TimedChange, scope: Scope, share: float = 1.0, beside: Beside = _ALONE) -> Times:
    ends = (change.low, change.high)
    low, high = (change.speedup if end is None else end for end in ends)
    return Times(
        change.change, change.speedup, low, high, timed=True, scope=scope, share=share,
        beside=beside,
    )  # fmt: skip
