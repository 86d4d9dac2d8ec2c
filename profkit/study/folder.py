"""The folder of a baseline: a plan, a file a cell, and what was derived. Each file is whole.

DIR/baseline.json  DIR/cells/SHAPE.BACKEND.json  DIR/summary.json  DIR/cells.parquet
DIR/again/SHAPE.BACKEND.ROUND.json
"""

from __future__ import annotations

import errno
import itertools
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import NoneType
from typing import Any

from profkit.core.atomic_file import PART, write_atomic
from profkit.core.errors import BadInput, EnvironmentProblem
from profkit.core.lock import file_lock
from profkit.core.text_files import MissingFile, read_json
from profkit.timing.cell import Cell, read_cell

PLAN, SUMMARY, TABLE, CELLS, AGAIN, PROFILES = (
    "baseline.json", "summary.json", "cells.parquet", "cells", "again", "profiles"
)  # fmt: skip
SCHEMA = "profkit.baseline-plan/1"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_KINDS: Mapping[str, tuple[type, ...]] = {
    "gpu": (dict, NoneType),
    "measured_on": (dict, NoneType),
    "budget": (int, float, NoneType),
    "seconds": (int, float, NoneType),
    "command": (list,),
    "created": (str,),
    "backends": (list,),
}
_ASKED = {
    "matrix", "samples", "blocks", "seed", "timer", "cache", "warmup", "device", "backends"
}  # fmt: skip
_RUN = {"command", "created", "processes"}


def _folders(folder: Path) -> tuple[Path, ...]:
    return folder, folder / CELLS, folder / AGAIN


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """The folder for this process alone; raises EnvironmentProblem where another one writes it."""
    with ExitStack() as stack:
        try:
            (folder / CELLS).mkdir(parents=True, exist_ok=True)
            busy = f"{folder}: another process writes this baseline"
            stack.enter_context(file_lock(folder, busy))
        except OSError as error:
            raise _unwritable(folder, error) from None
        for left in itertools.chain(*(one.glob(f".*{PART}") for one in _folders(folder))):
            left.unlink(missing_ok=True)
        yield


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file under a temporary name and rename it, on disk: it is whole or not there.

    Raises EnvironmentProblem, with nothing left behind, where there is no room or no permission.
    """
    try:
        write_atomic(path, content)
    except OSError as error:
        raise _unwritable(path, error) from None


def write_plan(folder: Path, plan: Mapping[str, Any]) -> None:
    """Keep what was asked for."""
    write_whole(folder / PLAN, json.dumps({"schema": SCHEMA, **plan}, indent=2) + "\n")


def read_plan(folder: Path) -> Mapping[str, Any] | None:
    """What was asked for; None where no baseline was begun, BadInput where it can't be read."""
    path = folder / PLAN
    try:
        plan = read_json(path, "give --out another folder")
    except MissingFile:
        return None
    if not _is_plan(plan):
        raise BadInput(f"{path}: not the plan of a baseline", "give --out another folder")
    return dict(plan)


def _is_plan(plan: Any) -> bool:
    """Whether it has what every plan has; who wrote it checked the values."""
    if not isinstance(plan, dict) or plan.get("schema") != SCHEMA:
        return False
    asked, target = plan.get("asked"), plan.get("target")
    return (
        isinstance(asked, dict)
        and asked.keys() >= _ASKED
        and isinstance(asked["matrix"], dict)
        and isinstance(asked["matrix"].get("shapes"), list)
        and isinstance(target, dict)
        and target.keys() >= {"name", "file", "sha256"}
        and all(key in plan and isinstance(plan[key], kinds) for key, kinds in _KINDS.items())
        and all(isinstance(word, str) for word in plan["command"])
        and all(map(_is_backend, plan["backends"]))
        and isinstance(plan.get("runs", []), list)
        and all(isinstance(run, dict) and run.keys() == _RUN for run in plan.get("runs", []))
    )


def _is_backend(told: Any) -> bool:
    return isinstance(told, dict) and all(
        key in told and isinstance(told[key], kinds)
        for key, kinds in (("name", str), ("available", bool), ("reason", str), ("setting", str))
    )


def cell_file(folder: Path, cell_id: str) -> Path:
    """The file of a cell."""
    return folder / CELLS / f"{cell_id}.json"


def keep_again(folder: Path, cell: Cell, content: str) -> None:
    """Keep what was measured of a cell once more, for others that took turns with it."""
    try:
        (folder / AGAIN).mkdir(exist_ok=True)
    except OSError as error:
        raise _unwritable(folder / AGAIN, error) from None
    write_whole(folder / AGAIN / f"{cell.id}.{cell.round}.json", content)


def read_again(folder: Path) -> tuple[Cell, ...]:
    """What was measured once more; raises BadInput for a file that is no cell."""
    return _cells_in(folder / AGAIN)


def drop_unplanned(folder: Path) -> None:
    """Remove the cells of an import that ended before it wrote its plan.

    Raises BadInput, with nothing removed, where a file is no cell but somebody's own.
    """
    if (folder / PLAN).exists():
        return
    left = list((folder / CELLS).glob("[!.]*.json"))
    for file in left:
        read_cell(file)
    for file in left:
        file.unlink()


def has_cells(folder: Path) -> bool:
    """Whether anything was kept but the plan."""
    return any((folder / CELLS).glob("[!.]*.json"))


def read_cells(folder: Path) -> tuple[Cell, ...]:
    """Every cell that was kept, in the matrix's order; raises BadInput for a file that is none."""
    return _cells_in(folder / CELLS)


def _cells_in(folder: Path) -> tuple[Cell, ...]:
    found = [read_cell(file) for file in sorted(folder.glob("[!.]*.json"))]
    return tuple(sorted(found, key=lambda cell: (cell.at, cell.backend)))


def read_profiles(folder: Path) -> list[dict[str, Any]]:
    """What was profiled of the baseline, and what could not be; empty where nothing was asked."""
    try:
        found = read_json(folder / PROFILES / "profiles.json")
    except BadInput:
        return []
    known = {"id", "folder", "reason"}
    return [
        one
        for one in (found if isinstance(found, list) else [])
        if isinstance(one, dict) and one.keys() >= known
    ]


def _unwritable(path: Path, error: OSError) -> EnvironmentProblem:
    told = f"{path}: can't be written ({error.strerror})"
    if error.errno in _FULL:
        return EnvironmentProblem(
            f"{told}; what was measured before is kept", "make room, then go on with --resume"
        )
    return EnvironmentProblem(told, "give --out a folder that can be")
