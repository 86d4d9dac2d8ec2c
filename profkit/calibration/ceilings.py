"""Measured roofs of a GPU: rates from samples, their checks, their file and document, those saved
per GPU."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from reprlib import repr as brief
from statistics import median
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, field, structs

from profkit.calibration.loads.answers import Measured
from profkit.capture.gpu import Moment
from profkit.core import typed_file
from profkit.core.errors import EnvironmentProblem
from profkit.core.file_name import file_name
from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.state_folder import read_state, state_folder, write_state
from profkit.core.typed_file import Amount, Count, Model, known
from profkit.core.version import __version__
from profkit.core.yaml_files import shipped_yaml
from profkit.hardware.gpus import Datasheet
from profkit.timing.statistics import summarize
from profkit.ui import document as doc
from profkit.ui.text import number, percent, plural

BYTES = "B/s"
MMA_SYNC = "_mma_sync"

LABELS: Mapping[str, str] = shipped_yaml("profkit.calibration", "ceilings.yaml")
"""Every roof that can be measured, and its label."""

STATISTIC = (
    "rate: median over short bursts of calls, each after a pause; "
    "steady: median over blocks of back-to-back calls, after a warm-up to a steady SM clock"
)
SLOW_TO_RISE = 0.02
"""The share by which a steady rate may exceed a burst's before the burst is doubtful: chosen, above
the spread of repeated measurements."""

_REMEDY = "run `profkit ceilings` on it, or give --ceilings FILE"
_SETTINGS = (
    "name", "uuid", "multiprocessors", "memory_bytes", "mig", "ecc", "power_limit", "sm_clock_max",
    "sm_clock_application",
)  # fmt: skip
_COLUMNS = ("Ceiling", "Rate", "Interval", "Of datasheet", "SM clock", "Steady", "Power")
_CAP = "software power cap"
_GAP = doc.Lines((), gap=True)
_L1_FILL = 64  # bytes per cycle and SM from L2 into L1, on every GPU from Volta on

if TYPE_CHECKING:
    Known = float
else:
    Known = Amount | None
Rate = Annotated[float, Meta(ge=1e-3, le=1e30)]


class CeilingRow(Model, frozen=True, kw_only=True):
    """A roof. `rate` is `amount`, the bytes, FLOP or operations of a call, over the median time of
    a call in short bursts after pauses; `low` to `temperature`, `throttled_by` and `share`, which
    is of `peak`, the datasheet's dense one, belong to it. `low` and `high` come from the ends of
    the median's interval, `level` is the coverage that it claims. `steady` and what is named so are
    under a steady load. `problem` says why the rate can't be what it is called."""

    # NaN is null in the file. Clocks (Hz), power (W) and temperature (degrees C) are medians.
    name: Annotated[str, Meta(extra_json_schema={"enum": list(LABELS)})]
    rate: Rate
    unit: Literal["B/s", "FLOP/s", "op/s"]
    method: str = field(name="how")
    amount: Rate
    samples: Annotated[int, Meta(ge=1)]
    low: Known = math.nan
    high: Known = math.nan
    level: Known = math.nan
    sm_clock: Known = math.nan
    sm_clock_low: Known = math.nan
    sm_clock_high: Known = math.nan
    power: Known = math.nan
    temperature: Known = math.nan
    peak: Known = math.nan
    steady: Known = math.nan
    steady_clock: Known = math.nan
    steady_power: Known = math.nan
    throttled_by: tuple[str, ...] = ()
    steady_throttled_by: tuple[str, ...] = ()
    share: Known = math.nan
    verified: bool = False
    problem: str = ""

    def __post_init__(self) -> None:
        if self.name not in LABELS:
            raise ValueError(f"{brief(self.name)} is not one of {', '.join(LABELS)}")
        for name in self.__struct_fields__:
            if getattr(self, name) is None:
                structs.force_setattr(self, name, math.nan)
        structs.force_setattr(self, "share", self.rate / self.peak if self.peak else math.nan)

    @property
    def label(self) -> str:
        return LABELS[self.name]

    @property
    def doubtful(self) -> bool:
        """Whether a steady load did better, so that the bursts were over before the clock rose."""
        return self.steady > self.rate * (1 + SLOW_TO_RISE)


class CeilingFile(typed_file.Output, frozen=True, kw_only=True, tag="profkit.ceilings/1"):
    """Measured roofs of one GPU. SI units: B/s, FLOP/s, op/s, Hz, W, degrees C, seconds; what is
    not known is null. `statistic` is what every rate is taken from, `left_out` has the roofs that
    could not be measured, and why, `neighbours` counts other processes on the GPU."""

    profkit: str = __version__
    created: str = ""
    statistic: str = STATISTIC
    gpu: Device
    ceilings: tuple[CeilingRow, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    other_processes: Count = field(default=0, name="neighbours")
    seconds: Amount = 0.0
    fingerprint: Fingerprint = Fingerprint()

    def __post_init__(self) -> None:
        if not self.gpu.name:
            raise ValueError("gpu has no 'name'")
        if len(self.rates) < len(self.ceilings):
            raise ValueError("duplicate roof")

    @property
    def rates(self) -> dict[str, CeilingRow]:
        """The roofs by name."""
        return {row.name: row for row in self.ceilings}

    @property
    def plain(self) -> dict[str, float]:
        """The rates alone, by name; those that can't be are left out."""
        return {row.name: row.rate for row in self.ceilings if not row.problem}

    @property
    def device(self) -> Device:
        """The GPU with the settings that roofs depend on, as far as they are known."""
        settings = self.fingerprint.gpu or Device()
        return structs.replace(settings, name=self.gpu.name, uuid=self.gpu.uuid or None)


def unit_of(name: str) -> Literal["B/s", "FLOP/s", "op/s"]:
    """The unit of a roof."""
    if name in {"dram", "dram_read", "l2"}:
        return "B/s"
    return "op/s" if "int8" in name else "FLOP/s"


def ceiling(
    name: str, loads: Sequence[Measured], sheet: Datasheet | None, sm_count: int
) -> CeilingRow:
    """The roof of the load whose bursts are fastest; raises BadInput for bad samples.

    `sheet` is the GPU's datasheet, None where none applies.
    """
    summaries = [summarize(load.samples) for load in loads]
    rates = [load.amount / summary.median for load, summary in zip(loads, summaries, strict=True)]
    best = max(range(len(loads)), key=rates.__getitem__)
    load, summary, rate = loads[best], summaries[best], rates[best]
    interval = summary.interval
    clocks = _values(load.moments, "sm_clock")
    clock = _median(clocks)
    physical = "dram" if name == "dram_read" else name.removesuffix(MMA_SYNC)
    peak = sheet.peaks.get(physical) if sheet else None
    boost = sheet.boost if sheet else math.nan
    return CeilingRow(
        name=name,
        rate=rate,
        low=load.amount / interval.high if interval else math.nan,
        high=load.amount / interval.low if interval else math.nan,
        unit=unit_of(name),
        method=load.method + (f" (fastest of {len(loads)} methods)" if len(loads) > 1 else ""),
        amount=load.amount,
        samples=summary.n,
        level=(interval.level if interval else None) or math.nan,
        sm_clock=clock,
        power=_median(_values(load.moments, "power")),
        temperature=_median(_values(load.moments, "temperature")),
        throttled_by=_reasons(load.moments),
        peak=peak.value if peak else math.nan,
        verified=peak.verified if peak else False,
        problem=_problem(name, rate, peak.value if peak else math.nan, boost, clock, sm_count),
        sm_clock_low=min(clocks, default=math.nan),
        sm_clock_high=max(clocks, default=math.nan),
        steady=load.amount / _median(load.steady_samples),
        steady_clock=_median(_values(load.steady_moments, "sm_clock")),
        steady_power=_median(_values(load.steady_moments, "power")),
        steady_throttled_by=_reasons(load.steady_moments),
    )


def cross_checked(rows: Mapping[str, CeilingRow]) -> Mapping[str, CeilingRow]:
    """The roofs by name, each with what another one says against it."""
    dram = max((rows[name].rate for name in ("dram", "dram_read") if name in rows), default=0.0)
    l2 = rows.get("l2")
    if l2 is None or l2.problem or l2.rate > dram:
        return rows
    problem = "not faster than DRAM: the data did not stay in L2"
    return {**rows, "l2": structs.replace(l2, problem=problem)}


def _problem(name: str, rate: float, peak: float, boost: float, clock: float, sm_count: int) -> str:
    """Why a rate is impossible; "" where it is not known to be.

    `peak` is the datasheet's at `boost` (Hz): units that run faster may do so much more.
    """
    if unit_of(name) == BYTES:
        if rate > peak:
            return "above the datasheet's peak: not all bytes came from DRAM"
        if name == "l2" and rate > _L1_FILL * sm_count * clock:
            return f"above {_L1_FILL} B per cycle and SM: not all bytes came from L2"
        return ""
    faster = clock / boost
    if rate > peak * max(1.0, faster if math.isfinite(faster) else 1.0):
        return "above the datasheet's peak at the measured SM clock: the operation count is wrong"
    return ""


def _values(moments: Sequence[Moment], name: str) -> list[float]:
    return [value for moment in moments if (value := getattr(moment, name)) is not None]


def _reasons(moments: Sequence[Moment]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reason for moment in moments for reason in moment.throttled_by))


def _median(values: Sequence[float]) -> float:
    return median(values) if values else math.nan


def unfit(ceilings: CeilingFile, gpu: Device) -> tuple[str, ...]:
    """Why these are not the roofs of a report's GPU, empty where nothing known speaks against it.

    `gpu` is as much as is known of it. What either side does not know is not compared.
    """
    pairs = {
        name: tuple(known(getattr(side, name)) for side in (ceilings.device, gpu))
        for name in _SETTINGS
    }
    return tuple(
        f"{name.replace('_', ' ')} {before} when measured, {now} in the report"
        for name, (before, now) in pairs.items()
        if before is not None and now is not None and before != now
    )


def read_ceilings(path: Path | str) -> CeilingFile:
    """The roofs in a file that `profkit ceilings` wrote; raises BadInput for any other."""
    return typed_file.read_file(Path(path), CeilingFile, "give a file of `profkit ceilings -o`")


def keep_ceilings(ceilings: CeilingFile) -> Path:
    """Save roofs for later plots of reports from this GPU; their file.

    One that has a `problem` is not saved. Raises EnvironmentProblem where nothing can be written.
    """
    sound = tuple(row for row in ceilings.ceilings if not row.problem)
    name = file_name(ceilings.gpu.uuid or ceilings.gpu.name or "")
    path = state_folder("ceilings") / f"{name}.json"
    write_state(path, typed_file.encode(structs.replace(ceilings, ceilings=sound), dense=False))
    return path


def find_ceilings(gpu: Device) -> CeilingFile:
    """The roofs saved of a GPU, the newest where several fit.

    `gpu` is what is known of it, its name at least. Where its UUID is not known, roofs of another
    GPU of that name are taken.

    Raises EnvironmentProblem where there are none, or none that still hold.
    """
    name = gpu.name or "unknown GPU"
    saved = [file for file in read_state("ceilings", CeilingFile) if file.gpu.name == name]
    if not saved:
        raise EnvironmentProblem(f"no measured ceilings of {name} are saved here", _REMEDY)
    fitting = [file for file in saved if not unfit(file, gpu)]
    newest = max(fitting or saved, key=lambda file: file.created)
    if fitting:
        return newest
    raise EnvironmentProblem(
        f"the saved ceilings of {name} are not of this GPU ({unfit(newest, gpu)[0]})", _REMEDY
    )


def ceilings_document(ceilings: CeilingFile, path: Path | None) -> doc.Document:
    """The roofs with their caveats; `path` is the file that they are saved in."""
    title = f"{ceilings.gpu.name or ''}: measured ceilings"
    methods = tuple(doc.Row(row.label, row.method) for row in ceilings.ceilings)
    notes = tuple(warnings(ceilings))
    last = (f"Time  {ceilings.seconds:.1f} s", *([f"Saved {path}"] if path else []))
    blocks: tuple[doc.Block, ...] = (
        doc.Heading(title, 1),
        _rates(ceilings),
        doc.Lines(tuple(_notes(ceilings))),
        _GAP,
        doc.Facts("", methods),
        *([_GAP] if notes else []),
        *map(doc.Note, notes),
        doc.Lines(last, gap=True),
    )
    return doc.Document(title, blocks)


def warnings(ceilings: CeilingFile) -> Iterator[str]:
    """Caveats of the ceilings, and those that could not be measured."""
    for row in ceilings.ceilings:
        if row.problem:
            yield f"{row.label}: impossible, {row.problem}"
    for row in ceilings.ceilings:
        reasons = dict.fromkeys((*row.throttled_by, *row.steady_throttled_by))
        if throttled := ", ".join(reason for reason in reasons if reason != _CAP):
            yield f"{row.label}: SM clock throttled ({throttled})"
        if row.doubtful:
            yield f"{row.label}: bursts slower than the steady load, the SM clock rose late"
    if ceilings.other_processes:
        others = plural(ceilings.other_processes, "other process")
        yield f"{others} on the GPU: actual ceilings may be higher"
    for name, reason in ceilings.left_out.items():
        yield f"{LABELS[name]}: not measured, {reason}"


def _rates(ceilings: CeilingFile) -> doc.Table:
    rows = tuple(
        (
            row.label,
            number(row.rate, row.unit),
            _interval(row),
            percent(row.share) + ("" if row.verified or math.isnan(row.share) else "?"),
            _whole(row.sm_clock / 1e6, "MHz"),
            number(row.steady, row.unit) + (" *" if _CAP in row.steady_throttled_by else ""),
            _whole(row.steady_power, "W"),
        )
        for row in ceilings.ceilings
    )
    return doc.Table("Rates", _COLUMNS, rows, words=1)


def _interval(row: CeilingRow) -> str:
    """Half of the interval against the rate; ≈ where no confidence level is stated."""
    if math.isnan(row.low):
        return "n/a"
    half = (row.high - row.low) / 2 / row.rate
    return f"{'≈' if math.isnan(row.level) else '±'}{half:.2%}"


def _whole(value: float, unit: str) -> str:
    return "n/a" if math.isnan(value) else f"{value:.0f} {unit}"


def _notes(ceilings: CeilingFile) -> Iterable[str]:
    rows = ceilings.ceilings
    yield "Rate and SM clock: short bursts. Steady rate and power: continuous load."
    if any(_CAP in row.steady_throttled_by for row in rows):
        yield "* SM clock limited by the power cap under continuous load."
    if capped := "; ".join(row.label for row in rows if _CAP in row.throttled_by):
        yield f"SM clock limited by the power cap in bursts too: {capped}."
    if any(not row.verified and not math.isnan(row.peak) for row in rows):
        yield "? share of an unverified datasheet figure."
