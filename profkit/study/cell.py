"""Cells of a baseline, `profkit.cell/1`: a backend at a shape, its samples or why none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from profkit.core.errors import BadInput
from profkit.core.fields import Fields
from profkit.core.text_files import read_json
from profkit.timing.latency_file import CELL, Latency, latency_from_json

SCHEMA = CELL


class Status(StrEnum):
    """What became of a cell. `unavailable`: what the backend runs is not installed here."""

    measured = "measured"
    imported = "imported"
    unsupported = "unsupported"
    unavailable = "unavailable"
    out_of_memory = "out_of_memory"
    wrong = "wrong"
    failed = "failed"
    no_time = "no_time"


MISSING = (Status.unavailable, Status.no_time)
"""What another run of the same baseline tries again."""


@dataclass(frozen=True)
class Cell:
    """A cell. `latency` is there where it was measured or imported, `reason` where it was not.

    `at` is the place of the shape in the matrix. `asked` is how many samples, `fewer` says why
    there are fewer. Cells of one `round` took turns. `seconds` is what the shape took with all its
    backends. `source` is what is known of an imported cell's file.
    """

    shape: str
    at: int
    arguments: Mapping[str, Any]
    backend: str
    status: Status
    reason: str = ""
    version: str | None = None
    setting: str = ""
    chosen: str | None = None
    asked: int | None = None
    fewer: str = ""
    latency: Latency | None = None
    round: str | None = None
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    fingerprint_sha256: str | None = None
    created: str = ""
    seconds: float | None = None
    source: Mapping[str, Any] | None = None

    @property
    def id(self) -> str:
        return f"{self.shape}.{self.backend}"


def read_cell(path: Path) -> Cell:
    """The cell of a file; raises BadInput for a file that is none."""
    row = read_json(path, _REMEDY)
    try:
        if not isinstance(row, dict) or row.get("schema") != SCHEMA:
            raise BadInput(f"not {SCHEMA}")
        return _cell(Fields(row, ""))
    except BadInput as error:
        raise BadInput(f"{path}: {error.message}", _REMEDY) from None


_REMEDY = "remove it, and measure it anew with --resume"


def _cell(row: Fields) -> Cell:
    row.needs("shape", "at", "backend", "status")
    latency = row.fields("latency").row
    status = Status(row.text("status", tuple(status.value for status in Status)))
    if (status in {Status.measured, Status.imported}) != bool(latency):
        raise BadInput(f"is {status.value} {'without' if not latency else 'with'} samples")
    source = row.fields("source").row
    return Cell(
        shape=row.text("shape"),
        at=row.whole("at", 0) or 0,
        arguments=row.fields("arguments").row,
        backend=row.text("backend"),
        status=status,
        reason=row.text("reason"),
        version=row.text("version") or None,
        setting=row.text("setting"),
        chosen=row.text("chosen") or None,
        asked=row.whole("asked", 1),
        fewer=row.text("fewer"),
        latency=latency_from_json(latency) if latency else None,
        round=row.text("round") or None,
        fingerprint=row.fields("fingerprint").row,
        fingerprint_sha256=row.text("fingerprint_sha256") or None,
        created=row.text("created"),
        seconds=row.number("seconds", 0),
        source=source or None,
    )
