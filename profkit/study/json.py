"""A baseline as files: `profkit.cell/1`, `profkit.baseline/1` and the table of its cells.

Numbers are in SI units, shares of 1, what is unknown is null; the schemas are in profkit/schemas.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from msgspec import structs

from profkit.core.json_text import json_text
from profkit.core.timestamp import timestamp
from profkit.core.typed_file import encode, plain
from profkit.core.version import __version__
from profkit.report.gpus import Datasheet
from profkit.study.summary import Baseline, Best, Row, Scaling, Versus
from profkit.timing.cell import Cell
from profkit.timing.statistics import summarize

SCHEMA = "profkit.baseline/1"
IMPORTED = "imported"
_NOT_IN_THE_TABLE = ("arguments", "throttled", "dependence", "flags")

Json = dict[str, Any]


def cell_json(cell: Cell) -> str:
    """A cell with its samples and their statistics."""
    statistics = summarize(cell.latency.samples) if cell.latency else None
    return encode(structs.replace(cell, profkit=__version__, statistics=statistics), indent=0)


def summary_json(
    baseline: Baseline,
    cells: Sequence[Cell],
    plan: Mapping[str, Any],
    profiles: Sequence[Mapping[str, Any]],
) -> str:
    """All that was derived, with what was asked for (the plan as `profkit.study.folder` keeps
    it)."""
    asked = plan["asked"]
    document = {
        "schema": SCHEMA,
        "profkit": __version__,
        "name": " ".join(name_parts(plan)),
        "created": timestamp(),
        "target": dict(plan["target"]),
        "matrix": asked["matrix"],
        "options": {
            name: asked.get(name)
            for name in ("samples", "blocks", "seed", "timer", "cache", "warmup", "backends")
        }
        | {"device": (plan["measured_on"] or {}).get("device"), "budget": plan["budget"]},
        "command": list(plan["command"]),
        "runs": plan.get("runs"),
        "gpu": plan["gpu"],
        "gpu_from": plan.get("gpu_from", "measured" if plan["gpu"] else "none"),
        "backends": [dict(backend) for backend in plan["backends"]],
        **derived_json(baseline, cells, asked["matrix"], plan["backends"]),
        "profiles": [dict(profile) for profile in profiles],
        "seconds": plan["seconds"],
    }
    return json_text(document, indent=1)


def derived_json(
    baseline: Baseline,
    cells: Sequence[Cell],
    matrix: Mapping[str, Any],
    backends: Sequence[Mapping[str, Any]],
) -> Json:
    """The part of a summary that follows from the cells of a matrix and its backends."""
    wanted = len(matrix["shapes"]) * len(backends)
    return {
        "complete": len(baseline.rows) == wanted and "no_time" not in baseline.counts,
        "datasheet": _datasheet(baseline.datasheet),
        "datasheet_note": baseline.datasheet_note,
        "fingerprints": {
            cell.fingerprint_sha256: plain(cell.fingerprint)
            for cell in cells
            if cell.fingerprint_sha256
        },
        "counts": baseline.counts,
        "cells": [row_json(row) for row in baseline.rows],
        "comparisons": [_versus(versus) for versus in baseline.comparisons],
        "scaling": [_scaling(step) for step in baseline.scaling],
        "best": [_best(best) for best in baseline.best],
        "notes": list(baseline.notes),
    }


def name_parts(plan: Mapping[str, Any]) -> tuple[str, ...]:
    """What a baseline is called: its target, and the matrix where that has a name of its own."""
    return tuple(
        dict.fromkeys((plan["target"]["name"] or IMPORTED, plan["asked"]["matrix"]["name"]))
    )


def row_json(row: Row) -> Json:
    """A cell's row."""
    return asdict(row) | {"status": row.status.value}


def cells_parquet(baseline: Baseline) -> bytes:
    """The rows as a Parquet table, lists and mappings as JSON."""
    import pandas as pd

    frame = pd.DataFrame([row_json(row) for row in baseline.rows])
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


def _datasheet(sheet: Datasheet | None) -> Json | None:
    if sheet is None:
        return None
    return {
        "name": sheet.name,
        "peaks": {name: peak.value for name, peak in sheet.peaks.items()},
        "unverified": [name for name, peak in sheet.peaks.items() if not peak.verified],
    }


def _versus(versus: Versus) -> Json:
    pair, comparison = versus.pair, versus.pair.comparison
    return {
        "shape": versus.shape,
        "a": pair.a.label,
        "b": pair.b.label,
        "verdict": comparison.verdict.value,
        "reason": comparison.reason.value,
        "details": list(comparison.details),
        "speedup": comparison.speedup,
        "low": comparison.low,
        "high": comparison.high,
        "p_value": comparison.p_value,
        "p_adjusted": comparison.p_adjusted,
        "margin": comparison.margin.value,
        "overlap": versus.overlap,
        "delta": comparison.classic.delta,
        "claimable": versus.claimable,
        "blocks": comparison.blocks,
        "samples_in_a_block": pair.samples_in_a_block,
    }


def _scaling(step: Scaling) -> Json:
    row = asdict(step)
    before, after = row.pop("before"), row.pop("after")
    return {"from": before, "to": after, **row}


def _best(best: Best) -> Json:
    return asdict(best)
