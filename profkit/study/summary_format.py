"""A baseline's summary, `profkit.baseline/1`.

Numbers are in SI units, shares of 1, null is unknown.
"""

from typing import Literal

from msgspec import field

from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.typed_file import Amount, Count, File, Model
from profkit.study.matrix import Matrix
from profkit.study.plan_format import IMPORTED, Backend, Method, Origin, ProfiledCell, Program, Run
from profkit.timing.cell import CellStatus, Value
from profkit.timing.results import Verdict

COUNTED = "device"
GAPS = "gaps"
"""The claim of an interval of which too many samples may include host launch gaps: invalid."""


class _Identity(Model, frozen=True, kw_only=True):
    """Of a row: its cell, and the sizes of an attention target."""

    id: str
    shape: str
    at: int
    backend: str
    status: CellStatus
    reason: str
    arguments: dict[str, Value]
    gpu: str | None
    gpus: int = 1
    gpu_uuid: str | None = None
    version: str | None = None
    chosen: str | None = None
    file: str | None = None
    round: str | None = None
    batch: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    length: int | None = None
    dim: int | None = None
    causal: bool | None = None
    backward: bool | None = None
    dtype: str | None = None


class _Statistics(_Identity, frozen=True, kw_only=True):
    """Of a row: the statistics of its samples."""

    timer: str = ""
    cache: str = ""
    n: int | None = None
    blocks: int | None = None
    asked: int | None = None
    fewer: str = ""
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    claim: Literal["holds", "within run", "widened", "gaps", "if independent"] | None = None
    refused: str | None = None
    blocks_low: float | None = None
    blocks_high: float | None = None
    run_low: float | None = None
    run_high: float | None = None
    mean: float | None = None
    cv: float | None = None
    outliers: int | None = None
    startup: int | None = None
    autocorrelation: float | None = None
    effective_n: float | None = None
    drift: float | None = None
    independence: str | None = None
    dependence: tuple[str, ...] = ()
    late_submitted: int | None = field(default=None, name="overtaken")
    tick: float | None = None
    empty: float | None = None


class Row(_Statistics, frozen=True, kw_only=True):
    """A cell and the values derived from it.

    `seconds` is the median, `low` and `high` the ends of its interval: between-block at `level`,
    else within-run (`run_low`, `run_high`), without a level. `bytes` is the compulsory traffic.
    `sm_clock` is the median of the blocks' clocks, `clock_by` whether the device measured them or
    the driver (NVML) read them before each block; `clocked` blocks have device measurements, and
    `cycles` are the SM cycles of a call. `held_peak` is the dense peak at the measured clock
    (cycles over the median time, else `sm_clock`), `empty` (s) the timer overhead, `ridge` the
    intensity (FLOP/B) above which compute is the lower roof. `overtaken` samples
    (`late_submitted` in Python) may include host launch gaps. `power` (W) is the median of NVML
    readings before blocks. `steady`: the clock was stable at the end of the warm-up;
    `launch_bound`: host launch overhead above GPU time. `flags` are caveats.
    """

    flop: float | None = None
    bytes: float | None = None
    intensity: float | None = None
    flop_rate: float | None = None
    flop_rate_low: float | None = None
    flop_rate_high: float | None = None
    bandwidth: float | None = None
    tokens_per_second: float | None = None
    sm_clock: float | None = None
    clock_by: Literal["device", "driver"] | None = None
    clocked: int | None = None
    cycles: float | None = None
    throttled: dict[str, int] = field(default_factory=dict)
    power: float | None = None
    steady: bool | None = None
    launch_bound: bool | None = None
    precision: str | None = None
    held_peak: float | None = None
    share_of_held: float | None = None
    datasheet_peak: float | None = None
    share_of_datasheet: float | None = None
    verified: bool | None = None
    dram_peak: float | None = None
    share_of_dram: float | None = None
    ridge: float | None = None
    regime: Literal["compute", "memory"] | None = None
    peak_memory: int | None = None
    flags: tuple[str, ...] = ()

    @property
    def is_timed(self) -> bool:
        return self.seconds is not None

    @property
    def clock_is_read(self) -> bool:
        """Whether the SM clock is an NVML reading from before the samples."""
        return self.sm_clock is not None and self.clock_by != COUNTED


class Contrast(Model, frozen=True, kw_only=True):
    """The verdict on backend `b` against `a` at a shape.

    `speedup` is time of a over that of b. `p_adjusted` is Holm's, over all comparisons, `overlap`
    that of the intervals of the medians, `delta` Cliff's. `claimable`: b is faster by the classic
    rule, with a confidence level for both intervals, and by the verdict. `details` are the reasons
    for INVALID.
    """

    shape: str
    a: str
    b: str
    verdict: Verdict
    reason: str
    details: tuple[str, ...] = ()
    speedup: float
    low: float | None
    high: float | None
    p_value: float | None
    p_adjusted: float | None
    margin: float | None
    overlap: bool | None
    delta: float
    claimable: bool
    blocks: Count
    samples_in_a_block: Count


class Scaling(Model, frozen=True, kw_only=True):
    """Two adjacent cells of a backend that differ in the size `along`.

    `exponent` is that of time over the size, log(time ratio) / log(size ratio); `flop_exponent`
    that of the work.
    """

    before: str = field(name="from")
    after: str = field(name="to")
    backend: str
    along: str
    factor: float
    time_ratio: float
    flop_ratio: float | None
    exponent: float
    flop_exponent: float | None


class Best(Model, frozen=True):
    """The best of `among` cells that have `where` in common: by `by`, which is `measure`.

    `tied` are the others (their ids) that may be equal: backends without a verdict that they are
    slower, sizes whose intervals of the rate overlap.
    """

    kind: Literal["backend", "batch", "length"] = field(name="what")
    where: dict[str, Value]
    among: int
    id: str
    backend: str
    value: str | int
    by: Literal["seconds", "flop_rate"]
    measure: float
    tied: tuple[str, ...] = ()


class Options(Method, frozen=True, kw_only=True):
    """The requested options; `budget` in seconds. `device` is the one measured, or to be."""

    budget: Amount | None = None


class Quoted(Model, frozen=True, kw_only=True):
    """A GPU's datasheet: dense FLOP/s and B/s; `unverified` peaks have no checked source."""

    name: str
    peaks: dict[str, float]
    unverified: tuple[str, ...]


class BaselineFile(File, frozen=True, kw_only=True, tag="profkit.baseline/1"):
    """The summary derived from the cells of a baseline. SI units, shares of 1.

    `command` is the one that started it, `runs` are those that measured cells, the first and each
    --resume. `complete`: every cell was measured or has a final reason. `counts` are cells by
    status. `seconds` are of measuring, all runs together. `gpus` are the UUIDs of several GPUs,
    each shape measured on one of them.
    """

    profkit: str
    name: str
    created: str
    target: Program
    matrix: Matrix
    options: Options
    command: tuple[str, ...]
    runs: tuple[Run, ...] | None = None
    gpu: Device | None = None
    gpu_from: Origin
    gpus: tuple[str, ...] | None = None
    backends: tuple[Backend, ...]
    complete: bool = False
    datasheet: Quoted | None = None
    datasheet_note: str = ""
    fingerprints: dict[str, Fingerprint] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    cells: tuple[Row, ...] = ()
    comparisons: tuple[Contrast, ...] = ()
    scaling: tuple[Scaling, ...] = ()
    best: tuple[Best, ...] = ()
    notes: tuple[str, ...] = ()
    profiles: tuple[ProfiledCell, ...]
    seconds: Amount | None = None

    def __post_init__(self) -> None:
        if self.gpu is not None:
            self.gpu.refuse_unnamed()


def name_parts(target: Program, matrix: Matrix) -> tuple[str, ...]:
    """The name of a baseline: its target, and the matrix where that has another name."""
    return tuple(dict.fromkeys((target.name or IMPORTED, matrix.name)))
