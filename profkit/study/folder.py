"""The folder of a baseline: a plan, a file a cell, and what was derived. Each file is whole.

DIR/baseline.json  DIR/cells/SHAPE.BACKEND.json  DIR/summary.json  DIR/cells.parquet
DIR/again/SHAPE.BACKEND.ROUND.json
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from profkit.core.atomic_file import PART, write_atomic
from profkit.core.errors import BadInput, EnvironmentProblem
from profkit.core.lock import file_lock
from profkit.core.text_files import MissingFile, read_json
from profkit.core.typed_file import convert, encode, plain, read_file
from profkit.study.plan_format import PlanFile, ProfiledCell
from profkit.timing.cell import Cell, read_cell

PLAN, SUMMARY, TABLE, CELLS, AGAIN, PROFILES = (
    "baseline.json", "summary.json", "cells.parquet", "cells", "again", "profiles"
)  # fmt: skip
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


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
        for place in (folder, folder / CELLS, folder / AGAIN):
            for left in place.glob(f".*{PART}"):
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


def write_plan(folder: Path, plan: PlanFile) -> None:
    """Keep what was asked for."""
    write_whole(folder / PLAN, encode(plan, dense=False))


def read_plan(folder: Path) -> PlanFile | None:
    """What was asked for; None where no baseline was begun, BadInput where it can't be read."""
    try:
        return read_file(folder / PLAN, PlanFile, "give --output another folder")
    except MissingFile:
        return None


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
    cells = [read_cell(file) for file in sorted(folder.glob("[!.]*.json"))]
    return tuple(sorted(cells, key=lambda cell: (cell.at, cell.backend)))


def read_profiles(folder: Path) -> tuple[ProfiledCell, ...]:
    """What was profiled of the baseline, and what could not be; empty where nothing was asked."""
    path = folder / PROFILES / "profiles.json"
    try:
        rows = read_json(path)
        return tuple(convert(row, ProfiledCell) for row in rows)
    except MissingFile:
        return ()
    except (TypeError, BadInput):
        raise BadInput(f"{path}: no list of profiles", "remove it, and profile anew") from None


def write_profiles(folder: Path, profiles: Sequence[ProfiledCell]) -> None:
    """Keep what was profiled so far."""
    text = json.dumps([plain(profile) for profile in profiles], indent=1) + "\n"
    write_whole(folder / PROFILES / "profiles.json", text)


def _unwritable(path: Path, error: OSError) -> EnvironmentProblem:
    message = f"{path}: can't be written ({error.strerror})"
    if error.errno in _FULL:
        return EnvironmentProblem(
            f"{message}; what was measured before is kept", "make room, then go on with --resume"
        )
    return EnvironmentProblem(message, "give --output a folder that can be")
