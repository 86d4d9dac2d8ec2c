"""An application's timeline as JSON, `profkit.application/1`."""

from __future__ import annotations

from msgspec import field

from profkit.application.application import Application, Process
from profkit.application.kernel_kinds import COMMUNICATION
from profkit.application.parts import Part
from profkit.application.ranking import KernelUse, Pick
from profkit.core.projection import Projection
from profkit.core.typed_file import Amount, Count, File, encode
from profkit.timeline.events import Events

Extent = tuple[Count, Count, Count]


class StepPartRow(Projection, frozen=True, kw_only=True):
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


class StepKernelRow(Projection, frozen=True, kw_only=True):
    """A kernel with a launch configuration in all steps: its time on the GPU's critical path, in
    which overlapping kernels share, and that as `share` of the wall time."""

    name: str
    kind: str
    family: str
    grid: Extent
    block: Extent
    launches: Count
    seconds: Amount
    median: Amount = field(name="median_s")
    share: Amount


class PickRow(Projection, frozen=True, kw_only=True):
    """A launch that represents a kernel: its index among the launches of its process, and among
    those of its name, from 0; the NVTX ranges around it, outermost first."""

    name: str
    grid: Extent
    block: Extent
    share: Amount
    launch_index: Count
    skip: Count
    nvtx: tuple[str, ...]


class ProcessRow(Projection, frozen=True, kw_only=True):
    """The steps of a process on its GPU: the wall time of each, the parts that sum to it, kernels
    and picked launches. `explained` is the share of the kernels' time that the families of picked
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


class ApplicationFile(File, frozen=True, kw_only=True, tag="profkit.application/1"):
    """What the steps of an application are made of, by process. Times are in seconds; starts from
    the first event of the recording."""

    file: str
    gpus: tuple[str, ...]
    processes: tuple[ProcessRow, ...]


def application_json(application: Application, file: str) -> str:
    """The application as a file."""
    events = application.events
    return encode(
        ApplicationFile(
            file=file,
            gpus=tuple(gpu.name for gpu in events.gpus),
            processes=tuple(_process(process) for process in application.processes),
        )
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


def _seconds(times: object) -> tuple[float, ...]:
    import numpy as np

    return tuple(float(value) for value in np.round(np.asarray(times) / 1e9, 12))


def _part(process: Process, part: Part) -> StepPartRow:
    exchange = process.exchanges.get(part.name) if part.group == COMMUNICATION else None
    known = exchange if exchange and not exchange.reason else None
    return StepPartRow(
        group=part.group,
        name=part.name,
        share=process.parts.share(part),
        count=part.count,
        seconds=_seconds(part.times),
        hidden=_seconds(part.hidden),
        bus_bandwidth=known.bandwidth if known else None,
        link_bandwidth=known.link or None if known else None,
    )


def _kernel(events: Events, use: KernelUse) -> StepKernelRow:
    shape = events.configurations[use.configuration]
    return StepKernelRow(
        name=events.kernel_names[use.name].name,
        kind=use.kind,
        family=use.family,
        grid=shape.grid,
        block=shape.block,
        launches=use.launches,
        seconds=use.time / 1e9,
        median=use.median / 1e9,
        share=use.share,
    )


def _pick(events: Events, pick: Pick) -> PickRow:
    shape = events.configurations[pick.configuration]
    return PickRow(
        name=events.kernel_names[pick.name].name,
        grid=shape.grid,
        block=shape.block,
        share=pick.share,
        launch_index=pick.launch_index,
        skip=pick.skip,
        nvtx=pick.nvtx,
    )
