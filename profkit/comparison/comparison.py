"""Two reports compared kernel by kernel: verdict, causes, findings, other changes."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

from msgspec import Struct, field, structs

from profkit.comparison import comparability
from profkit.comparison.attribution import Attribution, Cause, CauseKind, attribute
from profkit.comparison.changes import Changed, OneSided, changes, one_sided
from profkit.comparison.finding_changes import (
    FindingChange,
    Limit,
    Status,
    finding_changes,
    limit,
)
from profkit.comparison.line_changes import LineChange, line_changes
from profkit.comparison.matching import Match, Mode, match
from profkit.comparison.problem_size import SizeEvidence, size_evidence
from profkit.comparison.repeats import Change, Profiled, judge
from profkit.comparison.replacement import Replacement, is_warm_up, replacements
from profkit.comparison.timed_change import TimedChange, Timings, same_samples, timed_change
from profkit.core.typed_file import Count, Model, Number, Real
from profkit.report.source_lines import LineCost
from profkit.report.summary import NAME_WIDTH, Group, LaunchSummary, ReportSummary
from profkit.rules.checklist import Checklist
from profkit.rules.finding import Finding
from profkit.timing.latency_view import times_as_fast
from profkit.ui.text import literal, number, plural

Sides = tuple["Side", "Side"]
_SHOWN = 10  # kernels in a `repr`: chosen, with their verdicts half a screen


class Side(Struct, frozen=True, dict=True):
    """A report with its findings and the latencies of its run.

    `line_costs` looks up the source lines of a launch by their time, where there is a source.
    """

    report: ReportSummary
    checklist: Checklist
    timings: Timings
    line_costs: Callable[[LaunchSummary], Sequence[LineCost]] = lambda _: ()

    @property
    def name(self) -> str:
        """The report's file name."""
        return literal(Path(self.report.path).name)

    def __repr__(self) -> str:
        return f"<Side {self.name}: {plural(len(self.report.launches), 'launch')}>"

    @cached_property
    def launches(self) -> Mapping[str, int]:
        """How many launches of the report each timed variant has."""
        return self.timings.launches_of(self.report)


class KernelDiff(Struct, frozen=True, dict=True):
    """A kernel before and after.

    `obstacles` keep its times from being compared: with any but a different SM clock there
    is no verdict, unless forced. `in_cycles`: the clock alone differs, so cycles are compared.
    `profiled` is the comparison of ncu's durations, `timed` that of its variant's latencies, where
    the variant is this one launch. Times in seconds.
    """

    match: Match
    obstacles: tuple[comparability.Obstacle, ...]
    profiled: Profiled | None
    in_cycles: bool
    timed: TimedChange | None
    sides: Sides

    @property
    def before(self) -> Group:
        return self.match.before

    @property
    def after(self) -> Group:
        return self.match.after

    @property
    def size(self) -> SizeEvidence | None:
        """Evidence of the problem's size from counters; None where both runs declare the
        problem."""
        if all(_problems(self.sides, self.before, self.after)):
            return None
        return size_evidence(self.before.typical, self.after.typical)

    @property
    def change(self) -> Change:
        """The verdict: the timing's where there is a valid one, else that of ncu's durations."""
        basis = self.timed if self.by_timing else self.profiled
        return basis.change if basis else Change.incomparable

    @property
    def by_timing(self) -> bool:
        """Whether the verdict is the timing's."""
        return self.timed is not None and self.timed.valid

    @property
    def basis(self) -> Literal["timing", "ncu", "cycles"] | None:
        """What the verdict rests on."""
        if self.by_timing:
            return "timing"
        return None if self.profiled is None else "cycles" if self.in_cycles else "ncu"

    @property
    def is_forced(self) -> bool:
        """Whether the verdict is that of ncu's durations in spite of its obstacles."""
        is_like = not self.obstacles or self.in_cycles
        return self.profiled is not None and not self.by_timing and not is_like

    @property
    def speedup(self) -> float:
        """Time before / time after, of what the verdict rests on; NaN without one."""
        basis = self.timed if self.by_timing else self.profiled
        return basis.speedup if basis else math.nan

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest speedup that the verdict's basis allows; NaN without one."""
        if self.timed and self.by_timing:
            low, high = self.timed.low, self.timed.high
            return math.nan if low is None else low, math.nan if high is None else high
        return self.profiled.range if self.profiled else (math.nan, math.nan)

    def __repr__(self) -> str:
        return f"<KernelDiff {self._summary}>"

    @property
    def _summary(self) -> str:
        """`transpose: IMPROVED, 328.2 µs → 145.0 µs, 2.26x faster [2.19, 2.34]`."""
        groups = (self.before, self.after)
        names = (group.short_name(NAME_WIDTH, groups) for group in groups)
        head = f"{' → '.join(dict.fromkeys(names))}: {self.change.value}"
        if self.change is Change.incomparable:
            return f"{head}, {self.obstacle_words}"
        factor = times_as_fast(self.speedup, *self.range)
        if self.in_cycles and not self.by_timing:
            return f"{head}, {factor} in SM cycles"
        medians = self.before.median, self.after.median
        if self.timed and self.by_timing:
            medians = self.timed.before.summary.median, self.timed.after.summary.median
        times = " → ".join(number(median, "s") for median in medians)
        return f"{head}, {times}, {factor}"

    @property
    def obstacle_words(self) -> str:
        """Why it has no verdict."""
        return "; ".join(map(str, self.obstacles)) or "no duration on a side"

    @property
    def saved(self) -> float:
        """Seconds of ncu's that all launches together take less than before; NaN if unknown."""
        return self.before.total - self.after.total

    @cached_property
    def attribution(self) -> Attribution | None:
        """Why the median launch takes another time; None where a side has no duration."""
        if not (self.before.median > 0 and self.after.median > 0):
            return None
        return attribute(self.before, self.after)

    @cached_property
    def findings(self) -> tuple[FindingChange, ...]:
        """How the findings changed, weightiest first."""
        before, after = self.sides
        return finding_changes(self.before, self.after, before.checklist, after.checklist)

    @property
    def resolved(self) -> tuple[FindingChange, ...]:
        changes = (change for change in self.findings if change.status is Status.resolved)
        return tuple(change for change in changes if change.is_reported)

    @cached_property
    def limit(self) -> Limit | None:
        """What limits the kernel after the change."""
        return limit(self.after, self.sides[1].checklist)

    @cached_property
    def changed(self) -> tuple[Changed, ...]:
        """Other changes, weightiest first."""
        return changes(self.before.typical, self.after.typical)

    @cached_property
    def one_sided(self) -> tuple[OneSided, ...]:
        """Quantities that only one side recorded."""
        return one_sided(self.before.typical, self.after.typical)

    @cached_property
    def lines(self) -> tuple[LineChange, ...]:
        """Its time by source line before and after, largest change first; () without a source.

        Nothing for a kernel that did not change. Looking lines up takes a while of each kernel.
        """
        if not self.changed:
            return ()
        before, after = self.sides
        return line_changes(
            before.line_costs(self.before.typical), after.line_costs(self.after.typical)
        )


class Total(Model, frozen=True, kw_only=True):
    """Times and launches of matched kernels that were compared, and of those on one side alone.

    `speedup` is null where they were launched more often on a side, which makes none faster.
    `causes` split their change and add up to it. `whole` is the speedup of all that was compared or
    replaced, `warm_up` (s on each side) apart. Kernels left out: `unmeasured` (some of their
    launches were not measured) and `incomparable` (or of a problem size that only one run has).
    """

    before: Number = field(name="before_s")
    after: Number = field(name="after_s")
    removed: Number = field(name="removed_s")
    added: Number = field(name="added_s")
    launches: tuple[Count, Count]
    speedup: Real
    whole: Real
    warm_up: tuple[Number, Number] = field(name="warm_up_s")
    causes: tuple[Cause, ...]
    unmeasured: Count
    incomparable: Count


class Diff(Struct, frozen=True, dict=True):
    """Two reports compared.

    `obstacles` are of the reports as wholes: with any of them, and not `forced`, nothing of their
    kernels is compared. That no kernel has a counterpart is one that can't be forced. `timed` are
    the verdicts on variants that both runs timed.
    """

    sides: Sides
    obstacles: tuple[comparability.Obstacle, ...]
    forced: bool
    kernels: tuple[KernelDiff, ...]
    removed: tuple[Group, ...]
    added: tuple[Group, ...]
    timed: tuple[TimedChange, ...]

    def __repr__(self) -> str:
        before, after = self.sides
        names = f"{before.name} → {after.name}"
        if self.refused:
            return f"<Diff {names}: not comparable, {self.obstacle_words}>"
        counts = {change.value: self.counted(change) for change in Change}
        counts |= {"removed": len(self.removed), "added": len(self.added)}
        verdicts = [f"{count} {word}" for word, count in counts.items() if count]
        lines = [f"  {kernel._summary}" for kernel in self.kernels[:_SHOWN]]
        if more := len(self.kernels) - len(lines):
            lines.append(f"  and {plural(more, 'more kernel')}")
        return "\n".join([f"<Diff {names}: {', '.join(verdicts)}", *lines]) + ">"

    @property
    def refused(self) -> bool:
        """Whether the reports can't be compared."""
        return bool(self.obstacles) and not (
            self.forced and comparability.can_be_forced(self.obstacles)
        )

    @property
    def obstacle_words(self) -> str:
        return "; ".join(map(str, self.obstacles))

    @property
    def incomparable(self) -> tuple[KernelDiff, ...]:
        """The kernels without a verdict."""
        return tuple(kernel for kernel in self.kernels if kernel.change is Change.incomparable)

    @property
    def removed_findings(self) -> tuple[Finding, ...]:
        """The findings with an estimated speedup on removed kernels."""
        checklist = self.sides[0].checklist
        return tuple(
            item for group in self.removed for item in checklist.findings_on(group) if item.estimate
        )

    @property
    def variants(self) -> tuple[TimedChange, ...]:
        """The timed verdicts that are no single kernel's."""
        of_kernels = {id(kernel.timed) for kernel in self.kernels}
        return tuple(timed for timed in self.timed if id(timed) not in of_kernels)

    def counted(self, change: Change) -> int:
        """How many kernels have a verdict."""
        return sum(kernel.change is change for kernel in self.kernels)

    @cached_property
    def unmatched(self) -> tuple[list[Group], list[Group]]:
        """The removed and the added kernels that were measured and that the other run could have
        had: of its problems and variants, unless the comparison is forced."""
        removed, added = (
            [g for g in groups if not g.failed] for groups in (self.removed, self.added)
        )
        if self.forced:
            return removed, added
        before, after = self.sides
        labels = [_labels(self.sides, kernel.match) for kernel in self.kernels]
        return (
            _alone(removed, before, after, {label for label, _ in labels}),
            _alone(added, after, before, {label for _, label in labels}),
        )

    @cached_property
    def replaced(self) -> tuple[Replacement, ...]:
        """The removed kernels in whose place others were added, those of most time first."""
        return replacements((kernel.match for kernel in self.kernels), *self.unmatched)

    @cached_property
    def total(self) -> Total:
        """The change over all launches, by cause."""
        return _total(self)


def diff(
    before: Side,
    after: Side,
    *,
    mode: Mode = Mode.auto,
    names: Mapping[str, str] | None = None,
    force: bool = False,
    floor: float | None = None,
) -> Diff:
    """Two reports compared, kernels in the order of the time that they took before or take now.

    `mode` and `names` are those of `match`. `force` compares what can't be compared. `floor` is the
    A/A floor between runs of the machine that timed both.
    """
    sides = before, after
    obstacles = comparability.reports_apart(before.report, after.report)
    if obstacles and not force:
        return Diff(sides, obstacles, False, (), (), (), ())

    def does_same_work(earlier: Group, later: Group) -> bool:
        problems = _problems(sides, earlier, later)
        return not comparability.size_apart(earlier, later, problems, is_named=False)

    matched = match(before.report.groups, after.report.groups, mode, names, does_same_work)
    timed = _timed(sides, matched.pairs, floor)
    kernels = [_kernel(pair, sides, timed, force) for pair in matched.pairs]
    kernels.sort(key=lambda kernel: -max(_known(kernel.before.total), _known(kernel.after.total)))
    variants = tuple(timed.values())
    if not kernels and not any(variant.valid for variant in variants):
        obstacles = (*obstacles, comparability.no_counterparts(before.report, after.report))
    return Diff(sides, obstacles, force, tuple(kernels), matched.removed, matched.added, variants)


def _problems(sides: Sides, before: Group, after: Group) -> comparability.Problems:
    return sides[0].timings.problem_of(before), sides[1].timings.problem_of(after)


def _labels(sides: Sides, pair: Match) -> tuple[str, str]:
    """The variants that the two sides of a match belong to, "" where one was not timed."""
    return sides[0].timings.label_of(pair.before), sides[1].timings.label_of(pair.after)


def _kernel(
    pair: Match, sides: Sides, timed: Mapping[tuple[str, str], TimedChange], force: bool
) -> KernelDiff:
    problems = _problems(sides, pair.before, pair.after)
    obstacles = comparability.kernels_apart(
        pair.before, pair.after, problems, is_named=pair.is_named
    )
    in_cycles = comparability.only_the_clock(obstacles) and not force
    comparable = not obstacles or in_cycles or (force and comparability.can_be_forced(obstacles))
    profiled = judge(pair.before, pair.after, in_cycles=in_cycles) if comparable else None
    labels = _labels(sides, pair)
    single = all(
        not label or side.launches[label] == 1 for side, label in zip(sides, labels, strict=True)
    )
    own = timed.get(labels) if single else None
    return KernelDiff(pair, obstacles, profiled, in_cycles, own, sides)


def _timed(
    sides: Sides, pairs: Sequence[Match], floor: float | None
) -> Mapping[tuple[str, str], TimedChange]:
    """The verdicts on all variants that matched kernels belong to, or that both sides have, by
    their labels; none where both are the very same samples."""
    before, after = (side.timings for side in sides)
    keys = [labels for pair in pairs if all(labels := _labels(sides, pair))]
    common = before.timed.keys() & after.timed.keys()
    for side in sides:
        if side.launches:  # a report that names its variants holds no other one
            common &= side.launches.keys()
    keys += [(label, label) for label in before.timed if label in common]
    return {
        (earlier, later): timed_change(before, after, (earlier, later), floor=floor)
        for earlier, later in dict.fromkeys(keys)
        if not same_samples(before.timed[earlier], after.timed[later])
    }


def _total(diff: Diff) -> Total:
    whole = [kernel for kernel in diff.kernels if not (kernel.before.failed or kernel.after.failed)]
    compared = [kernel for kernel in whole if kernel.change is not Change.incomparable]
    removed, added = diff.unmatched
    measured = sum(not group.failed for group in (*diff.removed, *diff.added))
    causes: dict[str, Cause] = {}
    for cause in (cause for kernel in compared for cause in _over_launches(kernel)):
        known = causes.get(cause.key)
        seconds = cause.seconds + (known.seconds if known else 0.0)
        causes[cause.key] = structs.replace(known or cause, seconds=seconds)
    times = _times(compared)
    launches = (
        sum(kernel.before.count for kernel in compared),
        sum(kernel.after.count for kernel in compared),
    )
    is_like = min(times) > 0 and launches[0] == launches[1]
    worked = [kernel for kernel in compared if not is_warm_up(kernel.after)]
    spent = _times(worked)
    warm_up = times[0] - spent[0], times[1] - spent[1]
    return Total(
        before=times[0],
        after=times[1],
        removed=sum(group.total for group in removed),
        added=sum(group.total for group in added),
        launches=launches,
        speedup=times[0] / times[1] if is_like else math.nan,
        whole=_whole(worked, diff.replaced),
        warm_up=warm_up,
        causes=tuple(sorted(causes.values(), key=lambda cause: -abs(cause.seconds))),
        unmeasured=len(diff.kernels) - len(whole) + len(diff.removed) + len(diff.added) - measured,
        incomparable=len(whole) - len(compared) + measured - len(removed) - len(added),
    )


def _times(kernels: Iterable[KernelDiff]) -> tuple[float, float]:
    """Seconds of all launches of some kernels, before and after."""
    groups = [(kernel.before, kernel.after) for kernel in kernels]
    return sum(before.total for before, _ in groups), sum(after.total for _, after in groups)


def _whole(kernels: Sequence[KernelDiff], replaced: Sequence[Replacement]) -> float:
    """The speedup of kernels with replaced ones; NaN where a side launched any more often."""
    before, after = _times(kernels)
    before += math.fsum(each.before for each in replaced)
    after += math.fsum(each.after for each in replaced)
    is_like = sum(each.before.count - each.after.count for each in kernels) == 0
    is_known = is_like and not any(math.isnan(each.speedup) for each in replaced)
    return before / after if is_known and min(before, after) > 0 else math.nan


def _alone(
    groups: Sequence[Group], side: Side, other: Side, matched: Collection[str]
) -> list[Group]:
    """Those of a side's own kernels that the other run could have had.

    Not those of a problem that it does not compute, nor, where it names its variants, of a variant
    that it did not profile: neither under this name nor `matched` to one of another name.
    """
    known = {problem.size for problem in other.timings.problems}
    profiled = other.launches.keys()

    def could_be(group: Group) -> bool:
        problem, variant = side.timings.problem_of(group), side.timings.label_of(group)
        is_of_it = not known or problem is None or problem.size in known
        has_it = not profiled or not variant or variant in profiled or variant in matched
        return is_of_it and has_it

    return [group for group in groups if could_be(group)]


def _over_launches(kernel: KernelDiff) -> Iterator[Cause]:
    """The causes of a kernel's change with their seconds over all its launches.

    Causes of the median launch count for the smaller number of launches on either side; launches
    more or fewer are a cause of their own, at the median of the side that has them; what the
    medians leave of the sums is the spread.
    """
    attribution = kernel.attribution
    if attribution is None:
        return
    before, after = (group.count - group.failed for group in (kernel.before, kernel.after))
    times = min(before, after)
    more = (after - before) * (kernel.after if after > before else kernel.before).median
    spread = kernel.after.total - kernel.before.total - attribution.change * times - more
    for cause in attribution.causes:
        yield Cause(cause.key, cause.label, cause.kind, cause.seconds * times)
    yield Cause("launches", "number of launches", CauseKind.launches, more)
    yield Cause("spread", "launches unlike the median", CauseKind.rest, spread)


def _known(seconds: float) -> float:
    return 0.0 if math.isnan(seconds) else seconds
