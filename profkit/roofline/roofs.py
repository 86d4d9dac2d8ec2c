"""Roofs: what a GPU's memory can move and its units can compute, at the measured clock, of a
datasheet, or of a benchmark."""

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from profkit.core.typed_file import Model
from profkit.hardware.gpus import units_source
from profkit.hardware.precisions import PRECISIONS
from profkit.report.summary import (
    LaunchSummary,
    ReportSummary,
    Work,
    held_peak,
    is_clock_measured,
    span,
)

LEVELS = ("dram", "l2", "l1")
MMA_SYNC = "_mma_sync"
LEVEL_LABELS = {"dram": "DRAM", "l2": "L2", "l1": "L1"}
# What each level's roof bounds: the intensity must be of these bytes and no others.
TRAFFIC = {"dram": "dram_bytes", "l2": "l2_output_bandwidth", "l1": "l1_writeback_bandwidth"}
_MEMORY_ROOF = {
    "dram": "dram_bandwidth_peak",
    "l2": "l2_output_bandwidth_peak",
    "l1": "l1_writeback_bandwidth_peak",
}
_CLOCKS = {"sm_clock": "SM", "dram_clock": "DRAM"}
# The share of a launch's work from which a precision gets its roof. Chosen: less is index or
# conversion work, whose roof would clutter the plot.
_USED = 0.01
_TENSOR = "tensor "


class Peaks(StrEnum):
    """Where roofs come from: the report at the clock it held, the datasheet, or a measurement."""

    held = "held"
    datasheet = "datasheet"
    measured = "measured"


class Roof(Model, frozen=True):
    """A roof: B/s of a level of memory, or FLOP/s (op/s for INT8) of a precision.

    `key` is a level's name, a precision of `summary.PRECISIONS`, or a precision + "_mma_sync" where
    that path is slower than the chip's fastest. `verified` is false for an unverified figure of a
    datasheet, `by_units` true where no counter has the peak per cycle: it is that of the compute
    capability.
    """

    key: str
    label: str
    rate: float
    source: Peaks
    is_memory: bool
    verified: bool
    by_units: bool = False


def split(roofs: Iterable[Roof]) -> tuple[list[Roof], list[Roof]]:
    """Roofs of memory and roofs of arithmetic."""
    every = list(roofs)
    return [r for r in every if r.is_memory], [r for r in every if not r.is_memory]


class Roofs(Struct, frozen=True):
    """Where roofs are taken from; for what a source lacks, the report's own stands in for.

    `reference` is the launch whose own roofs are drawn.
    """

    peaks: Peaks
    measured: Mapping[str, float]
    reference: LaunchSummary | None = None

    def over(self, launch: LaunchSummary, key: str, *, timed: bool) -> Roof:
        """The roof that a point of a launch is compared with.

        It is the launch's own under ncu. A timed call ran at an unknown clock: the roof is
        the plotted one, of the report's highest clock.
        """
        own = self.roof(launch, key)
        if not timed or self.reference is None or own.source is not Peaks.held:
            return own
        drawn = self.roof(self.reference, key)
        return own if math.isnan(drawn.rate) else drawn

    def roof(self, launch: LaunchSummary, key: str) -> Roof:
        """The roof of a key for a launch; its rate is NaN where nothing tells it."""
        is_memory = key in LEVELS
        rate, by_units = _held(launch, key)
        source, verified = Peaks.held, True
        if self.peaks is Peaks.measured and key in self.measured:
            rate, source = self.measured[key], Peaks.measured
        if self.peaks is Peaks.datasheet:
            figure, looked_up = _datasheet(launch, key)
            if not math.isnan(figure):
                rate, source, verified = figure, Peaks.datasheet, looked_up
        by_units = by_units and source is Peaks.held
        return Roof(key, _label(key, launch), rate, source, is_memory, verified, by_units)

    def drawn(
        self, launches: Sequence[LaunchSummary], levels: Sequence[str], keys: Iterable[str]
    ) -> tuple[Roof, ...]:
        """The roofs at `levels`, of `keys` and of those that launches do more than a trace of their
        work against: the reference's, or of the first launch that has one."""
        if self.reference is None:
            return ()
        used = {key_of(work) for row in launches for work in row.work if work.share >= _USED}
        order = [key for precision in PRECISIONS for key in (precision, precision + MMA_SYNC)]
        compute = sorted(used.union(keys), key=order.index)
        every = [self.reference, *launches]
        rows = ((self.roof(launch, key) for launch in every) for key in (*levels, *compute))
        known = (next((roof for roof in row if not math.isnan(roof.rate)), None) for row in rows)
        return tuple(roof for roof in known if roof is not None)

    def notes(self, drawn: Sequence[Roof], report: ReportSummary) -> list[str]:
        """Notes on the roofs."""
        general = list(report.notes)
        nominal = self.nominal(drawn)
        if nominal:
            general.append(
                f"roofs use the nominal {' and '.join(nominal)} clock: "
                "the launches are too short to measure it"
            )
        notes = (
            (
                f"no {self.peaks} roof for {{}}: the report's own is used",
                [roof.label for roof in drawn if roof.source is not self.peaks],
            ),
            (
                "no counter for the roof of {}: it is FLOP per cycle and SM of the compute "
                f"capability ({units_source()}) x SMs x "
                f"{'nominal' if 'SM' in nominal else 'measured'} SM clock",
                [roof.label for roof in drawn if roof.by_units],
            ),
            (
                "unverified datasheet figures: {}",
                [roof.label for roof in drawn if not roof.verified],
            ),
        )
        return general + [note.format(", ".join(labels)) for note, labels in notes if labels]

    def nominal(self, drawn: Sequence[Roof]) -> tuple[str, ...]:
        """The clocks of drawn roofs that are nominal: `SM`, `DRAM`."""
        return tuple(label for key, label in _CLOCKS.items() if self._is_nominal(key, drawn))

    def _is_nominal(self, clock: str, drawn: Iterable[Roof]) -> bool:
        """Whether drawn roofs of the report stand at a clock that was not read."""
        depend = (
            roof.source is Peaks.held and (roof.key == "dram") == (clock == "dram_clock")
            for roof in drawn
            if roof.key != "l2"
        )
        return (
            self.reference is not None
            and any(depend)
            and not is_clock_measured(self.reference, clock)
        )


def _held(launch: LaunchSummary, key: str) -> tuple[float, bool]:
    """The report's own roof at the held clock, and whether it is by units, not by a counter."""
    if key in LEVELS:
        return launch.get(_MEMORY_ROOF[key]), False
    if key.endswith(MMA_SYNC):
        return launch.get(f"peak_rate_{key.removesuffix(MMA_SYNC)}_hmma"), False
    return held_peak(launch, key)


def _datasheet(launch: LaunchSummary, key: str) -> tuple[float, bool]:
    """A datasheet's figure and whether it was looked up; NaN where it has none that applies."""
    sheet = launch.gpu.datasheet
    if sheet is None or key not in sheet.peaks:
        return math.nan, False
    peak = sheet.peaks[key]
    own = (work.datasheet for work in launch.work if work.precision == key)
    return next(own, peak.value), peak.verified


def _label(key: str, launch: LaunchSummary) -> str:
    if key in LEVELS:
        return LEVEL_LABELS[key]
    precision = key.removesuffix(MMA_SYNC)
    label = PRECISIONS[precision]
    if key.endswith(MMA_SYNC):
        return f"{label.removeprefix(_TENSOR)} mma.sync"
    path = launch.get(f"peak_rate_{precision}_hmma")
    two_paths = path < launch.get(f"peak_rate_{precision}")
    return f"{label.removeprefix(_TENSOR)} wgmma" if two_paths else label


def key_of(work: Work) -> str:
    """The key of the roof that work of a launch stands against."""
    return work.precision if math.isnan(work.path_peak) else work.precision + MMA_SYNC


def attainable(compute: Roof, memory: Roof, intensity: float) -> tuple[float, str]:
    """The lower of both roofs at an intensity, and its key; NaN where neither is known."""
    bounds = [(compute.rate, compute.key), (intensity * memory.rate, memory.key)]
    known = [bound for bound in bounds if not math.isnan(bound[0])]
    return min(known) if known else (math.nan, "")


def reference(launches: Sequence[LaunchSummary]) -> LaunchSummary | None:
    """The launch of the highest clock among those long enough to read it, else the longest."""
    if clocked := span("sm_clock", launches):
        return clocked[1]
    return max(launches, key=lambda launch: launch.duration, default=None)
