"""Saved latencies: a file of `profkit time`, a plain list, or third-party JSON with raw
latencies."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from profkit.core.errors import BadInput, UsageError, inside
from profkit.core.fingerprint import Fingerprint
from profkit.core.integrity import check_unchanged
from profkit.core.text_files import WrongFormat, parse_json, read_text
from profkit.core.typed_file import decode, number
from profkit.timing.cell import SCHEMA as CELL_SCHEMA
from profkit.timing.cell import Cell
from profkit.timing.latency_format import LONGEST, SHORTEST, Latency, LatencyFile, Recorded

IN_A_RUN = "latency.json"
UNITS: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_RAW = ("raw_latencies", "latencies", "samples")


class Claimed(Struct, frozen=True):
    """The median and its 95% interval that a file states for its samples, in seconds."""

    median: float | None
    low: float | None
    high: float | None


class Saved(Struct, frozen=True):
    """A file of latencies. `file` is set for those of `profkit time`, `claimed` for third-party
    files that state statistics."""

    path: str
    latencies: tuple[Latency, ...]
    fingerprint: Fingerprint = Fingerprint()
    fingerprint_sha256: str | None = None
    file: LatencyFile | None = None
    claimed: Claimed | None = None

    @property
    def floor(self) -> float | None:
        """The A/A floor that the file gives."""
        return self.file.floor if self.file else None

    @property
    def compared(self) -> tuple[str, ...]:
        """The series that the run compared, the reference first; () where it compared none."""
        pairs = self.file.comparisons if self.file else ()
        return (pairs[0].a, *(pair.b for pair in pairs if pair.a == pairs[0].a)) if pairs else ()


def read_latencies(path: Path, unit: str | None = None) -> Saved:
    """The latencies of a file, or of a run's folder.

    `unit` is that of a plain list. Raises BadInput for a file without latencies or with invalid
    ones, UsageError where the unit is needed and missing.
    """
    if path.is_dir():  # of a target's folder, that of its only run
        runs = sorted(path.glob(f"[!.]*/{IN_A_RUN}"))
        path = runs[0] if len(runs) == 1 else path / IN_A_RUN
    text = read_text(path)
    check_unchanged(path)
    with inside(path):
        return _read(path, text, unit)


def _read(path: Path, text: str, unit: str | None) -> Saved:
    try:
        document = parse_json(text)
    except WrongFormat:
        try:
            document = [float(word) for word in text.split()]
        except ValueError:
            raise BadInput("neither JSON nor one number per line") from None
    if isinstance(document, list):
        return Saved(str(path), (_bare(path, document, unit),))
    if not isinstance(document, dict):
        raise BadInput("contains no latencies", "give a list, or a file of `profkit time --save`")
    schema = str(document.get("schema", ""))
    if schema == CELL_SCHEMA:
        cell = decode(text, Cell)
        if cell.latency is None:
            raise BadInput("a cell without measurements", "give another cell")
        return Saved(str(path), (cell.latency,), cell.fingerprint, cell.fingerprint_sha256)
    if not schema.startswith("profkit."):
        return _others(path, document, unit)
    file = decode(text, LatencyFile)
    latencies = tuple(series.latency for series in file.series)
    return Saved(str(path), latencies, file.fingerprint, file.fingerprint_sha256, file)


def _others(path: Path, document: Mapping[str, Any], unit: str | None) -> Saved:
    key = next((name for name in _RAW if isinstance(document.get(name), list)), None)
    if key is None:
        raise BadInput("contains no list of latencies", f"name it {' or '.join(_RAW)}")
    statistics = document.get("statistics")
    statistics = statistics if isinstance(statistics, dict) else {}
    names = [name for name in statistics if name.startswith(("median_", "mean_"))]
    units = {name.rpartition("_")[2] for name in names} & set(UNITS)
    implied = units.pop() if len(units) == 1 else None
    if unit is not None and implied not in {None, unit}:
        raise UsageError(f"{path}: the file states the unit {implied}", "leave --unit out")
    unit = unit or implied
    latency = _bare(path, document[key], unit)
    scale = UNITS[unit or "s"]
    claimed = Claimed(
        median=_scaled(statistics.get(f"median_{unit}", statistics.get("median")), scale),
        low=_scaled(statistics.get("ci_95_lower"), scale),
        high=_scaled(statistics.get("ci_95_upper"), scale),
    )
    return Saved(str(path), (latency,), claimed=claimed)


def _bare(path: Path, values: Sequence[Any], unit: str | None) -> Latency:
    if not values:
        raise BadInput("contains no samples", "give another file")
    if unit is None:
        raise UsageError(
            f"{path}: the unit of its latencies is unknown", "add --unit ms (us, ns, s)"
        )
    samples = tuple(_seconds(value, UNITS[unit]) for value in values)
    return Latency(label=path.stem, blocks=(Recorded(turn=0, samples=samples),))


def _seconds(value: Any, scale: float) -> float:
    """A sample in seconds; raises BadInput for an impossible latency."""
    seconds = number(value, "a sample") * scale
    if not SHORTEST <= seconds <= LONGEST:
        raise BadInput(
            f"a sample of {seconds:g} s is not a valid latency",
            f"samples are from {SHORTEST:g} s to {LONGEST:g} s: check the unit",
        )
    return float(seconds)


def _scaled(value: Any, scale: float) -> float | None:
    """A stated statistic in seconds; None for an invalid time."""
    try:
        return number(value, "a statistic", -LONGEST / scale, LONGEST / scale) * scale
    except BadInput:
        return None
