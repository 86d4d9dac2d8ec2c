"""A report by kernel: time and share of each, and the quantities of each launch."""

from __future__ import annotations

import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from profkit.core.grouping import grouped
from profkit.core.typed_file import Model, Number, Real
from profkit.hardware.gpus import Gpu, gpu_of
from profkit.hardware.occupancy import BlockNeeds, Limits, NextStep, limiters, next_step
from profkit.hardware.precisions import PRECISIONS
from profkit.report.catalog import catalog
from profkit.report.checks import BOUND_TOLERANCE, NOT_TIMED, cache_note, contradictions, impossible
from profkit.ui.names import told_apart
from profkit.ui.text import extent, literal, number, plural, shorten

if TYPE_CHECKING:
    from profkit.report.launch_message import RuleResult
    from profkit.report.quantities import Quantities
    from profkit.report.reader import Launch, RawReport
    from profkit.report.session import Session

NOT_STALLED = frozenset({"selected", "not_selected"})
NAME_WIDTH = 40
"""Characters of a kernel's name in a `repr`: chosen, with what stands around it on one line."""
CLOCK_ERROR = 12e-6
"""Largest error of a clock measured in a launch, in seconds: |reading / clock - 1| x duration.

ncu counts cycles and measures time over different spans, in different replay passes, so that the
clock of a short launch is mostly error. The largest of 298 launches of 1.4 µs to 12 s on 14 GPUs
(CC 7.0 to 12.0), DRAM clocks against those of long launches: 12.4 µs in a launch of 96 µs (GTX
1660), 6 in 112 µs (RTX 2060 SUPER); 11.4 in one of 20 µs elsewhere. On an H200 it is under 1 µs,
but a report does not show that."""
# Share, chosen well above the 2% from which two reports are not comparable.
_CLOCK_MOVED = 0.05
_WHOLES = {
    "range": "range replay: time and counters cover all launches of the range; launch "
    "configuration and theoretical occupancy, which are of one, are left out",
    "graph": "graph as a whole: time and counters cover all its nodes, which are not told apart; "
    "launch configuration and theoretical occupancy, which are of one, are left out",
}
_SELECTED = "stall_selected"
# Warp samples, chosen: the standard error of a share of 30% is then 2 points.
_FEW_SAMPLES = 500


class Stall(Model, frozen=True):
    """A warp state; cycles per issued instruction, shares of a launch sum to 1."""

    reason: str
    cycles: Number
    share: Number

    @property
    def is_wait(self) -> bool:
        """False for the two that are no stalls: issuing, and eligible but not selected."""
        return self.reason not in NOT_STALLED


class Work(Model, frozen=True, kw_only=True):
    """Operations of one precision; `peak_held_clock` is the roof at the measured SM clock,
    `peak_path` that of the mma.sync path where it did most of the work and is lower."""

    precision: str
    operations: Number
    rate: Real
    peak: Real = field(name="peak_held_clock")
    share: Real = field(name="share_held_clock")
    path_peak: Real = field(name="peak_path")
    path_share: Real = field(name="share_path")
    datasheet: Real = field(name="peak_datasheet")
    datasheet_share: Real = field(name="share_datasheet")

    @property
    def label(self) -> str:
        return PRECISIONS[self.precision]


class Occupancy(Struct, frozen=True):
    """Resources that limit the resident blocks, and the requirements of the next higher occupancy.

    `resident_at_once`: all blocks of the grid fit at the same time, so that no higher occupancy is
    possible.
    """

    limits: Limits
    limiters: tuple[str, ...]
    needs: BlockNeeds
    step: NextStep | None
    resident_at_once: bool


@dataclass(frozen=True)
class LaunchSummary:
    """One launch: `values` has its catalog quantities, `missing` the reasons for the others.

    `notes` are about how the recording differs from the application.
    """

    launch: Launch
    gpu: Gpu
    values: Mapping[str, float]
    missing: Mapping[str, str]
    formulas: Mapping[str, str]
    notes: tuple[str, ...] = ()

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Of reports that other processes read, the words are shared too."""
        shared = {name: _shared(state[name]) for name in ("missing", "formulas")}
        values = {sys.intern(name): value for name, value in state["values"].items()}
        self.__dict__.update(state, **shared, values=values)

    @property
    def index(self) -> int:
        return self.launch.index

    @property
    def name(self) -> str:
        return self.launch.name

    @property
    def duration(self) -> float:
        return self.get("duration")

    @property
    def failed(self) -> bool:
        """Whether ncu's counters gave no duration: nothing of such a launch can be ranked."""
        return math.isnan(self.duration)

    @property
    def grid(self) -> tuple[int, ...]:
        return self._extent("grid")

    @property
    def block(self) -> tuple[int, ...]:
        return self._extent("block")

    @property
    def rules(self) -> Sequence[RuleResult]:
        return self.launch.rules

    @property
    def region(self) -> tuple[str, ...]:
        """Its NVTX ranges where it is of several launches, which have no name of their own."""
        return self.launch.nvtx if self.launch.workload in _WHOLES else ()

    @property
    def is_timed(self) -> bool:
        """Whether the duration is the launch's own, without work of ncu's."""
        return NOT_TIMED not in self.missing.values()

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What is invalid, uncertain or left out of its measurements."""
        return tuple(_warnings(self))

    @cached_property
    def impossible(self) -> frozenset[str]:
        """Quantities recorded with an impossible value."""
        return impossible(self.values)

    @cached_property
    def stalls(self) -> tuple[Stall, ...]:
        """Warp states, largest first; shares add up to 1. Empty where they were not collected."""
        cycles = {
            entry.name.removeprefix("stall_"): self.values[entry.name]
            for entry in catalog().group("stalls")
            if entry.name.startswith("stall_") and entry.name in self.values
        }
        total = sum(cycles.values())
        return tuple(
            Stall(reason, value, value / total)
            for reason, value in sorted(cycles.items(), key=lambda item: (-item[1], item[0]))
            if total
        )

    @cached_property
    def work(self) -> tuple[Work, ...]:
        return tuple(_work(self, precision) for precision in PRECISIONS)

    @cached_property
    def occupancy(self) -> Occupancy | None:
        names = ("registers", "shared", "warps", "blocks", "barriers")
        blocks = {name: self.get(f"occupancy_limit_{name}") for name in names}
        limits = Limits({name: int(most) for name, most in blocks.items() if not math.isnan(most)})
        if not limits.blocks or "block_size" not in self.values:
            return None
        needs = BlockNeeds(*(int(self.values.get(name, 0)) for name in _NEEDS))
        chip = self.gpu.chip
        if not all((chip.warps, chip.blocks, chip.registers, chip.shared, chip.schedulers)):
            return Occupancy(limits, (), needs, None, resident_at_once=False)
        resident = self.get("grid_size") <= self.get("sm_count") * limits.resident
        step = None if resident else next_step(limits, needs, chip)
        return Occupancy(limits, limiters(limits, needs, chip), needs, step, resident)

    def __repr__(self) -> str:
        name = shorten(literal(self.launch.function or self.name), NAME_WIDTH)
        return f"<LaunchSummary {self.index}: {name}, {number(self.duration, 's')}>"

    def get(self, name: str) -> float:
        """A quantity; NaN where it is missing."""
        return self.values.get(name, math.nan)

    def is_proxy(self, name: str) -> bool:
        """Whether a quantity is by a measure that is only near it."""
        alternatives = catalog().quantities[name].alternatives
        formula = self.formulas.get(name)
        return any(each.proxy and each.formula.text == formula for each in alternatives)

    def why_missing(self, name: str) -> str:
        return self.missing.get(name, "")

    def breakdown(self, name: str) -> list[tuple[str, float, float]]:
        """The parts of a breakdown as (key, value, share), largest first."""
        parts = self.launch.breakdowns.get(name, {})
        total = sum(parts.values())
        ordered = sorted(parts.items(), key=lambda part: (-part[1], part[0])) if total else []
        return [(key, value, value / total) for key, value in ordered]

    def _extent(self, shape: str) -> tuple[int, ...]:
        values = [self.get(f"{shape}_{axis}") for axis in "xyz"]
        return () if any(map(math.isnan, values)) else tuple(map(int, values))


def _warnings(launch: LaunchSummary) -> Iterator[str]:
    if launch.launch.workload in _WHOLES:
        yield _WHOLES[launch.launch.workload]
    if not launch.is_timed:
        # Besides the launches: kernels of 1 µs have 200 µs (ncu 2025.3 on an H200).
        active = launch.get("active_cycles") / launch.get("sm_clock")
        known = "" if math.isnan(active) else f": SMs were active for {number(active, 's')} of it"
        yield (
            f"{NOT_TIMED}{known}; rates and shares of the time are left out, timelines and "
            "kernel replay have them"
        )
    if launch.is_proxy(_SELECTED) and (samples := launch.get("pc_samples")) < _FEW_SAMPLES:
        yield (
            f"warp states are shares of {plural(int(samples), 'warp sample')}: uncertain by "
            "several percentage points"
        )
    yield from contradictions(launch.values, launch.gpu)
    for work in launch.work:
        if work.share > 1 + BOUND_TOLERANCE:
            above = f"{work.label} is {work.share:.0%} of its roof"
            yield f"invalid measurement: {above}; ignore it for this launch"


def clock_error(launch: LaunchSummary) -> float:
    """The largest relative error of a launch's measured clock; NaN without a duration."""
    return CLOCK_ERROR / launch.duration


def clocks_apart(name: str, first: LaunchSummary, second: LaunchSummary, threshold: float) -> bool:
    """Whether the clocks (`sm_clock`, `dram_clock`) of two launches differ by a share for certain.

    False where either is unknown, and where the difference may be an error of reading.
    """
    low, high = sorted((first.get(name), second.get(name)))
    return high > low * (1 + max(threshold, clock_error(first) + clock_error(second)))


def is_clock_measured(launch: LaunchSummary, name: str) -> bool:
    """Whether a launch is long enough that its `sm_clock` or `dram_clock` counts, by its roofs."""
    return launch.formulas.get(f"roof_{name}") == name


def span(
    name: str, launches: Sequence[LaunchSummary]
) -> tuple[LaunchSummary, LaunchSummary] | None:
    """The launches of the lowest and the highest clock of those that count; None without one."""
    counting = [launch for launch in launches if is_clock_measured(launch, name)]
    ordered = sorted(counting, key=lambda launch: launch.get(name))
    return (ordered[0], ordered[-1]) if ordered else None


class Group(Struct, frozen=True):
    """Launches of one kernel with one launch configuration, on one GPU.

    Times in seconds over the launches that ncu measured; `share` is of all such time in the report.
    `typical` is the launch of median duration. `namesakes` are the demangled names of all kernels
    among the launches grouped that have its function name, its own first.
    """

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    launches: tuple[LaunchSummary, ...]
    failed: int
    total: float
    median: float
    low: float
    high: float
    share: float
    typical: LaunchSummary
    namesakes: tuple[str, ...] = ()

    @property
    def region(self) -> tuple[str, ...]:
        """The NVTX ranges that tell it from others of its name, where it is of several launches."""
        return self.typical.region

    def __repr__(self) -> str:
        name, shape = shorten(literal(self.function), NAME_WIDTH), extent(self.grid)
        return f"<Group {name}, grid {shape}: {plural(self.count, 'launch')}>"

    @property
    def function(self) -> str:
        """The kernel's name without namespaces, template arguments and parameters."""
        return self.launches[0].launch.function or self.name

    def short_name(self, width: int, beside: Sequence[Group] = ()) -> str:
        """Its function's name, extended where other kernels of its report, or those in `beside`,
        have the same: CUTLASS names every kernel `Kernel`."""
        others = [each for each in beside if each.function == self.function]
        names = dict.fromkeys(name for each in (self, *others) for name in each.namesakes)
        if len(names) < 2:
            return shorten(literal(self.function), width)
        return told_apart(map(literal, names), width)[literal(self.name)]

    @property
    def count(self) -> int:
        return len(self.launches)

    @property
    def indexes(self) -> tuple[int, ...]:
        """Its launches, by their places in the report."""
        return tuple(launch.index for launch in self.launches)


class ReportSummary(Struct, frozen=True):
    """A report, or launches selected of its `recorded` ones, ready to be shown."""

    path: str
    session: Session
    recorded: int
    launches: tuple[LaunchSummary, ...]
    groups: tuple[Group, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        name, launches = Path(self.path).name, plural(len(self.launches), "launch")
        return f"<ReportSummary {name}: {launches} of {plural(len(self.groups), 'kernel')}>"

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        return tuple(dict.fromkeys(launch.gpu for launch in self.launches))

    @property
    def measured(self) -> tuple[LaunchSummary, ...]:
        return tuple(launch for launch in self.launches if not launch.failed)

    @property
    def total(self) -> float:
        """Seconds of all measured launches, NaN without any."""
        return sum(launch.duration for launch in self.measured) or math.nan


def summarize(raw: RawReport, quantities: Quantities) -> ReportSummary:
    """The summary of a report that all views show."""
    launches = _launches(raw, quantities)
    notes = tuple(_notes(launches, raw.session))
    recorded = raw.framing.launches
    return ReportSummary(str(raw.path), raw.session, recorded, launches, groups(launches), notes)


def _launches(raw: RawReport, quantities: Quantities) -> tuple[LaunchSummary, ...]:
    """The launches; those that lack the same for the same reasons have one mapping of these."""
    import numpy as np

    words = (*quantities.missing.values(), *quantities.formulas.values())
    table = np.column_stack([each.places for each in words])
    alike = grouped((places.tobytes(), row) for row, places in enumerate(table))
    summaries: dict[int, LaunchSummary] = {}
    for rows in alike.values():
        first = rows[0]
        reasons = {name: each[first] for name, each in quantities.missing.items()}
        missing = _shared({name: reason for name, reason in reasons.items() if reason})
        names = [name for name, reason in reasons.items() if not reason]
        formulas = _shared({name: quantities.formulas[name][first] or "" for name in names})
        values = np.array([quantities.values[name][rows] for name in names]).T.tolist()
        for place, row in enumerate(rows):
            own = dict(zip(names, values[place], strict=True)) if names else {}
            launch = raw.launches[row]
            gpu = gpu_of(launch.device)
            note = cache_note(own, gpu, raw.session.cache_control)
            summaries[row] = LaunchSummary(
                launch, gpu, own, missing, formulas, (note,) if note else ()
            )
    return tuple(summaries[row] for row in range(len(raw.launches)))


def _shared(words: Mapping[str, str]) -> Mapping[str, str]:
    """The words of a launch, the same object for launches with the same."""
    return _as_mapping(tuple(words.items()))


@lru_cache(1024)  # chosen: a few for each GPU and set of sections
def _as_mapping(words: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return {sys.intern(name): word for name, word in words}


def groups(launches: Sequence[LaunchSummary]) -> tuple[Group, ...]:
    """Launches by kernel, launch configuration and GPU, and several that were recorded as one by
    their NVTX ranges, most time first; groups without a measured launch last."""
    total = sum(launch.duration for launch in launches if not launch.failed)
    by_shape = defaultdict(list)
    names = defaultdict(list)
    for launch in launches:
        shape = launch.grid, launch.block, launch.region
        by_shape[launch.name, shape, launch.gpu.name].append(launch)
        names[launch.launch.function or launch.name].append(launch.name)
    unordered = []
    for (name, (grid, block, _), _), members in by_shape.items():
        measured = [launch for launch in members if not launch.failed]
        measured.sort(key=lambda launch: launch.duration)
        times = [launch.duration for launch in measured] or [math.nan]
        time = sum(times)
        namesakes = names[members[0].launch.function or name]
        group = Group(
            name=name,
            grid=grid,
            block=block,
            launches=tuple(members),
            failed=len(members) - len(measured),
            total=time,
            median=statistics.median(times),
            low=times[0],
            high=times[-1],
            share=time / total if total else math.nan,
            typical=measured[(len(measured) - 1) // 2] if measured else members[0],
            namesakes=tuple(dict.fromkeys([name, *namesakes])),
        )
        unordered.append(group)
    return tuple(sorted(unordered, key=lambda group: (group.failed == group.count, -group.total)))


def held_peak(launch: LaunchSummary, precision: str) -> tuple[float, bool]:
    """FLOP/s at the measured SM clock, and whether it is computed; NaN where it is unknown.

    Without a counter it is FLOP per cycle and SM x SMs x clock.
    """
    counted = launch.get(f"peak_rate_{precision}")
    if not math.isnan(counted):
        return counted * _accumulation(launch, precision), False
    per_cycle = launch.gpu.per_cycle(precision)
    rate = per_cycle * launch.gpu.sm_count * launch.get("roof_sm_clock") or math.nan
    return rate * _accumulation(launch, precision), not math.isnan(rate)


def _work(launch: LaunchSummary, precision: str) -> Work:
    kind = "ops" if precision.endswith("int8") else "flop"
    operations = launch.get(f"{kind}_{precision}")
    sheet = launch.gpu.datasheet.peaks.get(precision) if launch.gpu.datasheet else None
    # The mma.sync roof where that path did most of the work and is not the fastest one.
    path = launch.get(f"peak_rate_{precision}_hmma")
    mostly = launch.get("flop_tensor_hmma") > launch.get("flop_tensor") / 2
    is_slower = mostly and path < launch.get(f"peak_rate_{precision}")
    rate = operations / launch.duration if launch.duration and launch.is_timed else math.nan
    peak, path_peak = held_peak(launch, precision)[0], path if is_slower else math.nan
    datasheet = sheet.value * _accumulation(launch, precision) if sheet else math.nan
    return Work(
        precision=precision,
        operations=operations,
        rate=rate,
        peak=peak,
        share=rate / peak,
        path_peak=path_peak,
        path_share=rate / path_peak,
        datasheet=datasheet,
        datasheet_share=rate / datasheet,
    )


def _accumulation(launch: LaunchSummary, precision: str) -> float:
    """The factor of the mix of accumulator types on the rate with FP32 accumulation.

    GeForce cards accumulate in FP32 at a share of the rate in FP16: the time of both parts together
    gives the rate of the mix.
    """
    scale = launch.gpu.accumulation_scale
    in_fp16 = launch.get("flop_tensor_fp16_accumulate")
    if precision != "tensor_fp16" or scale == 1 or not in_fp16 > 0:
        return 1.0
    part = min(1.0, in_fp16 / launch.get("flop_tensor_fp16"))
    return 1 / (part * scale + 1 - part)


_NEEDS = (
    "block_size", "registers_per_thread", "shared_per_block", "shared_driver", "shared_carveout",
)  # fmt: skip


def _notes(launches: Sequence[LaunchSummary], session: Session) -> Iterator[str]:
    if failed := sum(launch.failed for launch in launches):
        yield (
            f"{failed} of {len(launches)} launches have no duration: their counters failed and "
            "they are not ranked; profile them again"
        )
    clocks = span("sm_clock", launches)
    origin = "ncu's default" if "clock-control" in session.assumed else "as requested"
    is_locked = session.clock_control == "base"
    if clocks and clocks_apart("sm_clock", *clocks, _CLOCK_MOVED):
        low, high = (launch.get("sm_clock") / 1e9 for launch in clocks)
        despite = f" though ncu was to lock it to base ({origin})" if is_locked else ""
        yield (
            f"the SM clock varied between launches, {low:.2f} to {high:.2f} GHz{despite}: times of "
            "compute-bound launches are not comparable"
        )
    elif is_locked:
        yield (
            f"ncu locked the SM clock to base ({origin}): launches run slower than at boost "
            "clocks, and memory appears faster relative to compute"
        )
    measured = "; roofs are computed from the report, at the measured clocks" if clocks else ""
    for note in filter(None, dict.fromkeys(launch.gpu.datasheet_note for launch in launches)):
        yield f"{note}{measured}"
