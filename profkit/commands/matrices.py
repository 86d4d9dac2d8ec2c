"""`--matrix` of time and profile: the same command line for every shape, spread over GPUs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.commands.options import interruptible, warn
from profkit.core.errors import TargetFailed, UsageError
from profkit.ui.progress import stage_progress

if TYPE_CHECKING:
    from profkit.execution.placement import Placement
    from profkit.study.matrix import Matrix

_OWN = ("--matrix", "--into", "--on", "--gpus", "--partition", "--time")


@dataclass(frozen=True)
class Spread:
    """What becomes of a matrix's shapes: where they run, and the folder for their results."""

    matrix: Matrix
    place: Placement | None
    folder: Path
    resume: bool


def run_over_matrix(
    spread: Spread,
    target: Path,
    *,
    without: Sequence[str],
    output: Sequence[str],
    statuses: Sequence[int],
) -> tuple[str, ...]:
    """Run this command line for each shape; the names of those with results.

    It goes without the options named in `without`, which take a value each, and with `output`.
    Raises TargetFailed where no shape has a result.
    """
    from profkit.execution.commands import FAILED, Command, Commands, inputs_of, run_commands
    from profkit.execution.placement import LOCAL, Placement
    from profkit.timing.latency_view import without as stripped

    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    own = [word for word in stripped(words[:end], [*_OWN, *without]) if word != "--resume"]
    head, arguments = ("-P", "-m", "profkit", *own, *output), words[end + 1 :]
    shapes = spread.matrix.shapes
    commands = Commands(
        tuple(
            Command(each.name, (*head, "--", *arguments, *each.words), tuple(statuses))
            for each in shapes
        ),
        str(Path.cwd()),
        inputs_of([target]),
        single=spread.place is None,
    )
    left = "finished shapes are saved: go on with --resume"
    with interruptible(left), stage_progress() as show:
        place = spread.place or Placement(LOCAL)
        state = run_commands(commands, place, spread.folder, show, resume=spread.resume)
    for name, reason in state.given_up.items():
        warn(f"{name} failed twice: {reason}; see {spread.folder / FAILED / name}.txt")
    for worker, reason in state.excluded.items():
        warn(f"{worker} was not used: {reason}")
    done = tuple(each.name for each in shapes if (spread.folder / each.name).is_dir())
    if not done:
        raise TargetFailed("no shape has a result", f"see {spread.folder / FAILED}")
    return done


def matrix_of_files(paths: Sequence[Path]) -> Matrix:
    """The shapes of several files."""
    from profkit.study.matrix import joined, read_matrix

    return joined([read_matrix(path) for path in paths])


def refuse_without_matrix(**options: object) -> None:
    """Raise UsageError for an option of a matrix, where there is none."""
    for name, value in options.items():
        if value:
            raise UsageError(f"--{name} is for a matrix of shapes", "add --matrix FILE")
