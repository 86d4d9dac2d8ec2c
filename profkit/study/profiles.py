"""Profiles of a baseline's cells: a run of `profkit profile` for each, beside the cells."""

from __future__ import annotations

import time
from collections.abc import Sequence

from profkit.core.errors import ProfkitError, UsageError
from profkit.recording.recording import Plan, profile
from profkit.study.folder import PROFILES, held, read_profiles, write_profiles
from profkit.study.matrix import MatrixShape
from profkit.study.plan import BaselinePlan
from profkit.study.plan_format import ProfiledCell
from profkit.study.summary import Row
from profkit.timing.measurement import Tell


def profile_cells(plan: BaselinePlan, rows: Sequence[Row], started: float, tell: Tell) -> None:
    """Profile cells that were not yet; what can't be profiled is kept with its reason.

    The plan's budget counts from `started`, of the monotonic clock.
    """
    folder = plan.out
    kept = [profile for profile in read_profiles(folder) if profile.folder]
    done = {profile.id for profile in kept}
    todo = [row for row in rows if row.id not in done]
    with held(folder):
        (folder / PROFILES).mkdir(exist_ok=True)
        for at, row in enumerate(todo):
            stage = f"profile {at + 1} of {len(todo)}  {row.id}"
            left = None if plan.budget is None else plan.budget - (time.monotonic() - started)
            kept.append(_profiled(plan, row, left, lambda *told, stage=stage: tell(stage, told[1])))
            write_profiles(folder, kept)


def _profiled(plan: BaselinePlan, row: Row, left: float | None, tell: Tell) -> ProfiledCell:
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
    return ProfiledCell(id=row.id, folder=str(outcome.folder.relative_to(plan.out)), reason="")


def _missing(row: Row, why: str) -> ProfiledCell:
    return ProfiledCell(id=row.id, folder=None, reason=why)
