"""What a baseline that is gone on with has on record: its backends, and the runs that measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from profkit.timing.cell import MISSING, Cell

Told = Mapping[str, Any]


def backends_on_record(
    before: Sequence[Told], now: Sequence[Told], cells: Sequence[Cell], shapes: int
) -> list[dict[str, Any]]:
    """The backends `now`, those that have cells as they were when these were measured.

    `gone` says beside why one can't be had any more that lacks cells of the `shapes`.
    """
    known = {one["name"]: one for one in before}
    settled = Counter(cell.backend for cell in cells if cell.status not in MISSING)
    return [_on_record(known.get(one["name"]), one, settled[one["name"]], shapes) for one in now]


def _on_record(before: Told | None, now: Told, settled: int, shapes: int) -> dict[str, Any]:
    if before is None or before["available"] < now["available"]:
        return dict(now)
    if before["available"] and not settled:
        return dict(now)
    kept = {name: value for name, value in before.items() if name != "gone"}
    if settled and settled < shapes and not now["available"]:
        return {**kept, "gone": now["reason"]}
    return kept


def runs_on_record(before: Told) -> list[dict[str, Any]]:
    """The runs that measured so far; of one that kept no account only that there was one."""
    if "runs" in before or before["measured_on"] is None:
        return [dict(one) for one in before.get("runs", ())]
    return [{"command": before["command"], "created": before["created"], "processes": None}]
