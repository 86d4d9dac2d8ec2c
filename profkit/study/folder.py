"""The folder of a baseline: a plan, one file per cell, and the summary. Files are written
atomically.

DIR/baseline.json  DIR/cells/SHAPE.BACKEND.json  DIR/summary.json  DIR/cells.parquet
DIR/again/SHAPE.BACKEND.ROUND.json
"""

import errno
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec
from msgspec import structs

from profkit.core.atomic_file import PART, write_atomic
from profkit.core.errors import BadInput, EnvironmentProblem
from profkit.core.lock import file_lock
from profkit.core.regular_file import read_limited
from profkit.core.text_files import MissingFile, read_json
from profkit.core.typed_file import convert, encode, plain, read_file
from profkit.core.version import __version__
from profkit.study.plan_format import PlanFile, ProfiledCell
from profkit.timing.cell import Cell, read_cell

PLAN, SUMMARY, TABLE, CELLS, AGAIN, PROFILES = (
    "baseline.json", "summary.json", "cells.parquet", "cells", "again", "profiles"
)  # fmt: skip
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """The folder for this process alone, not left empty by a failure.

    Raises EnvironmentProblem where another process writes it.
    """
    made = [place for place in (folder / CELLS, folder, *folder.parents) if not place.exists()]
    with ExitStack() as stack:
        stack.push(partial(_discard_empty, made))
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


def _discard_empty(
    folders: Sequence[Path], problem: type[BaseException] | None, *_: object
) -> None:
    """Remove the empty folders after a problem."""
    if problem is not None:
        with suppress(OSError):  # the first that is not empty
            for folder in folders:
                folder.rmdir()


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file under a temporary name, sync and rename it: it is complete or absent.

    Raises EnvironmentProblem, with nothing left behind, without disk space or permission.
    """
    try:
        path.parent.mkdir(exist_ok=True)
        write_atomic(path, content)
    except OSError as error:
        raise _unwritable(path, error) from None


def write_plan(folder: Path, plan: PlanFile) -> None:
    """Save the plan."""
    write_whole(folder / PLAN, encode(plan, dense=False))


def read_plan(folder: Path) -> PlanFile | None:
    """The plan; None in a folder without a baseline, BadInput where it can't be read."""
    try:
        return read_file(folder / PLAN, PlanFile, "give --output another folder")
    except MissingFile:
        return None


def cell_json(cell: Cell) -> str:
    """A cell with its samples and their statistics."""
    from profkit.timing.statistics import summarize

    statistics = summarize(cell.latency.samples) if cell.latency else None
    return encode(structs.replace(cell, profkit=__version__, statistics=statistics), indent=0)


def cell_place(cell: Cell, *, again: bool) -> str:
    """Where a cell is in the folder; one that was measured again, the reference of others, in a
    folder of its own."""
    return f"{AGAIN}/{cell.id}.{cell.round}.json" if again else f"{CELLS}/{cell.id}.json"


def write_cell(folder: Path, cell: Cell, again: bool = False) -> None:
    """Save a cell; one that was measured again if it has a time."""
    if cell.latency or not again:
        write_whole(folder / cell_place(cell, again=again), cell_json(cell))


def drop_unplanned(folder: Path) -> None:
    """Remove the cells of an import that ended before it wrote its plan.

    Raises BadInput, with nothing removed, where a file is not a cell.
    """
    if (folder / PLAN).exists():
        return
    left = list((folder / CELLS).glob("[!.]*.json"))
    for file in left:
        read_cell(file)
    for file in left:
        file.unlink()


def has_cells(folder: Path) -> bool:
    """Whether the folder contains cells."""
    return any((folder / CELLS).glob("[!.]*.json"))


def read_cells(folder: Path, part: str = CELLS) -> tuple[Cell, ...]:
    """All saved cells, or the repeated ones (AGAIN), in the matrix's order; raises BadInput for an
    invalid file."""
    cells = [read_cell(file) for file in sorted((folder / part).glob("[!.]*.json"))]
    return tuple(sorted(cells, key=lambda cell: (cell.at, cell.backend)))


def cell_statuses(folder: Path) -> Iterator[str]:
    """The statuses of all saved cells; raises BadInput for an invalid file."""
    for file in (folder / CELLS).glob("[!.]*.json"):
        try:
            yield msgspec.json.decode(read_limited(file, _LARGEST_CELL), type=_Status).status
        except FileNotFoundError:  # replaced
            continue
        except msgspec.MsgspecError as error:
            raise BadInput(f"{file}: {error}", "remove it, and resume") from None


_LARGEST_CELL = 64 << 20  # bytes, chosen: a cell of a million samples has 20 MB


class _Status(msgspec.Struct):
    status: str


def read_profiles(folder: Path) -> tuple[ProfiledCell, ...]:
    """The profiled cells of the baseline, with failures; empty without profiles."""
    path = folder / PROFILES / "profiles.json"
    try:
        rows = read_json(path)
        return tuple(convert(row, ProfiledCell) for row in rows)
    except MissingFile:
        return ()
    except (TypeError, BadInput):
        raise BadInput(f"{path}: not a list of profiles", "remove it, and profile again") from None


def write_profiles(folder: Path, profiles: Sequence[ProfiledCell]) -> None:
    """Save the profiled cells."""
    text = json.dumps([plain(profile) for profile in profiles], indent=1) + "\n"
    write_whole(folder / PROFILES / "profiles.json", text)


def _unwritable(path: Path, error: OSError) -> EnvironmentProblem:
    message = f"{path}: can't be written ({error.strerror})"
    if error.errno in _FULL:
        return EnvironmentProblem(
            f"{message}; measured cells are saved", "free disk space, then continue with --resume"
        )
    return EnvironmentProblem(message, "give --output a writable folder")
