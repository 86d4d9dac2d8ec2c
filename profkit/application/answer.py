"""What an application's step is made of, what each part is limited by, and what fixes give the
program: the parts of the step, the findings on its picked kernels, and end-to-end gains.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace as replace_fields
from typing import Any, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from profkit.application import causes
from profkit.application.collectives import bandwidth_words
from profkit.application.groups import GroupRow, kernel_groups
from profkit.application.kernel_kinds import COMMUNICATION, kernel_traits
from profkit.application.parts import (
    ALLOCATION,
    COPIES,
    COPY_CALLS,
    GAPS,
    HOST_CODE,
    KERNELS,
    LAUNCH_BOUND,
    RANK_WAIT,
    SYNCHRONIZATION,
    Part,
    StepParts,
)
from profkit.application.picks_file import PickEntry
from profkit.application.run import ApplicationRun
from profkit.application.what_if import Change, Group
from profkit.core.grouping import grouped
from profkit.core.typed_file import Amount, Count, Model, Output, Real
from profkit.core.version import __version__
from profkit.rules.engine import AT_THE_ROOF
from profkit.rules.finding import Finding
from profkit.rules.tried import Tried
from profkit.timeline.callers import Caller
from profkit.timeline.events import Events
from profkit.timeline.modules import cost

WORTH = 1.02
"""Factors of the step from which a fix is in the plan: as `rules.checklist.WORTH_ACTING`."""
_SMALL = 0.005  # of the step, chosen: parts below it are summed up
_CAUSES: Mapping[tuple[str, str], str] = {
    (GAPS, LAUNCH_BOUND): "launch_bound",
    (GAPS, SYNCHRONIZATION): "synchronization",
    (GAPS, ALLOCATION): "allocation",
    (GAPS, COPY_CALLS): "pageable_copies",
    (GAPS, HOST_CODE): "data_loader",
    (COMMUNICATION, RANK_WAIT): "rank_imbalance",
    (COMMUNICATION, ""): "exposed_communication",
    (COPIES, ""): "pageable_copies",
}
"""The category of the finding about a part; "" is any other part of the group."""
_BUSY_KERNELS = "slow_kernel"
_PRECISION, _NO_TENSOR_CORES = "product_precision", "tensor_cores_unused"
_SMALL_GROUPS = "smaller groups"
_UNKNOWN_KERNELS = "CUDA graphs, whose kernels are unknown"
_ROUNDING = 1e-6  # of the step, chosen: what is left of sums of shares


class StepFacts(Model, frozen=True, kw_only=True):
    """The steps, or repetitions (`unit`): how they were found, seconds of the median one, its
    middle half, warm-up left out; `unprofiled` are seconds without a profiler, to which replays
    scale the host's times."""

    basis: str
    unit: str
    count: Count
    seconds: float
    low: float
    high: float
    left_out: str
    unprofiled: float | None = None


class PickedKernel(Model, frozen=True, kw_only=True):
    """A picked kernel of a group: its share of the step, its finding by ncu's counters, and the
    estimate of that, likely, low and high; `note` is why something is not known."""

    name: str
    grid: tuple[int, ...]
    share: float
    finding: str = ""
    speedup: tuple[float, float, float] | None = None
    note: str = ""


class ModuleRanges(Model, frozen=True, kw_only=True):
    """The ranges that were injected to name modules: their number, the seconds that they took the
    host, and what of it was in the steps, as share of these."""

    ranges: Count
    seconds: Amount
    share: Amount


class AnswerRow(Model, frozen=True, kw_only=True):
    """A part of the step: seconds, and the share of the step in which it ran alone or `hidden`
    behind other work. Of a group of kernels `finding` is what limits it, or what is known without
    one; `speedup` is the estimate of its kernels, likely, low and high, `gain` what the finding
    likely gives the step, `high` the end of its range. `note` is why something is not known."""

    group: str
    name: str
    seconds: float
    share: float
    hidden: float = 0.0
    finding: str = ""
    speedup: tuple[float, float, float] | None = None
    gain: Real = math.nan
    high: Real = math.nan
    note: str = ""
    kernels: tuple[PickedKernel, ...] = ()
    callers: tuple[Caller, ...] = ()


class PlanItem(Model, frozen=True, kw_only=True):
    """A fix of the plan, with the likely speedup of the step and its range, and the switches of
    `profkit try` that make it; `tried` is what these were measured to give. `bound` is what the fix
    gives at most by the kernels that it leaves, null where other kernels change, too."""

    part: str
    finding: str
    likely: float
    low: float
    high: float
    bound: Real = math.nan
    actions: tuple[str, ...]
    switches: tuple[str, ...] = ()
    tried: Tried | None = None

    @property
    def is_in_vain(self) -> bool:
        return self.tried is not None and self.tried.is_in_vain

    @property
    def is_proven(self) -> bool:
        return self.tried is not None and self.tried.is_proven

    @property
    def gain(self) -> float:
        """What is proven, else what is likely."""
        proven = self.tried.speedup if self.tried and self.tried.is_proven else None
        return proven or self.likely


class Answer(Output, frozen=True, kw_only=True, tag="profkit.answer/1"):
    """An application's step: its parts, which sum to its time, and a plan in order; `together` and
    `together_high` are what all of the plan gives, likely and at best, without what was `tried`
    in vain: by replay, but no less than what is proven or expected of any of them alone."""

    profkit: str
    name: str
    gpus: tuple[str, ...]
    ranks: Count
    steps: StepFacts
    modules: ModuleRanges | None = None
    rows: tuple[AnswerRow, ...]
    plan: tuple[PlanItem, ...]
    together: Real
    together_high: Real
    tried: tuple[Tried, ...] = ()


class _Kernel(Struct, frozen=True):
    """A picked kernel: its entry, indices in the events' tables, share, and what was found."""

    entry: PickEntry
    group: Group
    share: float
    item: Finding | None = None


class _Group(Struct, frozen=True):
    """A group of kernels, those of it that were picked, and what ncu's counters say of them: the
    finding that saves most, the factors of its kernels, and what these give the step by replay."""

    row: GroupRow
    kernels: tuple[_Kernel, ...]
    item: Finding | None = None
    speedup: tuple[float, float, float] | None = None
    high: float = math.nan


def answer(run: ApplicationRun) -> Answer:
    """The answer for a recorded application."""
    return _Reader(run).answer()


class _Reader:
    def __init__(self, run: ApplicationRun) -> None:
        self._run = run
        self._process = run.process
        self._parts = run.process.parts
        self._step = run.process.steps.median
        self._what_if = run.application.what_if
        found = run.application.findings
        self._items = {item.rule.category: item for item in found}
        self._causes = [
            item
            for item in found
            if item.rule.category != _BUSY_KERNELS and (item.tried or item.range[1] >= WORTH)
        ]
        self._checklist = run.checklist
        self._groups = tuple(self._grouped())

    def answer(self) -> Answer:
        run, parts = self._run, self._parts
        low, high = (np.quantile(parts.wall, (0.25, 0.75)) / 1e9).tolist()
        rows = (*self._group_rows(), *self._other_rows())
        plan = tuple(
            sorted(self._plan(), key=lambda item: (not item.is_proven, item.is_in_vain, -item.gain))
        )
        together, at_most = self._together([item for item in plan if not item.is_in_vain])
        return Answer(
            profkit=__version__,
            name=run.name,
            gpus=tuple(gpu.name for gpu in run.events.gpus),
            ranks=len(run.ranks.steps),
            steps=StepFacts(
                basis=str(parts.steps.basis),
                unit=parts.steps.basis.unit,
                count=len(parts.wall),
                seconds=self._step,
                low=low,
                high=high,
                left_out=parts.steps.warm_up,
                unprofiled=run.application.known,
            ),
            modules=_module_ranges(run.events, parts),
            rows=tuple(sorted(rows, key=lambda row: -row.share)),
            plan=plan,
            together=together,
            together_high=at_most,
            tried=run.application.tried.rows,
        )

    # Kernels

    def _grouped(self) -> Iterator[_Group]:
        process = self._process
        rows = kernel_groups(
            process.named,
            process.parts_named or process.parts,
            process.ranking,
            self._step,
            self._causes,
            None if process.apart else self._what_if,
        )
        picked = grouped((kernel_traits(each.entry.kernel).group, each) for each in self._picked())
        for row in rows:
            yield self._judged(_Group(row, tuple(picked.get(row.name, ()))))

    def _picked(self) -> Iterator[_Kernel]:
        named = self._process.named
        places = {}
        for use in reversed(self._process.ranking.kernels):  # of equal ones the first counts
            shape = named.configurations[use.configuration]
            places[named.kernel_names[use.name].name, shape.grid, shape.block] = use
        for entry in self._run.picks:
            known = places.get((entry.kernel, entry.grid, entry.block))
            if known is not None:
                group = known.name, known.configuration
                yield _Kernel(entry, group, known.share, self._item_of_kernel(entry))

    def _item_of_kernel(self, entry: PickEntry) -> Finding | None:
        report = self._run.report
        if report is None or entry.launch is None or self._checklist is None:
            return None
        launch = report.summary.launches[entry.launch]
        findings = [
            item
            for item in self._checklist.findings
            if item.group and launch in item.group.launches and item.rule.spans == "kernel"
        ]
        return max(findings, key=lambda item: not item.void_until and item.saved, default=None)

    def _judged(self, group: _Group) -> _Group:
        """With the findings of its picked kernels, weighted by their time; those that were not
        picked are like them."""
        profiled = [kernel for kernel in group.kernels if kernel.item]
        weight = sum(kernel.share for kernel in profiled)
        if not weight:
            return group
        saved: dict[str, float] = defaultdict(float)
        items: dict[str, Finding] = {}
        left = np.zeros(3)
        for kernel in profiled:
            item = cast("Finding", kernel.item)
            known = item.estimate
            factors = (known.likely, known.low, known.high) if known else (1.0, 1.0, 1.0)
            left += kernel.share / weight / np.array(factors)
            saved[item.rule.name] += kernel.share * (1 - 1 / factors[0])
            items.setdefault(item.rule.name, item)
        likely, low, high = (float(factor) for factor in 1 / left)
        return replace(
            group,
            item=items[max(saved, key=lambda name: saved[name])],
            speedup=(likely, low, high) if high > 1 else None,
            high=self._end_to_end(group, high),
        )

    def _end_to_end(self, group: _Group, gain: float) -> float:
        """What kernels of a group that are faster by a factor give the step by replay."""
        amdahl = self._amdahl(group, gain)
        if self._what_if is None or self._process.apart:
            return amdahl
        return min(amdahl, self._what_if.best(Change(kernels=self._faster(group, gain))))

    def _faster(self, group: _Group, gain: float) -> dict[Group, float]:
        uses = self._process.ranking.kernels
        own = [use for use in uses if use.group == group.row.name]
        return {(use.name, use.configuration): 1 / gain for use in own}

    def _group_rows(self) -> Iterator[AnswerRow]:
        left, small = sum(map(self._parts.share, self._parts.group(KERNELS))), 0.0
        titles = {item.title: item for item in self._causes}
        for group in self._groups:
            share = group.row.share
            left -= share
            if share < _SMALL:
                small += share
                continue
            cause = titles.get(group.row.title)
            yield self._row(
                KERNELS,
                group.row.name,
                share,
                finding=_finding(group),
                speedup=group.speedup,
                gain=cause.speedup if cause else self._likely(group),
                high=cause.range[1] if cause else group.high,
                kernels=tuple(map(_picked_kernel, group.kernels)),
                callers=group.row.callers,
            )
        if small > 0:
            yield self._row(KERNELS, _SMALL_GROUPS, small)
        if self._parts.group(KERNELS) and left > _ROUNDING:
            yield self._row(KERNELS, _UNKNOWN_KERNELS, left)

    def _row(self, group: str, name: str, share: float, **facts: Any) -> AnswerRow:
        seconds = share * self._step
        return AnswerRow(group=group, name=name, seconds=seconds, share=share, **facts)

    # Everything else

    def _other_rows(self) -> Iterator[AnswerRow]:
        small = 0.0
        for part in self._parts.parts:
            share = self._parts.share(part)
            if part.group == KERNELS or share <= 0:
                continue
            if share < _SMALL:
                small += share
                continue
            about = self._item_of(part)
            yield self._row(
                part.group,
                part.name,
                share,
                hidden=float(part.hidden.sum()) / self._parts.total,
                finding=about.title if about else "",
                gain=about.speedup if about else math.nan,
                high=about.range[1] if about else math.nan,
                note=self._note(part),
            )
        if small > 0:
            yield self._row(GAPS, "all else", small)

    def _note(self, part: Part) -> str:
        exchange = self._process.exchanges.get(part.name) if part.group == COMMUNICATION else None
        return bandwidth_words(exchange) if exchange else ""

    def _item_of(self, part: Part) -> Finding | None:
        category = _CAUSES.get((part.group, part.name)) or _CAUSES.get((part.group, ""))
        return self._items.get(category or "")

    # The plan

    def _plan(self) -> Iterator[PlanItem]:
        for cause in self._causes:
            yield PlanItem(
                part="",
                finding=cause.title,
                likely=cause.speedup,
                low=cause.range[0],
                high=cause.range[1],
                bound=cause.bound,
                actions=cause.actions,
                switches=cause.switches,
                tried=cause.tried,
            )
        for group in self._groups:
            item = group.item
            if item and group.speedup and self._is_fix(group):
                yield PlanItem(
                    part=group.row.name,
                    finding=item.title,
                    likely=self._likely(group),
                    low=self._amdahl(group, group.speedup[1]),
                    high=group.high,
                    actions=item.actions,
                )

    def _is_fix(self, group: _Group) -> bool:
        """Whether the finding of counters is one, and no cause of the step says the same."""
        item = group.item
        if item is None or item.rule.category == AT_THE_ROOF:
            return False
        is_known = item.rule.category == _NO_TENSOR_CORES and _PRECISION in self._items
        return not is_known and group.high >= WORTH

    def _likely(self, group: _Group) -> float:
        """What a group's kernels likely give the step."""
        likely = self._amdahl(group, group.speedup[0]) if group.speedup else math.nan
        return min(likely, group.high)

    def _amdahl(self, group: _Group, gain: float) -> float:
        return 1 / (1 - group.row.share * (1 - 1 / gain))

    def _together(self, items: Sequence[PlanItem]) -> tuple[float, float]:
        """What all fixes of the plan likely and at best give: by replay, and no less than any of
        them alone, which may gain more than a replay knows; likely no more than their product."""
        if self._what_if is None:
            return math.nan, math.nan
        open_ = [item for item in self._causes if not (item.tried and item.tried.is_in_vain)]
        change = causes.plan(name for item in open_ for name in item.rule.relieves)
        if not self._process.apart:
            faster: dict[Group, float] = {}
            for group in self._groups:
                if group.speedup and self._is_fix(group):
                    faster |= self._faster(group, group.speedup[2])
            change = replace_fields(change, kernels=faster)
        replayed = self._what_if.best(change)
        single = max((item.gain for item in items), default=1.0)
        highest = max((*(item.high for item in items), single))
        likely = min(replayed ** _reached(items), math.prod(item.gain for item in items))
        return max(likely, single), max(replayed, highest)


def _module_ranges(events: Events, parts: StepParts) -> ModuleRanges | None:
    """What the injected ranges cost the host; None without any."""
    count, spent, starts = cost(events, parts.steps.process)
    if not count:
        return None
    inside = float(parts.steps.has(starts, calls=True).mean()) if len(starts) else 0.0
    return ModuleRanges(ranges=count, seconds=spent / 1e9, share=inside * spent / parts.total)


def _reached(plan: Sequence[PlanItem]) -> float:
    """The power of the highest factors that the likely ones are, over a plan."""
    highest = sum(math.log(item.high) for item in plan)
    return sum(math.log(item.likely) for item in plan) / highest if highest else 1.0


def _finding(group: _Group) -> str:
    """What limits a group: of the step's causes, of its profiled kernels, or what names say."""
    if group.row.title:
        return group.row.title
    return group.item.title if group.item else group.row.statement


def _picked_kernel(kernel: _Kernel) -> PickedKernel:
    item, entry = kernel.item, kernel.entry
    known = item.estimate if item else None
    return PickedKernel(
        name=entry.kernel,
        grid=entry.grid,
        share=kernel.share,
        finding=item.title if item else "",
        speedup=(known.likely, known.low, known.high) if known else None,
        note=entry.reason,
    )
