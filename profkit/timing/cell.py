"""Cells of a baseline, `profkit.cell/1`: a backend at a shape, with samples or a reason for
none."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from msgspec import UNSET, Meta, field
from msgspec.structs import force_setattr

from profkit.core.fingerprint import Fingerprint
from profkit.core.typed_file import Amount, Count, Derived, File, Model, Number, read_file
from profkit.timing.latency_format import Latency
from profkit.timing.results import Summary

SCHEMA = "profkit.cell/1"
Value: TypeAlias = str | int | float | bool
"""An option of a target."""


class CellStatus(StrEnum):
    """The status of a cell. `unavailable`: the backend's library is not installed here."""

    measured = "measured"
    imported = "imported"
    unsupported = "unsupported"
    unavailable = "unavailable"
    out_of_memory = "out_of_memory"
    wrong = "wrong"
    failed = "failed"
    no_time = "no_time"


MISSING = (CellStatus.unavailable, CellStatus.no_time)
"""Statuses that another run of the same baseline retries."""


class Source(Model, frozen=True, kw_only=True):
    """An imported cell's file: `said` is its content except the samples, with `median` (s) and
    `taken`, the time, from it; unverified."""

    file: str
    sha256: str
    said: dict[str, Any]
    median: Number | None = None
    taken: str | None = None


class Cell(File, frozen=True, kw_only=True, tag=SCHEMA):
    """A backend at a shape: its samples, or why there are none. SI units.

    `latency` is set where it was measured or imported, `reason` where it was not. `at` is the
    index of the shape in the matrix. `asked` is the requested number of samples, `fewer` the reason
    for fewer. Cells of one `round` were interleaved. `setting` is the code that selects the
    backend, `version` that of its library, `chosen` the backend that it dispatches to. `seconds` is
    the time of the shape with all its backends. `source` is that of an imported cell. `key` is the
    SHA-256 of what was measured: the target's hash, shape, backend, its version, and the settings.
    """

    profkit: str = ""
    id: str = ""
    key: str | None = None
    shape: str
    at: Count
    arguments: dict[str, Value] = field(default_factory=dict)
    backend: str
    version: str | None = None
    setting: str = ""
    chosen: str | None = None
    status: CellStatus
    reason: str = ""
    asked: Annotated[int, Meta(ge=1)] | None = None
    fewer: str = ""
    latency: Latency | None = None
    statistics: Derived[Summary | None] = UNSET
    round: str | None = None
    fingerprint: Fingerprint = Fingerprint()
    fingerprint_sha256: str | None = None
    created: str = ""
    seconds: Amount | None = None
    source: Source | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "id", f"{self.shape}.{self.backend}")
        if (self.status in {CellStatus.measured, CellStatus.imported}) != bool(self.latency):
            raise ValueError(f"is {self.status} {'with' if self.latency else 'without'} samples")


def read_cell(path: Path) -> Cell:
    """The cell of a file; raises BadInput for an invalid file."""
    return read_file(path, Cell, "remove it, and measure it again with --resume")
