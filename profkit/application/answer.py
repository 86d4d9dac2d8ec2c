"""What an application's step is made of, what each part is limited by, and what fixes give the
program: the parts of the step, the findings on its picked kernels, and end-to-end ceilings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from profkit.application import causes
from profkit.application.collectives import bandwidth_words, exchanges
from profkit.application.kernel_kinds import COMMUNICATION, GRAPH, kernel_family, kernel_kind
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
)
from profkit.application.picks_file import PickEntry
from profkit.application.ranking import KernelUse
from profkit.application.ranks import Ranks, ranks_of
from profkit.application.run import ApplicationRun
from profkit.application.what_if import Change, Group, WhatIf
from profkit.report.summary import LaunchSummary
from profkit.rules.checklist import Checklist, application_items
from profkit.rules.engine import AT_THE_ROOF
from profkit.rules.finding import Estimate, Finding
from profkit.rules.rule_file import shipped_rules
from profkit.timeline.events import LaunchConfiguration

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
_UNKNOWN_KERNELS = "CUDA graphs, whose kernels are unknown"
_ROUNDING = 1e-6  # of the step, chosen: what is left of sums of shares


@dataclass(frozen=True)
class AnswerRow:
    """A part of the step: seconds and share of the step's time, the share in which it also ran
    hidden behind others, the finding, the estimated speedup of its kernel from fixing it, and the
    most that this gives the program. `note` is why something is not known; NaN is unknown. `grid`
    is that of a picked kernel."""

    group: str
    name: str
    kind: str
    seconds: float
    share: float
    hidden: float = 0.0
    finding: str = ""
    kernel_estimate: Estimate | None = None
    ceiling: float = math.nan
    note: str = ""
    grid: tuple[int, ...] = ()


@dataclass(frozen=True)
class PlanItem:
    """A fix: what it is of, its finding, the step's speedup, likely and at most, and actions."""

    part: str
    finding: str
    likely: float
    ceiling: float
    actions: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """What to know of an application, and to do: rows that sum to the step's time, a plan in order,
    and what all of the plan gives at most. `step` is the median step's seconds, `spread` its
    middle half; `ranks` are the processes that ceilings are of."""

    application: ApplicationRun
    ranks: Ranks
    step: float
    spread: tuple[float, float]
    rows: tuple[AnswerRow, ...]
    plan: tuple[PlanItem, ...]
    together: float


@dataclass(frozen=True)
class _Kernel:
    """A picked kernel: its entry, indices in the events' tables, share, and what was found."""

    entry: PickEntry
    group: Group
    share: float
    item: Finding | None
    launch: LaunchSummary | None
    ceiling: float


def answer(application: ApplicationRun) -> Answer:
    """The answer for a recorded application."""
    return _Reader(application).answer()


class _Reader:
    def __init__(self, application: ApplicationRun) -> None:
        self._application = application
        self._parts = application.parts
        self._step = self._parts.steps.median
        self._exchanges = exchanges(application.events, self._parts.steps)
        self._quantities = causes.quantities(application.events, application.steps)
        self._items = {
            item.rule.category: item
            for item in application_items(self._quantities, shipped_rules())
        }

    def answer(self) -> Answer:
        low, high = (np.quantile(self._parts.wall, (0.25, 0.75)) / 1e9).tolist()
        plan = tuple(sorted(self._plan(), key=lambda item: -item.ceiling))
        rows = (*self._kernel_rows(), *self._other_rows())
        return Answer(
            self._application,
            ranks_of(self._application.events, self._application.steps),
            self._step,
            (low, high),
            tuple(sorted(rows, key=lambda row: -row.share)),
            plan,
            self._together(),
        )

    # Kernels

    @cached_property
    def _what_if(self) -> WhatIf | None:
        return (
            WhatIf(self._application.events, self._application.steps) if self._quantities else None
        )

    @cached_property
    def _checklist(self) -> Checklist | None:
        report = self._application.report
        return report.checklist() if report else None

    @cached_property
    def _kernels(self) -> tuple[_Kernel, ...]:
        application = self._application
        named = application.named
        places = {
            (
                named.kernel_names[use.name].name,
                *_sizes(named.configurations[use.configuration]),
            ): use
            for use in reversed(application.ranking.kernels)  # of equal ones the first counts
        }
        kernels = []
        for entry in application.picks:
            use = places.get((entry.kernel, entry.grid, entry.block))
            if use is not None:
                group = use.name, use.configuration
                kernels.append(self._kernel(entry, group, use.share * application.scale))
        return tuple(kernels)

    def _kernel(self, entry: PickEntry, group: Group, share: float) -> _Kernel:
        report = self._application.report
        if report is None or entry.launch is None or self._checklist is None:
            return _Kernel(entry, group, share, None, None, math.nan)
        launch = report.summary.launches[entry.launch]
        findings = (
            item
            for item in self._checklist.findings
            if item.group and launch in item.group.launches and item.rule.spans == "kernel"
        )
        item = next(findings, None)
        gain = item.range[1] if item else math.nan
        ceiling = math.nan if math.isnan(gain) else self._end_to_end(group, share, gain)
        return _Kernel(entry, group, share, item, launch, ceiling)

    def _end_to_end(self, group: Group, share: float, gain: float) -> float:
        """What a kernel that is faster by a factor gives the step at most."""
        amdahl = 1 / (1 - share * (1 - 1 / gain))
        if self._what_if is None or self._application.named is not self._application.events:
            return amdahl
        return min(amdahl, self._what_if.ceiling(Change(kernels={group: 1 / gain})))

    def _kernel_rows(self) -> Iterator[AnswerRow]:
        parts = self._parts
        share = self._application.kernel_share
        for kernel in self._kernels:
            item, entry = kernel.item, kernel.entry
            yield AnswerRow(
                KERNELS,
                entry.kernel,
                kernel_kind(entry.kernel),
                kernel.share * self._step,
                kernel.share,
                finding=item.title if item else "no finding" if kernel.launch else "",
                kernel_estimate=item.estimate if item else None,
                ceiling=kernel.ceiling,
                note=entry.reason,
                grid=entry.grid,
            )
            share -= kernel.share
        like, others = self._not_picked
        alike = min(max(share, 0.0), sum(use.share for use in like) * self._application.scale)
        if like and alike > 0:
            yield self._summed(f"{len(like)} more kernels of these families", alike)
        if others and share > alike:
            yield self._summed(f"{len(others)} other kernels", share - alike)
        elif parts.group(KERNELS) and share - alike > _ROUNDING:
            seconds = (share - alike) * self._step
            yield AnswerRow(KERNELS, _UNKNOWN_KERNELS, GRAPH, seconds, share - alike)

    def _summed(self, kernels: str, share: float) -> AnswerRow:
        name = f"{kernels}, by name and launch configuration"
        return AnswerRow(KERNELS, name, "", share * self._step, share)

    @property
    def _not_picked(self) -> tuple[list[KernelUse], list[KernelUse]]:
        """The kernels that are not picked: of the families of those that are, and others."""
        families = {kernel_family(kernel.entry.kernel) for kernel in self._kernels}
        picked = {kernel.group for kernel in self._kernels}
        left = [
            use
            for use in self._application.ranking.kernels
            if (use.name, use.configuration) not in picked
        ]
        like = [use for use in left if use.family in families]
        return like, [use for use in left if use.family not in families]

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
            hidden = float(part.hidden.sum()) / self._parts.total
            about = self._item_of(part)
            yield AnswerRow(
                part.group,
                part.name,
                "",
                share * self._step,
                share,
                hidden,
                about.title if about else "",
                ceiling=about.range[1] if about else math.nan,
                note=self._note(part),
            )
        if small > 0:
            yield AnswerRow(GAPS, "all else", "", small * self._step, small)

    def _note(self, part: Part) -> str:
        exchange = self._exchanges.get(part.name) if part.group == COMMUNICATION else None
        return bandwidth_words(exchange) if exchange else ""

    def _item_of(self, part: Part) -> Finding | None:
        category = _CAUSES.get((part.group, part.name)) or _CAUSES.get((part.group, ""))
        return self._items.get(category or "")

    # The plan

    def _plan(self) -> Iterator[PlanItem]:
        for cause in self._causes:
            yield PlanItem("", cause.title, cause.speedup, cause.range[1], cause.actions)
        for kernel in self._kernels:
            item = kernel.item
            if item and item.rule.category != AT_THE_ROOF and kernel.ceiling >= WORTH:
                likely = 1 / (1 - kernel.share * (1 - 1 / item.speedup))
                yield PlanItem(
                    kernel.entry.kernel,
                    item.title,
                    min(likely, kernel.ceiling),
                    kernel.ceiling,
                    item.actions,
                )

    @property
    def _causes(self) -> list[Finding]:
        """The findings on the step as a whole that are in the plan."""
        return [
            item
            for category, item in self._items.items()
            if category != _BUSY_KERNELS and item.range[1] >= WORTH
        ]

    def _together(self) -> float:
        """What all fixes of the plan give at most."""
        if self._what_if is None:
            return math.nan
        change = causes.plan(name for item in self._causes for name in item.rule.relieves)
        if self._application.named is self._application.events:
            gains = {
                kernel.group: 1 / kernel.item.range[1]
                for kernel in self._kernels
                if kernel.item and kernel.ceiling >= WORTH
            }
            change = replace(change, kernels=gains)
        return self._what_if.ceiling(change)


def _sizes(shape: LaunchConfiguration) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    return shape.grid, shape.block


def summed(rows: Iterable[AnswerRow]) -> float:
    """The share of the step that rows have together."""
    return math.fsum(row.share for row in rows)
