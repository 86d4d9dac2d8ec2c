"""The time that judges a prediction: a kernel's own, its call's, or its with kernels beside it.

A change may make a kernel faster by moving its work into another one. So a kernel's gain counts
only where its call gained too: by the call's timed latency, or else by ncu's durations of the
kernel and of those that the change added, removed or made slower.
"""

import math
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

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


class Times(Struct, frozen=True):
    """What is known of the time: a verdict, and the factor with its range.

    `share` is the part that the kernel had of that time before the change; `added` and `removed`
    are the kernels beside it that only one side launches.
    """

    change: Change
    speedup: float = math.nan
    low: float = math.nan
    high: float = math.nan
    timed: bool = False
    obstacle: str = ""
    scope: Scope = Scope.kernel
    share: float = 1.0
    added: tuple[Group, ...] = ()
    removed: tuple[Group, ...] = ()

    def scaled(self, factor: float) -> float:
        """What a factor of the kernel makes of this time: Amdahl's law."""
        return 1 / (1 - self.share * (1 - 1 / factor))


def times_of_kernel(kernel: KernelDiff, diff: Diff) -> Times:
    """The time by which a prediction for a kernel is judged: what a change did to it, and to what
    is called with it."""
    if kernel.change is Change.incomparable:
        return Times(kernel.change, obstacle=kernel.obstacle_words)
    low, high = (value if math.isfinite(value) else kernel.speedup for value in kernel.range)
    own = Times(kernel.change, kernel.speedup, low, high, kernel.by_timing)
    together = None if own.timed else _together(kernel, diff)
    if own.timed or not (together or own.change is Change.improved):
        return own
    return _of_call(kernel, diff, together or own)


def times_of_report(diff: Diff) -> Times:
    """Of all launches: those of a chain have no counterparts where they were fused."""
    for call in diff.timed:
        labels = call.before.label, call.after.label
        counts = [side.launches.get(label) for side, label in zip(diff.sides, labels, strict=True)]
        if call.valid and counts == [len(side.report.launches) for side in diff.sides]:
            return _timed(call, Scope.report)
    before, after = (side.report.total for side in diff.sides)
    return _sums(before, after, Scope.report)


def _together(kernel: KernelDiff, diff: Diff) -> Times | None:
    """Of the kernel and those of its call, where the call is known, that the change added, removed
    or made slower, by ncu's durations for each launch of it.

    None without such kernels, and where ncu was to profile other launches.
    """
    options = [side.report.session.options for side in diff.sides]
    if any(options[0].get(name) != options[1].get(name) for name in _SELECTING):
        return None
    before, after = diff.sides
    added = tuple(group for group in diff.added if _is_beside(group, kernel.after, after))
    removed = tuple(group for group in diff.removed if _is_beside(group, kernel.before, before))
    slower = [
        other
        for other in diff.kernels
        if other is not kernel and other.change is Change.regressed
        if _is_beside(other.before, kernel.before, before)
        if _is_beside(other.after, kernel.after, after)
    ]
    if not (added or removed or slower):
        return None
    pairs = (kernel, *slower)
    seconds = _total([*(pair.before for pair in pairs), *removed], kernel) / kernel.before.count
    seconds_after = _total([*(pair.after for pair in pairs), *added], kernel) / kernel.after.count
    share = _total([kernel.before], kernel) / kernel.before.count / seconds
    times = _sums(seconds, seconds_after, Scope.kernels)
    return replace(times, share=share, added=added, removed=removed)


def _is_beside(group: Group, kernel: Group, side: Side) -> bool:
    label = side.timings.label_of(kernel)
    return not label or side.timings.label_of(group) == label


def _total(groups: Iterable[Group], kernel: KernelDiff) -> float:
    """Seconds of groups of launches; at the kernel's SM clock before, where clocks differ."""
    clock = kernel.before.typical.get("sm_clock")
    return math.fsum(
        group.total * (group.typical.get("sm_clock") / clock if kernel.in_cycles else 1.0)
        for group in groups
    )


def _sums(before: float, after: float, scope: Scope) -> Times:
    """The verdict on sums of ncu's durations (s)."""
    if not (before > 0 and after > 0):
        return Times(Change.incomparable, obstacle="no duration on a side")
    speedup, spread = before / after, noise(before, after)
    change = Change.improved if speedup > 1 else Change.regressed
    if within_noise(before, after):
        change = Change.same
    return Times(change, speedup, speedup / (1 + spread), speedup * (1 + spread), scope=scope)


def _of_call(kernel: KernelDiff, diff: Diff, sums: Times) -> Times:
    """The valid timed change of the variant that a kernel is of; the sums without one, and where
    their gain is too small a part of the call for its timing to show."""
    groups, before = (kernel.before, kernel.after), diff.sides[0]
    labels = [side.timings.label_of(group) for side, group in zip(diff.sides, groups, strict=True)]
    pairs = (each for each in diff.timed if [each.before.label, each.after.label] == labels)
    call = next((each for each in pairs if each.valid), None)
    if call is None:
        return sums
    measured = before.report.measured
    total = math.fsum(
        launch.duration for launch in measured if call.before.label in launch.launch.nvtx
    )
    part = kernel.before.total / sums.share / total
    is_seen = call.change in {Change.improved, Change.regressed}
    if not is_seen and part * abs(1 - 1 / sums.speedup) <= (call.margin or NOISE):
        return sums
    share = kernel.before.total / total
    times = _timed(call, Scope.call)
    return replace(times, share=share, added=sums.added, removed=sums.removed)


def _timed(change: TimedChange, scope: Scope) -> Times:
    ends = (change.low, change.high)
    low, high = (change.speedup if end is None else end for end in ends)
    return Times(change.change, change.speedup, low, high, timed=True, scope=scope)
