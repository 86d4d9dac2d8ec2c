"""Saved latencies: what `profkit time` wrote, a bare list, or others' JSON with raw latencies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from profkit.capture.gpu import Moment
from profkit.core.errors import BadInput, UsageError
from profkit.core.fields import Fields, number
from profkit.core.integrity import check_unchanged
from profkit.core.text_files import WrongFormat, parse_json, read_text

SCHEMA = "profkit.time/1"
CELL = "profkit.cell/1"
CPU = "cpu"
IN_A_RUN = "latency.json"
UNITS: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
TIMERS = ("events", "graph", "cupti", "wall", "")
CACHES = ("cold", "warm", "")
SHORTEST, LONGEST = 1e-12, 1e6
_RAW = ("raw_latencies", "latencies", "samples")
_CAPABILITY = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}")
_LARGEST_GROUP = 1_000_000


@dataclass(frozen=True)
class Recorded:
    """A block of samples, in seconds a call in the order of time, and the GPU during it.

    `turn` counts the blocks of all series in the order in which they were taken; `overtaken` the
    samples that the GPU began before the host had submitted them. `sm_clock` (Hz) is the mean that
    the SMs counted over the samples, `gpu` what the driver told just before them.
    """

    samples: tuple[float, ...]
    turn: int
    seconds: float | None = None
    gpu: Moment | None = None
    overtaken: int | None = None
    sm_clock: float | None = None


@dataclass(frozen=True)
class Claimed:
    """The median and its 95% interval that a file gives beside its samples, in seconds."""

    median: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Latency:
    """Samples of one variant, with what is known of how they were taken.

    `target` is what the target declares (name, shapes, dtype, work), `gpu` the fingerprint's
    device, both empty where unknown; `ready` holds what was learnt before the samples (seconds),
    `check` the variant's check against the reference.
    """

    label: str
    blocks: tuple[Recorded, ...]
    timer: str = ""
    cache: str = ""
    target: Mapping[str, Any] = field(default_factory=dict)
    gpu: Mapping[str, Any] = field(default_factory=dict)
    ready: Mapping[str, Any] = field(default_factory=dict)
    check: Mapping[str, Any] = field(default_factory=dict)
    claimed: Claimed | None = None

    @property
    def measured_with(self) -> tuple[str, str, str]:
        """What an A/A floor is of: the GPU's UUID (or `cpu`), the timer, the cache."""
        device = CPU if self.timer == "wall" else self.gpu.get("uuid") or ""
        return device, self.timer, self.cache

    @property
    def samples(self) -> tuple[float, ...]:
        """All samples in the order of time."""
        return tuple(value for block in self.blocks for value in block.samples)

    @property
    def clocks_counted(self) -> tuple[float, ...]:
        """The SM clock (Hz) of blocks as the SMs counted it; empty where under half have one."""
        counted = [block.sm_clock for block in self.blocks if block.sm_clock]
        return tuple(counted) if 2 * len(counted) >= len(self.blocks) else ()

    @property
    def cycles(self) -> tuple[float, ...]:
        """SM cycles of a call by block: its mean time, without a tenth of the samples at either
        end, at the clock that was counted over it."""
        return tuple(
            block.sm_clock * _trimmed_mean(block.samples)
            for block in self.blocks
            if block.sm_clock and self.clocks_counted
        )

    @property
    def clocks_read(self) -> tuple[float, ...]:
        """The SM clock (Hz) as the driver told it just before a block, where it did."""
        return tuple(
            block.gpu.sm_clock for block in self.blocks if block.gpu and block.gpu.sm_clock
        )

    @property
    def clocks(self) -> tuple[float, ...]:
        """The SM clock (Hz) of blocks: as counted over them, else as read before them."""
        return self.clocks_counted or self.clocks_read

    @property
    def took_turns(self) -> bool:
        """Whether blocks of others lie between its own: never three of its own in a row."""
        turns = [block.turn for block in self.blocks]
        if len(turns) < 3:
            return len(turns) == 2 and turns[1] - turns[0] > 1
        return all(later - turn > 2 for turn, later in zip(turns, turns[2:], strict=False))


def _trimmed_mean(samples: Sequence[float]) -> float:
    cut = len(samples) // 10
    kept = sorted(samples)[cut : len(samples) - cut]
    return sum(kept) / len(kept)


@dataclass(frozen=True)
class Saved:
    """A file of latencies, and the document around them (empty unless `profkit time` wrote it)."""

    path: str
    latencies: tuple[Latency, ...]
    document: Mapping[str, Any]


def read_latencies(path: Path, unit: str | None = None) -> Saved:
    """The latencies of a file, or of a run's folder.

    `unit` is that of a bare list, which can't tell. Raises BadInput for a file without latencies
    or with anything in them that can't be, UsageError where the unit is needed and missing.
    """
    path = _in_a_run(path) if path.is_dir() else path
    text = read_text(path)
    check_unchanged(path)
    try:
        return _read(path, text, unit)
    except BadInput as error:
        raise BadInput(f"{path}: {error.message}", error.remedy or "check the file") from None


def _in_a_run(folder: Path) -> Path:
    """The latencies of a run's folder, or of a target's that holds one run."""
    runs = sorted(folder.glob(f"[!.]*/{IN_A_RUN}"))
    return runs[0] if len(runs) == 1 else folder / IN_A_RUN


def _read(path: Path, text: str, unit: str | None) -> Saved:
    try:
        document = parse_json(text)
    except WrongFormat:
        document = _numbers_by_line(text)
    if isinstance(document, list):
        return Saved(str(path), (_bare(path, document, unit),), {})
    if not isinstance(document, dict):
        raise BadInput("holds no latencies", "give a list, or what `profkit time` wrote")
    if document.get("schema") == CELL:
        return _of_a_cell(path, document)
    if str(document.get("schema", "")).startswith("profkit."):
        return Saved(str(path), _own(document), document)
    return Saved(str(path), (_others(path, document, unit),), {})


def latency_from_json(row: Mapping[str, Any]) -> Latency:
    """A series of `profkit.time/1`, its blocks in the order of time.

    Raises BadInput where a field that is made use of is missing or of another kind.
    """
    series = Fields(row, "")
    series.needs("label")
    blocks = [_block(block) for block in series.rows("blocks")]
    if not blocks:
        raise BadInput("there are no blocks")
    return Latency(
        label=series.text("label"),
        blocks=tuple(sorted(blocks, key=lambda block: block.turn)),
        timer=series.text("timer", TIMERS),
        cache=series.text("cache", CACHES),
        target=_target(series.fields("target")),
        gpu=_gpu(series.fields("gpu")),
        ready=_ready(series.fields("ready")),
        check=series.fields("check").row,
    )


def _own(document: Mapping[str, Any]) -> tuple[Latency, ...]:
    if document["schema"] != SCHEMA:
        raise BadInput(f"{brief(document['schema'])}, not {SCHEMA}", "give another file")
    try:
        found = [_series(row, at) for at, row in enumerate(_surroundings(document).rows("series"))]
    except BadInput as error:
        raise BadInput(f"not a whole {SCHEMA} ({error.message})", "time it anew") from None
    if not found:
        raise BadInput("holds no samples", "time it anew")
    _refuse_twice("the label", [latency.label for latency in found])
    _refuse_twice("turn", [block.turn for latency in found for block in latency.blocks])
    return tuple(found)


def _of_a_cell(path: Path, document: Mapping[str, Any]) -> Saved:
    """The latency of a baseline's cell, with the surroundings that it was measured in."""
    row = document.get("latency")
    if not isinstance(row, Mapping):
        raise BadInput("a cell that was not measured", "give another cell")
    _surroundings(document)
    around = {name: document.get(name) for name in ("fingerprint", "fingerprint_sha256")}
    return Saved(str(path), (_series(row, 0),), {k: v for k, v in around.items() if v})


def _surroundings(document: Mapping[str, Any]) -> Fields:
    """The document, once what is told around the series is found to be of its kind."""
    fields = Fields(document, "")
    fields.whole("seed", 0)
    fields.number("warmup", 0)
    fields.number("floor", 0)
    fields.text("fingerprint_sha256")
    versions = fields.fields("fingerprint").fields("versions")
    for name in versions.row:
        versions.text(name)
    return fields


def _series(row: Any, at: int) -> Latency:
    if not isinstance(row, Mapping):
        raise BadInput(f"series {at + 1} is no object")
    try:
        return latency_from_json(row)
    except BadInput as error:
        raise BadInput(f"series {at + 1}: {error.message}") from None


def _refuse_twice(what: str, values: Sequence[str] | Sequence[int]) -> None:
    (value, count), *_ = Counter(values).most_common(1)
    if count > 1:
        raise BadInput(
            f"{what} {brief(value)} is there {count} times", "time all series in one run"
        )


def _block(row: Any) -> Recorded:
    if not isinstance(row, Mapping):
        raise BadInput("a block is no object")
    block = Fields(row, "block")
    turn = block.whole("turn", 0)
    samples = tuple(_latency(value) for value in block.rows("samples"))
    if turn is None or not samples:
        raise BadInput(f"a block has no {'turn' if turn is None else 'samples'}")
    gpu = None if row.get("gpu") is None else _moment(block.fields("gpu"))
    overtaken = block.whole("overtaken", 0)
    clock = block.number("sm_clock", 0)
    return Recorded(samples, turn, block.number("seconds", 0), gpu, overtaken, clock)


def _moment(row: Fields) -> Moment:
    return Moment(
        row.number("sm_clock", 0),
        row.number("power", 0),
        row.number("temperature"),
        row.texts("throttled_by"),
    )


def _target(target: Fields) -> Mapping[str, Any]:
    for name in ("name", "dtype"):
        target.text(name)
    target.fields("shapes")
    work = target.fields("work")
    if work.row:
        work.needs("flop", "bytes")
    work.text("what")
    work.number("flop", 0)
    work.number("bytes", 0)
    return target.row


def _gpu(gpu: Fields) -> Mapping[str, Any]:
    if gpu.row:
        gpu.needs("name", "compute_capability", "multiprocessors", "memory_bytes")
    for name in ("name", "uuid", "driver"):
        gpu.text(name)
    if gpu.row and not _CAPABILITY.fullmatch(gpu.text("compute_capability")):
        told = brief(gpu.row["compute_capability"])
        raise BadInput(f"gpu.compute_capability is {told}, not as '9.0'")
    gpu.whole("multiprocessors", 0)
    gpu.whole("memory_bytes", 0)
    return gpu.row


def _ready(ready: Fields) -> Mapping[str, Any]:
    for name in ("rough", "host", "empty", "flush", "warmup"):
        ready.number(name, 0, LONGEST)
    ready.flag("steady")
    ready.flag("waits")
    ready.whole("group", 1, _LARGEST_GROUP)
    memory = ready.fields("memory")
    for name in ("peak_allocated", "peak_reserved", "allocations"):
        memory.whole(name, 0)
    return ready.row


def _others(path: Path, document: Mapping[str, Any], unit: str | None) -> Latency:
    key = next((name for name in _RAW if isinstance(document.get(name), list)), None)
    if key is None:
        raise BadInput("holds no list of latencies", f"looked for {', '.join(_RAW)}")
    statistics = document.get("statistics")
    statistics = statistics if isinstance(statistics, dict) else {}
    told = _implied_unit(statistics)
    if unit is not None and told not in {None, unit}:
        raise UsageError(f"{path}: says that its latencies are in {told}", "leave --unit out")
    unit = unit or told
    bare = _bare(path, document[key], unit)
    scale = UNITS[unit or "s"]
    claimed = Claimed(
        median=_scaled(statistics.get(f"median_{unit}", statistics.get("median")), scale),
        low=_scaled(statistics.get("ci_95_lower"), scale),
        high=_scaled(statistics.get("ci_95_upper"), scale),
    )
    return Latency(bare.label, bare.blocks, claimed=claimed)


def _implied_unit(statistics: Mapping[str, Any]) -> str | None:
    """The unit that the names of the statistics beside the samples tell: median_ms."""
    units = {
        name.rpartition("_")[2] for name in statistics if name.startswith(("median_", "mean_"))
    }
    known = units & set(UNITS)
    return known.pop() if len(known) == 1 else None


def _bare(path: Path, values: Sequence[Any], unit: str | None) -> Latency:
    if not values:
        raise BadInput("holds no samples", "give another file")
    if unit is None:
        raise UsageError(
            f"{path}: the unit of its latencies is unknown", "say --unit ms (us, ns, s)"
        )
    samples = tuple(_latency(value, UNITS[unit]) for value in values)
    return Latency(path.stem, (Recorded(samples, 0),))


def _numbers_by_line(text: str) -> list[float]:
    try:
        return [float(word) for word in text.split()]
    except ValueError:
        raise BadInput("neither JSON nor a number a line") from None


def _latency(value: Any, scale: float = 1.0) -> float:
    """A sample in seconds; raises BadInput for what no call can have taken."""
    seconds = number(value, "a sample") * scale
    if not SHORTEST <= seconds <= LONGEST:
        raise BadInput(
            f"a sample of {seconds:g} s is no latency",
            f"samples are from {SHORTEST:g} s to {LONGEST:g} s: is the unit right?",
        )
    return float(seconds)


def _scaled(value: Any, scale: float) -> float | None:
    """A claim in seconds; None for one that is no time at all."""
    try:
        return number(value, "a claim", -LONGEST / scale, LONGEST / scale) * scale
    except BadInput:
        return None
