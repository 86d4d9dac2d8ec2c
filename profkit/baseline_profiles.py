"""Profiles of a baseline's cells: a run of `profkit profile` for each, beside the cells."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from profkit.analysis.baseline import Row
from profkit.errors import ProfkitError, UsageError
from profkit.ingest.matrix import MatrixShape
from profkit.profiling import Plan, profile
from profkit.store.baseline import PROFILES, read_profiles, write_whole
from profkit.timing import Tell

TOP = 3


def top_cells(rows: Sequence[Row]) -> list[Row]:
    """The fastest backend of each of the three shapes with the highest FLOP rates."""
    best: dict[str, Row] = {}
    for row in rows:
        if row.flop_rate and row.flop_rate > (_rate(best.get(row.shape))):
            best[row.shape] = row
    return sorted(best.values(), key=_rate, reverse=True)[:TOP]


def _rate(row: Row | None) -> float:
    return (row.flop_rate or 0.0) if row else 0.0


def profile_cells(
    target: Path, folder: Path, rows: Sequence[Row], gpu: int | None, tell: Tell
) -> None:
    """Profile cells that were not yet; what can't be profiled is kept with its reason."""
    kept: list[dict[str, Any]] = [one for one in read_profiles(folder) if one.get("folder")]
    done = {one["id"] for one in kept}
    (folder / PROFILES).mkdir(exist_ok=True)
    for at, row in enumerate(row for row in rows if row.id not in done):
        tell(f"profile {at + 1}  {row.id}", "")
        kept.append(_profiled(target, folder, row, gpu, tell))
        write_whole(folder / PROFILES / "profiles.json", json.dumps(kept, indent=1) + "\n")


def _profiled(target: Path, folder: Path, row: Row, gpu: int | None, tell: Tell) -> dict[str, Any]:
    words = MatrixShape(row.shape, row.arguments).words
    plan = Plan(
        program=(str(target), *words),
        variants=(row.backend,),
        out=folder / PROFILES,
        gpu=gpu,
        timeline=False,
        samples=0,
        compress=True,
    )
    try:
        outcome = profile(plan, lambda stage, what: tell(f"profile {row.id}", f"{stage} {what}"))
    except UsageError:
        raise
    except ProfkitError as error:
        return {"id": row.id, "folder": None, "reason": error.message}
    return {"id": row.id, "folder": str(outcome.folder.relative_to(folder)), "reason": ""}
