"""What a baseline that is gone on with has on record: its backends, and the runs that measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import replace

from profkit.study.plan_format import Backend, PlanFile, Run
from profkit.timing.cell import MISSING, Cell


def backends_on_record(
    before: Sequence[Backend], now: Sequence[Backend], cells: Sequence[Cell], shapes: int
) -> tuple[Backend, ...]:
    """The backends `now`, those that have cells as they were when these were measured.

    `gone` says beside why one can't be had any more that lacks cells of the `shapes`.
    """
    known = {backend.name: backend for backend in before}
    settled = Counter(cell.backend for cell in cells if cell.status not in MISSING)
    return tuple(
        _on_record(known.get(backend.name), backend, settled[backend.name], shapes)
        for backend in now
    )


def _on_record(before: Backend | None, now: Backend, settled: int, shapes: int) -> Backend:
    if before is None or before.available < now.available or (before.available and not settled):
        return now
    gone = settled and settled < shapes and not now.available
    return replace(before, gone=now.reason if gone else UNSET)


def runs_on_record(before: PlanFile) -> tuple[Run, ...]:
    """The runs that measured so far; of one that kept no account only that there was one."""
    if before.runs is not UNSET or before.measured_on is None:
        return before.runs or ()
    return (Run(command=before.command, created=before.created, processes=None),)
