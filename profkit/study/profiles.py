"""Profiles of a baseline's cells: a run of `profkit profile` for each, beside the cells."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from profkit.core.errors import ProfkitError, UsageError
from profkit.recording.recording import Plan, profile
from profkit.study.folder import PROFILES, held, read_profiles, write_whole
from profkit.study.matrix import MatrixShape
from profkit.study.plan import BaselinePlan
from profkit.study.summary import Row
from profkit.timing.measurement import Tell

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


def profile_cells(plan: BaselinePlan, rows: Sequence[Row], started: float, tell: Tell) -> None:
    """Profile cells that were not yet; what can't be profiled is kept with its reason.

    The plan's budget counts from `started`, of the monotonic clock.
    """
    folder = plan.out
    kept: list[dict[str, Any]] = [one for one in read_profiles(folder) if one.get("folder")]
    done = {one["id"] for one in kept}
    todo = [row for row in rows if row.id not in done]
    with held(folder):
        (folder / PROFILES).mkdir(exist_ok=True)
        for at, row in enumerate(todo):
            stage = f"profile {at + 1} of {len(todo)}  {row.id}"
            left = None if plan.budget is None else plan.budget - (time.monotonic() - started)
            kept.append(_profiled(plan, row, left, lambda *told, stage=stage: tell(stage, told[1])))
            write_whole(folder / PROFILES / "profiles.json", json.dumps(kept, indent=1) + "\n")


def _profiled(plan: BaselinePlan, row: Row, left: float | None, tell: Tell) -> dict[str, Any]:
    """A profile within `left` seconds (None: no limit), or why there is none."""
    if left is not None and left <= 0:
        return _missing(row, "the budget was spent before")
    words = MatrixShape(row.shape, row.arguments).words
    chosen = Plan(
        program=(str(plan.target), *words),
        variants=(row.backend,),
        out=plan.out / PROFILES,
        gpu=plan.gpu,
        timeout=left,
        timeline=False,
        samples=0,
        compress=True,
    )
    try:
        outcome = profile(chosen, tell)
    except UsageError:
        raise
    except ProfkitError as error:
        return _missing(row, error.message)
    return {"id": row.id, "folder": str(outcome.folder.relative_to(plan.out)), "reason": ""}


def _missing(row: Row, why: str) -> dict[str, Any]:
    return {"id": row.id, "folder": None, "reason": why}
