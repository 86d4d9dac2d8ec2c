"""A baseline as files: `profkit.cell/1`, `profkit.baseline/1` and the table of its cells.

Numbers are in SI units, shares of 1, null is unknown; the schemas are in profkit/schemas.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

from msgspec import structs

from profkit.calibration.gpu_spread import GpuSpread
from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.timestamp import timestamp
from profkit.core.typed_file import Amount, Count, File, Model, encode, known, part, plain
from profkit.core.version import __version__
from profkit.study.matrix import Matrix
from profkit.study.plan_format import Backend, Origin, PlanFile, ProfiledCell, Program, Run
from profkit.study.summary import Baseline, Best, Contrast, Row, Scaling
from profkit.timing.cell import Cell, CellStatus
from profkit.timing.statistics import summarize

_NOT_IN_THE_TABLE = ("arguments", "throttled", "dependence", "flags")


class Options(Model, frozen=True, kw_only=True):
    """The requested options; `warmup` and `budget` in seconds. `device` is the one measured."""

    samples: Count | None
    blocks: Count | None
    seed: int | None
    timer: str
    cache: str
    warmup: Amount | None
    backends: tuple[str, ...]
    device: str | None
    budget: Amount | None


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
    each shape measured on one of them, `gpu_spread` is what their times differ by.
    """

    profkit: str
    name: str
    created: str
    target: Program
    matrix: Matrix
    options: Options
    command: tuple[str, ...]
    runs: tuple[Run, ...] | None = None
    gpu: Device | None
    gpu_from: Origin
    gpus: tuple[str, ...] | None = None
    gpu_spread: GpuSpread | None = None
    backends: tuple[Backend, ...]
    complete: bool
    datasheet: Quoted | None
    datasheet_note: str
    fingerprints: dict[str, Fingerprint]
    counts: dict[str, int]
    cells: tuple[Row, ...]
    comparisons: tuple[Contrast, ...]
    scaling: tuple[Scaling, ...]
    best: tuple[Best, ...]
    notes: tuple[str, ...]
    profiles: tuple[ProfiledCell, ...]
    seconds: Amount | None

    def __post_init__(self) -> None:
        if self.gpu is not None:
            self.gpu.refuse_unnamed()


def cell_json(cell: Cell) -> str:
    """A cell with its samples and their statistics."""
    statistics = summarize(cell.latency.samples) if cell.latency else None
    return encode(structs.replace(cell, profkit=__version__, statistics=statistics), indent=0)


def summary_file(
    baseline: Baseline,
    cells: Sequence[Cell],
    plan: PlanFile,
    profiles: Sequence[ProfiledCell],
) -> BaselineFile:
    """The summary, with the requested options."""
    asked = plan.asked
    return BaselineFile(
        profkit=__version__,
        name=" ".join(plan.name_parts),
        created=timestamp(),
        target=plan.target,
        matrix=asked.matrix,
        options=Options(
            **part(asked, "samples", "blocks", "seed", "timer", "cache", "warmup", "backends"),
            device=known(plan.measured_on.device) if plan.measured_on else None,
            budget=plan.budget,
        ),
        command=plan.command,
        runs=known(plan.runs),
        gpu=plan.gpu,
        gpu_from=plan.gpu_from or ("measured" if plan.gpu else "none"),
        gpus=tuple(known(gpu.uuid) or "" for gpu in known(plan.gpus) or ()) or None,
        gpu_spread=known(plan.gpu_spread),
        backends=plan.backends,
        **derived(baseline, cells, asked.matrix, plan.backends),
        profiles=tuple(profiles),
        seconds=plan.seconds,
    )


def derived(
    baseline: Baseline, cells: Sequence[Cell], matrix: Matrix, backends: Sequence[Backend]
) -> dict[str, Any]:
    """The part of a summary that is derived from the cells of a matrix and its backends."""
    wanted = len(matrix.shapes) * len(backends)
    sheet = baseline.datasheet
    return {
        "complete": len(baseline.rows) == wanted and CellStatus.no_time not in baseline.counts,
        "datasheet": Quoted(
            name=sheet.name,
            peaks={name: peak.value for name, peak in sheet.peaks.items()},
            unverified=tuple(name for name, peak in sheet.peaks.items() if not peak.verified),
        )
        if sheet
        else None,
        "datasheet_note": baseline.datasheet_note,
        "fingerprints": {
            cell.fingerprint_sha256: cell.fingerprint for cell in cells if cell.fingerprint_sha256
        },
        "counts": baseline.counts,
        "cells": baseline.rows,
        "comparisons": baseline.comparisons,
        "scaling": baseline.scaling,
        "best": baseline.best,
        "notes": baseline.notes,
    }


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    energy = row.pop("energy", {})
    return row | {f"energy_{name}": value for name, value in energy.items()}


def cells_parquet(baseline: Baseline) -> bytes:
    """The rows as a Parquet table, lists and mappings as JSON."""
    import pandas as pd

    frame = pd.DataFrame([_flat(plain(row)) for row in baseline.rows])
    for name in _NOT_IN_THE_TABLE:
        frame[name] = [json.dumps(value) for value in frame[name]]
    numbers = [
        name
        for name, kind in Row.__annotations__.items()
        if kind.startswith(("float", "int")) and name not in {"at", "gpus"}
    ]
    frame = frame.astype(dict.fromkeys(numbers, "float64"))
    table = io.BytesIO()
    frame.to_parquet(table, index=False)
    return table.getvalue()
