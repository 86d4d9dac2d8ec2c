"""Two recorded applications compared: step time with a verdict, parts of the step, kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from profkit.application.parts import KERNELS
from profkit.application.run import ApplicationRun
from profkit.timing.results import Claim, Interval, Reason, Summary
from profkit.timing.statistics import summarize
from profkit.timing.verdict import WithinRun, single_runs

FLOOR = 0.03
"""Relative difference of step times between two recordings of one program: steps of a GPT recorded
three times each differ by up to 1.2%, with and without nsys by up to 2%."""


@dataclass(frozen=True)
class PartChange:
    """A part of the step in both runs: mean seconds a step, 0 where it is absent."""

    group: str
    name: str
    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after - self.before


@dataclass(frozen=True)
class ApplicationDiff:
    """Two runs of an application. `parts` and `kernels` have the largest change first; changes of
    the parts sum to that of the mean step. `steps` are statistics of step times, in seconds."""

    before: ApplicationRun
    after: ApplicationRun
    steps: tuple[Summary, Summary]
    within: WithinRun
    parts: tuple[PartChange, ...]
    kernels: tuple[PartChange, ...]


def compare_applications(before: ApplicationRun, after: ApplicationRun) -> ApplicationDiff:
    """The comparison of two runs."""
    first, second = (_step_times(run) for run in (before, after))
    return ApplicationDiff(
        before,
        after,
        (first, second),
        single_runs(first, second, FLOOR),
        _changes(_parts(before), _parts(after)),
        _changes(_kernels(before), _kernels(after)),
    )


def _step_times(run: ApplicationRun) -> Summary:
    summary = summarize(run.parts.wall / 1e9)
    if summary.refused is not Reason.CONSTANT:
        return summary
    median = summary.median
    return structs.replace(summary, interval=Interval(median, median, None, Claim.WITHIN_RUN))


def _parts(run: ApplicationRun) -> dict[tuple[str, str], float]:
    return {
        (part.group, part.name): float(np.mean(part.times)) / 1e9
        for part in run.parts.parts
        if part.times.any()
    }


def _kernels(run: ApplicationRun) -> dict[tuple[str, str], float]:
    """Seconds a step on the GPU's critical path by kernel, all launch configurations together."""
    step = run.parts.total / len(run.parts.wall) / 1e9
    seconds: dict[tuple[str, str], float] = {}
    for use in run.ranking.kernels:
        key = KERNELS, run.named.kernel_names[use.name].name
        seconds[key] = seconds.get(key, 0.0) + use.share * step * run.scale
    return seconds


def _changes(
    before: Mapping[tuple[str, str], float], after: Mapping[tuple[str, str], float]
) -> tuple[PartChange, ...]:
    changes = [
        PartChange(*key, before.get(key, 0.0), after.get(key, 0.0)) for key in {**before, **after}
    ]
    return tuple(sorted(changes, key=lambda row: -abs(row.change)))
