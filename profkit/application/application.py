"""An application's timeline: the steps of each process, their parts, the kernels that matter."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from profkit.application.collectives import Exchange, exchanges
from profkit.application.kernel_kinds import COMMUNICATION, GRAPH
from profkit.application.parts import (
    COPIES,
    FILLS,
    GAPS,
    KERNELS,
    MEANINGS,
    RANK_WAIT,
    UNRECORDED,
    Amounts,
    Part,
    StepParts,
    step_parts,
)
from profkit.application.ranking import EXPLAINED, KernelUse, Ranking, ranking
from profkit.application.steps import Steps, rank_order, steady_steps
from profkit.core.errors import BadInput
from profkit.timeline.events import Events
from profkit.timeline.lost_work import lost_work

TITLES = {
    KERNELS: "Kernels",
    COMMUNICATION: "Exposed communication",
    COPIES: "Exposed copies",
    FILLS: "Exposed memset",
    GAPS: "GPU idle",
    UNRECORDED: "Not recorded: idle, or lost work",
}
_TOP_OF_KIND = 3  # kernels listed of a kind; chosen: the rest is in JSON
_TOP_OF_GRAPH = 8  # kernels listed of graphs; chosen: as many as are picked
_SHOWN_FROM = 0.001  # share of the step from which a row is shown; chosen


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: its depth below a group, share of the wall time, means over steps.

    `time` and `hidden`, the time behind other work, are in seconds.
    """

    depth: int
    label: str
    time: float
    share: float
    hidden: float
    count: float
    note: str = ""


@dataclass(frozen=True, eq=False)
class Process:
    """A process of an application: what its steps on its GPU are made of.

    `ranking` is of `named`: the events, or those of a second recording that names the kernels of
    CUDA graphs (`apart`), whose shares are scaled to those of the first.
    """

    parts: StepParts
    ranking: Ranking
    named: Events
    exchanges: Mapping[str, Exchange]
    apart: bool = False

    @property
    def steps(self) -> Steps:
        return self.parts.steps


@dataclass(frozen=True, eq=False)
class Application:
    """A timeline as steps."""

    events: Events
    processes: tuple[Process, ...]

    def step_slices(self) -> list[tuple[str, int, int]]:
        """Name, start and end (ns) of each step of the first process."""
        bounds = self.processes[0].steps.bounds.tolist()
        return [
            (f"step {number}", start, end)
            for number, (start, end) in enumerate(itertools.pairwise(bounds))
        ]


def read_application(
    events: Events,
    nvtx: str | None = None,
    explain: float = EXPLAINED,
    named: Events | None = None,
) -> Application:
    """The steps of a timeline with their parts; `named` is a recording of the same program that has
    the kernels of its CUDA graphs. Raises BadInput without GPU work."""
    rows = []
    for steps in sorted(steady_steps(events, nvtx), key=rank_order):
        parts = step_parts(events, steps)
        ranked = ranking(events, parts, explain)
        rows.append(Process(parts, ranked, events, exchanges(events, steps)))
    if not rows:
        lost = lost_work(events)
        raise BadInput(
            f"{events.path}: no GPU work in this timeline{f': {lost}' if lost else ''}",
            "record more: `nsys profile -t cuda --cuda-graph-trace=node`",
        )
    if named is not None:
        by_device = {steps.device: steps for steps in steady_steps(named, nvtx)}
        rows = [_named(row, named, by_device.get(row.steps.device), explain) for row in rows]
    return Application(events, tuple(rows))


def _named(process: Process, named: Events, steps: Steps | None, explain: float) -> Process:
    if steps is None:
        return process
    parts = step_parts(named, steps)
    ranked = ranking(named, parts, explain)
    busy, known = (sum(map(each.share, each.group(KERNELS))) for each in (process.parts, parts))
    scale = busy / known if known else 1.0
    scaled = replace(
        ranked,
        kernels=tuple(replace(use, share=use.share * scale) for use in ranked.kernels),
        picks=tuple(replace(pick, share=pick.share * scale) for pick in ranked.picks),
    )
    return replace(process, ranking=scaled, named=named, apart=True)


def wall_row(process: Process) -> Row:
    """The step's wall time."""
    return Row(0, "Step", _wall(process), 1.0, 0.0, 1.0)


def table(process: Process) -> list[Row]:
    """The parts of a step, largest group first, kernels by kind with those that take most."""
    groups = []
    for group, title in TITLES.items():
        parts = process.parts.group(group)
        if not parts:
            continue
        whole = _summed(process, title, parts)
        rows = [whole]
        single = len(parts) == 1 and parts[0].name == group
        for part in () if single else parts:
            row = _row(process, 1, part.name, part.times, part.hidden, part.count)
            if max(row.share, row.hidden / _wall(process)) < _SHOWN_FROM:
                continue
            rows.append(_noted(row, MEANINGS.get(part.name, "")))
            rows += _kernels_of(process, part.name) if group == KERNELS else ()
        groups.append(rows)
    groups.sort(key=lambda rows: -rows[0].share)
    return [row for rows in groups for row in rows]


def _noted(row: Row, note: str) -> Row:
    return replace(row, note=note)


def _wall(process: Process) -> float:
    return process.parts.total / len(process.parts.wall) / 1e9


def _summed(process: Process, title: str, parts: tuple[Part, ...]) -> Row:
    times, hidden = (
        np.sum([getattr(part, column) for part in parts], axis=0) for column in ("times", "hidden")
    )
    count = sum(part.count for part in parts if part.name != RANK_WAIT)  # a part of collectives
    return _row(process, 0, title, times, hidden, count)


def _row(
    process: Process, depth: int, label: str, times: Amounts, hidden: Amounts, count: int
) -> Row:
    return Row(
        depth=depth,
        label=label,
        time=float(times.mean()) / 1e9,
        share=float(times.sum()) / process.parts.total,
        hidden=float(hidden.mean()) / 1e9,
        count=count / len(process.parts.wall),
    )


def _kernels_of(process: Process, kind: str) -> list[Row]:
    """The kernels of a kind that take most; of a graph those of the recording that names them."""
    inside = kind == GRAPH and process.apart
    by_name: dict[int, list[KernelUse]] = {}
    for use in process.ranking.kernels:
        if use.kind == kind or inside:
            by_name.setdefault(use.name, []).append(use)
    wall, steps = _wall(process), process.ranking.steps
    rows = []
    for name, uses in by_name.items():
        share = sum(use.share for use in uses)
        count = sum(use.launches for use in uses) / steps
        label = process.named.kernel_names[name].name
        rows.append(Row(2, label, share * wall, share, 0.0, count))
    rows.sort(key=lambda row: -row.share)
    shown = _TOP_OF_GRAPH if inside else _TOP_OF_KIND
    return [row for row in rows[:shown] if row.share >= _SHOWN_FROM]
