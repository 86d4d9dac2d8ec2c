"""An application's timeline: the steps of each process, their parts, the kernels that matter."""

import itertools
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from profkit.application.causes import findings_of, replayed
from profkit.application.collectives import Exchange, exchanges
from profkit.application.groups import GroupRow, kernel_groups
from profkit.application.kernel_kinds import COMMUNICATION, GRAPH
from profkit.application.parts import (
    COPIES,
    FILLS,
    GAPS,
    KERNELS,
    RANK_WAIT,
    UNRECORDED,
    Amounts,
    Part,
    StepParts,
    step_parts,
)
from profkit.application.ranking import EXPLAINED, KernelUse, Pick, Ranking, ranking
from profkit.application.steps import Steps, rank_order, steady_steps
from profkit.application.what_if import WhatIf
from profkit.core.errors import BadInput
from profkit.core.grouping import grouped
from profkit.core.typed_file import Amount, Count, Model, Output, row_of
from profkit.rules.checklist import with_tried
from profkit.rules.checklist_format import FindingInFull, finding_row
from profkit.rules.finding import Finding
from profkit.rules.known_trial import NO_TRIAL, KnownTrial
from profkit.rules.rule_file import shipped_rules
from profkit.rules.tried import Tried
from profkit.timeline.events import Events, Times
from profkit.timeline.lost_work import failed_remedy, failed_tracing, lost_work, remedy

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
_SLOWED_DOWN = 0.95  # of the recorded step, chosen: less is within what steps vary by


Extent = tuple[Count, Count, Count]


class StepPartRow(Model, frozen=True, kw_only=True):
    """A part of the step: seconds in each step, and of what is hidden behind other work; `share` is
    of the wall time of all steps, and shares add up to 1. Of a collective operation whose messages
    are recorded `bus_bandwidth` is in B/s as by NCCL's tests, `link_bandwidth` that of NVLink's
    datasheet in one direction; null where unknown."""

    group: str
    name: str
    share: Amount
    count: Count
    seconds: tuple[Amount, ...]
    hidden: tuple[Amount, ...] = field(name="hidden_seconds")
    bus_bandwidth: Amount | None
    link_bandwidth: Amount | None


class StepKernelRow(Model, frozen=True, kw_only=True):
    """A kernel with a launch configuration in all steps: its time on the GPU's critical path, in
    which overlapping kernels share, and that as `share` of the wall time."""

    name: str
    group: str
    grid: Extent
    block: Extent
    launches: Count
    seconds: Amount
    median: Amount = field(name="median_s")
    share: Amount


class PickRow(Model, frozen=True, kw_only=True):
    """A launch that represents a kernel: its index among the launches of its process, and among
    those of its name, from 0; the NVTX ranges around it, outermost first."""

    name: str
    grid: Extent
    block: Extent
    share: Amount
    launch_index: Count
    skip: Count
    nvtx: tuple[str, ...]


class ProcessRow(Model, frozen=True, kw_only=True):
    """The steps of a process on its GPU: the wall time of each, the parts that sum to it, kernels
    and picked launches. `explained` is the share of the kernels' time that the groups of picked
    kernels have, `explained_alone` that of equal kernels; `left_out` counts the `unit` before the
    first step, `untypical` steps with other work."""

    device: int
    steps: str
    wall: tuple[Amount, ...] = field(name="wall_s")
    start: tuple[Amount, ...] = field(name="start_s")
    left_out: Count
    unit: str
    reason: str | None
    untypical: Count
    parts: tuple[StepPartRow, ...]
    kernels: tuple[StepKernelRow, ...]
    picks: tuple[PickRow, ...]
    explained: Amount
    explained_alone: Amount


class ApplicationFile(Output, frozen=True, kw_only=True, tag="profkit.application/1"):
    """What the steps of an application are made of, by process. Times are in seconds; starts from
    the first event of the recording. `checklist` has what a fix relieves, most time saved first,
    `groups` the kernels of the first process by what they do and what limits them; `untimed` counts
    events without valid times, which are left out; `tried` is what `profkit try` measured."""

    file: str
    gpus: tuple[str, ...]
    untimed: Count
    checklist: tuple[FindingInFull, ...]
    groups: tuple[GroupRow, ...]
    processes: tuple[ProcessRow, ...]
    tried: tuple[Tried, ...] = ()


class Row(Struct, frozen=True):
    """A line of the table: its depth below a group, share of the wall time, means over steps.

    `time` and `hidden`, the time behind other work, are in seconds.
    """

    depth: int
    label: str
    time: float
    share: float
    hidden: float = 0.0
    count: float = 1.0


class Process(Struct, frozen=True, eq=False):
    """A process of an application: what its steps on its GPU are made of.

    `ranking` is of `named`: the events, or those of a second recording that names the kernels of
    CUDA graphs (`apart`), with `parts_named`, whose shares are scaled to those of the first.
    """

    parts: StepParts
    ranking: Ranking
    named: Events
    exchanges: Mapping[str, Exchange]
    parts_named: StepParts | None = None

    @property
    def apart(self) -> bool:
        return self.parts_named is not None

    @property
    def steps(self) -> Steps:
        return self.parts.steps

    @property
    def mean(self) -> float:
        """Seconds of the mean step."""
        return self.parts.total / len(self.parts.wall) / 1e9


class Application(Struct, frozen=True, eq=False, dict=True):
    """A timeline as steps; `known` are the seconds of one without a profiler, `tried` is what
    switches did to the program."""

    events: Events
    processes: tuple[Process, ...]
    known: float | None = None
    tried: KnownTrial = NO_TRIAL

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What shipped rules find in the steps, most time saved first, after what is proven."""
        items = findings_of(self.events, self.what_if, shipped_rules())
        return with_tried(items, self.tried.rows)

    @cached_property
    def groups(self) -> tuple[GroupRow, ...]:
        """The groups of the first process's kernels."""
        first = self.processes[0]
        what_if = None if first.apart else self.what_if
        parts = first.parts_named or first.parts
        return kernel_groups(first.named, parts, first.ranking, first.mean, self.findings, what_if)

    @cached_property
    def what_if(self) -> WhatIf | None:
        """The replay of the steps, with changes; None without steps."""
        return replayed(self.events, [each.steps for each in self.processes], self.known)

    @property
    def is_slowed_down(self) -> bool:
        """Whether the profiler, which slows hosts down, makes steps longer; False where it is not
        known."""
        what_if = self.what_if
        if what_if is None or self.known:
            return False
        return what_if.present < _SLOWED_DOWN * what_if.recorded

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
    known: float | None = None,
    tried: KnownTrial = NO_TRIAL,
) -> Application:
    """The steps of a timeline with their parts; `named` is a recording of the same program that has
    the kernels of its CUDA graphs, `known` the seconds of a step without a profiler. Raises
    BadInput without GPU work."""
    rows = []
    for steps in sorted(steady_steps(events, nvtx), key=rank_order):
        parts = step_parts(events, steps)
        ranked = ranking(events, parts, explain)
        rows.append(Process(parts, ranked, events, exchanges(events, steps)))
    if not rows:
        lost, failed = lost_work(events), failed_tracing(events)
        more = failed_remedy(events) if failed else "record more: `nsys profile -t cuda`"
        message = ": ".join(filter(None, ("no GPU work in this timeline", lost or failed)))
        raise BadInput(f"{events.path}: {message}", remedy(events) if lost else more)
    if named is not None:
        by_device = {steps.device: steps for steps in steady_steps(named, nvtx)}
        rows = [_named(row, named, by_device.get(row.steps.device), explain) for row in rows]
    return Application(events, tuple(rows), known, tried)


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
    return replace(process, ranking=scaled, named=named, parts_named=parts)


def table(process: Process) -> list[Row]:
    """The parts of a step, largest group first, kernels by kind with those that take most; last the
    step."""
    groups = []
    for group, title in TITLES.items():
        parts = process.parts.group(group)
        if not parts:
            continue
        named = [part for part in parts if part.name != group]
        rows = [_row(process, 0, title, parts)]
        for part in named:
            row = _row(process, 1, part.name, (part,))
            if max(row.share, row.hidden / process.mean) >= _SHOWN_FROM:
                rows.append(row)
                rows += _kernels_of(process, part.name) if group == KERNELS else ()
        groups.append(rows)
    groups.sort(key=lambda rows: -rows[0].share)
    step = "Step (mean)" if len(process.parts.wall) > 1 else "Step"
    return [*(row for rows in groups for row in rows), Row(0, step, process.mean, 1.0)]


def _row(process: Process, depth: int, label: str, parts: Sequence[Part]) -> Row:
    steps = len(process.parts.wall)
    time, hidden = (
        float(np.sum([getattr(part, column) for part in parts])) / steps / 1e9
        for column in ("times", "hidden")
    )
    several = len(parts) > 1  # a wait for a rank is a part of collectives
    counted = (part for part in parts if not several or part.name != RANK_WAIT)
    count = sum(part.count - (part.shared if several else 0) for part in counted)
    return Row(depth, label, time, time / process.mean, hidden, count / steps)


def _kernels_of(process: Process, kind: str) -> list[Row]:
    """The kernels of a kind that take most; of a graph those of the recording that names them."""
    inside = kind == GRAPH and process.apart
    own = (use for use in process.ranking.kernels if use.group == kind or inside)
    by_name = grouped((use.name, use) for use in own)
    rows = []
    for name, uses in by_name.items():
        share = sum(use.share for use in uses)
        count = sum(use.launches for use in uses) / process.ranking.steps
        label = process.named.kernel_names[name].name
        rows.append(Row(2, label, share * process.mean, share, count=count))
    rows.sort(key=lambda row: -row.share)
    top = _TOP_OF_GRAPH if inside else _TOP_OF_KIND
    return [row for row in rows[:top] if row.share >= _SHOWN_FROM]


def application_result(application: Application, file: str) -> ApplicationFile:
    """The application as its file."""
    return ApplicationFile(
        file=file,
        gpus=tuple(gpu.name for gpu in application.events.gpus),
        untimed=application.events.untimed,
        checklist=tuple(finding_row(item, FindingInFull) for item in application.findings),
        groups=application.groups,
        processes=tuple(map(_process, application.processes)),
        tried=application.tried.rows,
    )


def _process(process: Process) -> ProcessRow:
    steps, parts, ranking = process.steps, process.parts, process.ranking
    return ProcessRow(
        device=steps.device,
        steps=str(steps.basis),
        wall=_seconds(parts.wall),
        start=_seconds(steps.bounds[:-1][steps.typical]),
        left_out=steps.before,
        unit=steps.unit,
        reason=steps.why or None,
        untypical=int((~steps.typical).sum()),
        parts=tuple(_part(process, part) for part in parts.parts),
        kernels=tuple(_kernel(process.named, use) for use in ranking.kernels),
        picks=tuple(_pick(process.named, pick) for pick in ranking.picks),
        explained=ranking.explained,
        explained_alone=ranking.own,
    )


def _seconds(times: Times | Amounts) -> tuple[float, ...]:
    return tuple(np.round(times / 1e9, 12).tolist())


def _part(process: Process, part: Part) -> StepPartRow:
    exchange = process.exchanges.get(part.name) if part.group == COMMUNICATION else None
    known = exchange if exchange and not exchange.reason else None
    return row_of(
        StepPartRow,
        part,
        share=process.parts.share(part),
        seconds=_seconds(part.times),
        hidden=_seconds(part.hidden),
        bus_bandwidth=known.bandwidth if known else None,
        link_bandwidth=known.link or None if known else None,
    )


def _kernel(events: Events, use: KernelUse) -> StepKernelRow:
    shape = events.configurations[use.configuration]
    return row_of(
        StepKernelRow,
        use,
        name=events.kernel_names[use.name].name,
        grid=shape.grid,
        block=shape.block,
        seconds=use.time / 1e9,
        median=use.median / 1e9,
    )


def _pick(events: Events, pick: Pick) -> PickRow:
    shape = events.configurations[pick.configuration]
    name = events.kernel_names[pick.name].name
    return row_of(PickRow, pick, name=name, grid=shape.grid, block=shape.block)
