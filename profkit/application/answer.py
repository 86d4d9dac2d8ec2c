"""What an application's step is made of, what each part is limited by, and what fixes give the
program: the parts of the step, the findings on its picked kernels, and end-to-end ceilings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import Struct

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
from profkit.application.run import ApplicationRun
from profkit.application.what_if import Change, Group, WhatIf
from profkit.core.typed_file import Count, Model, Output, Real
from profkit.core.version import __version__
from profkit.rules.checklist import application_items
from profkit.rules.engine import AT_THE_ROOF
from profkit.rules.finding import Finding
from profkit.rules.rule_file import shipped_rules

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


class StepFacts(Model, frozen=True, kw_only=True):
    """The steps: how they were found, seconds of the median one, its middle half, warm-up left
    out."""

    basis: str
    count: Count
    seconds: float
    low: float
    high: float
    left_out: str


class AnswerRow(Model, frozen=True, kw_only=True):
    """A part of the step: seconds, and the share of the step in which it ran alone or `hidden`
    behind other work. `speedup` is the estimate of its kernel, likely, low and high, `ceiling` the
    most that this gives the step; `note` is why something is not known. `grid` is that of a picked
    kernel."""

    group: str
    name: str
    kind: str = ""
    seconds: float
    share: float
    hidden: float = 0.0
    finding: str = ""
    speedup: tuple[float, float, float] | None = None
    ceiling: Real = math.nan
    note: str = ""
    grid: tuple[int, ...] = ()


class PlanItem(Model, frozen=True, kw_only=True):
    """A fix of the plan, with its likely and its highest speedup of the step."""

    part: str
    finding: str
    likely: float
    ceiling: float
    actions: tuple[str, ...]


class Answer(Output, frozen=True, kw_only=True, tag="profkit.answer/1"):
    """An application's step: its parts, which sum to its time, and a plan in order; `together` is
    what all of the plan gives by replay."""

    profkit: str
    name: str
    gpus: tuple[str, ...]
    ranks: Count
    steps: StepFacts
    rows: tuple[AnswerRow, ...]
    plan: tuple[PlanItem, ...]
    together: Real


class _Kernel(Struct, frozen=True):
    """A picked kernel: its entry, indices in the events' tables, share, what was found, and what a
    fix of it gives the step by replay."""

    entry: PickEntry
    group: Group
    share: float
    item: Finding | None = None
    ceiling: float = math.nan


def answer(run: ApplicationRun) -> Answer:
    """The answer for a recorded application."""
    return _Reader(run).answer()


class _Reader:
    def __init__(self, run: ApplicationRun) -> None:
        self._run = run
        self._parts = run.parts
        self._step = run.parts.steps.median
        self._exchanges = exchanges(run.events, run.parts.steps)
        quantities = causes.quantities(run.events, run.steps)
        self._what_if = WhatIf(run.events, run.steps) if quantities else None
        found = application_items(quantities, shipped_rules())
        self._items = {item.rule.category: item for item in found}
        self._causes = [
            item
            for category, item in self._items.items()
            if category != _BUSY_KERNELS and item.range[1] >= WORTH
        ]
        self._checklist = run.report.checklist() if run.report else None
        self._kernels = tuple(self._picked())

    def answer(self) -> Answer:
        run, parts = self._run, self._parts
        low, high = (np.quantile(parts.wall, (0.25, 0.75)) / 1e9).tolist()
        rows = (*self._kernel_rows(), *self._other_rows())
        return Answer(
            profkit=__version__,
            name=run.name,
            gpus=tuple(gpu.name for gpu in run.events.gpus),
            ranks=len(run.ranks.steps),
            steps=StepFacts(
                basis=str(parts.steps.basis),
                count=len(parts.wall),
                seconds=self._step,
                low=low,
                high=high,
                left_out=parts.steps.warm_up,
            ),
            rows=tuple(sorted(rows, key=lambda row: -row.share)),
            plan=tuple(sorted(self._plan(), key=lambda item: -item.ceiling)),
            together=self._together(),
        )

    # Kernels

    def _picked(self) -> Iterator[_Kernel]:
        named = self._run.named
        places = {}
        for use in reversed(self._run.ranking.kernels):  # of equal ones the first counts
            shape = named.configurations[use.configuration]
            places[named.kernel_names[use.name].name, shape.grid, shape.block] = use
        for entry in self._run.picks:
            known = places.get((entry.kernel, entry.grid, entry.block))
            if known is not None:
                yield self._kernel(entry, (known.name, known.configuration), known.share)

    def _kernel(self, entry: PickEntry, group: Group, share: float) -> _Kernel:
        share *= self._run.scale
        report = self._run.report
        if report is None or entry.launch is None or self._checklist is None:
            return _Kernel(entry, group, share)
        launch = report.summary.launches[entry.launch]
        findings = [
            item
            for item in self._checklist.findings
            if item.group and launch in item.group.launches and item.rule.spans == "kernel"
        ]
        item = max(findings, key=lambda item: not item.void_until and item.saved, default=None)
        gain = item.range[1] if item else math.nan
        ceiling = math.nan if math.isnan(gain) else self._end_to_end(group, share, gain)
        return _Kernel(entry, group, share, item, ceiling)

    def _end_to_end(self, group: Group, share: float, gain: float) -> float:
        """What a kernel that is faster by a factor gives the step by replay."""
        amdahl = 1 / (1 - share * (1 - 1 / gain))
        if self._what_if is None or self._run.named is not self._run.events:
            return amdahl
        return min(amdahl, self._what_if.ceiling(Change(kernels={group: 1 / gain})))

    def _kernel_rows(self) -> Iterator[AnswerRow]:
        share = self._run.kernel_share
        for kernel in self._kernels:
            item, entry = kernel.item, kernel.entry
            estimate = item.estimate if item else None
            is_profiled = self._checklist is not None and entry.launch is not None
            yield self._row(
                KERNELS,
                entry.kernel,
                kernel.share,
                kind=kernel_kind(entry.kernel),
                finding=item.title if item else "no finding" if is_profiled else "",
                speedup=(estimate.likely, estimate.low, estimate.high) if estimate else None,
                ceiling=kernel.ceiling,
                note=entry.reason,
                grid=entry.grid,
            )
            share -= kernel.share
        like, others = self._not_picked()
        alike = min(max(share, 0.0), sum(use.share for use in like) * self._run.scale)
        if like and alike > 0:
            yield self._summed(f"{len(like)} more kernels of these families", alike)
        if others and share > alike:
            yield self._summed(f"{len(others)} other kernels", share - alike)
        elif self._parts.group(KERNELS) and share - alike > _ROUNDING:
            yield self._row(KERNELS, _UNKNOWN_KERNELS, share - alike, kind=GRAPH)

    def _row(self, group: str, name: str, share: float, **facts: Any) -> AnswerRow:
        seconds = share * self._step
        return AnswerRow(group=group, name=name, seconds=seconds, share=share, **facts)

    def _summed(self, kernels: str, share: float) -> AnswerRow:
        return self._row(KERNELS, f"{kernels}, by name and launch configuration", share)

    def _not_picked(self) -> tuple[list[KernelUse], list[KernelUse]]:
        """The kernels that are not picked: of the families of those that are, and others."""
        families = {kernel_family(kernel.entry.kernel) for kernel in self._kernels}
        picked = {kernel.group for kernel in self._kernels}
        uses = self._run.ranking.kernels
        left = [use for use in uses if (use.name, use.configuration) not in picked]
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
            about = self._item_of(part)
            yield self._row(
                part.group,
                part.name,
                share,
                hidden=float(part.hidden.sum()) / self._parts.total,
                finding=about.title if about else "",
                ceiling=about.range[1] if about else math.nan,
                note=self._note(part),
            )
        if small > 0:
            yield self._row(GAPS, "all else", small)

    def _note(self, part: Part) -> str:
        exchange = self._exchanges.get(part.name) if part.group == COMMUNICATION else None
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
                ceiling=cause.range[1],
                actions=cause.actions,
            )
        for kernel in self._kernels:
            item = kernel.item
            if item and item.rule.category != AT_THE_ROOF and kernel.ceiling >= WORTH:
                likely = 1 / (1 - kernel.share * (1 - 1 / item.speedup))
                yield PlanItem(
                    part=kernel.entry.kernel,
                    finding=item.title,
                    likely=min(likely, kernel.ceiling),
                    ceiling=kernel.ceiling,
                    actions=item.actions,
                )

    def _together(self) -> float:
        """What all fixes of the plan give by replay."""
        if self._what_if is None:
            return math.nan
        change = causes.plan(name for item in self._causes for name in item.rule.relieves)
        if self._run.named is self._run.events:
            gains = {
                kernel.group: 1 / kernel.item.range[1]
                for kernel in self._kernels
                if kernel.item and kernel.ceiling >= WORTH
            }
            change = replace(change, kernels=gains)
        return self._what_if.ceiling(change)
