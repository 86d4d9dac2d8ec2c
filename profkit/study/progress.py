"""How far a baseline on several GPUs is: `profkit.baseline-progress/1`, beside its cells."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from msgspec import UNSET, UnsetType

from profkit.core.atomic_file import write_atomic
from profkit.core.duration import duration
from profkit.core.errors import BadInput, EnvironmentProblem, refusal
from profkit.core.lock import file_lock
from profkit.core.text_files import MissingFile
from profkit.core.timestamp import timestamp
from profkit.core.typed_file import Amount, Count, File, Model, encode, known, read_file
from profkit.execution.protocol import host_name
from profkit.execution.slurm import cancel_jobs
from profkit.study.folder import cell_statuses, read_plan
from profkit.ui.document import Block, Document, Facts, Lines, Row
from profkit.ui.text import plural

PROGRESS, CANCEL, JOBS = "progress.json", "cancel", "jobs"


class Running(Model, frozen=True, kw_only=True):
    """A shape that is being measured, where, and for how many seconds."""

    shape: str
    worker: str
    seconds: Amount


class Unused(Model, frozen=True, kw_only=True):
    """A shape that was given up, or a worker that can't be used, and why."""

    name: str
    reason: str


class ProgressFile(File, frozen=True, kw_only=True, tag="profkit.baseline-progress/1"):
    """The state of the last run on several GPUs: shapes of this run, seconds.

    `lost` counts shapes whose worker ended, which others took. `rate` is in shapes per second.
    """

    executor: str
    host: str
    process: Count
    started: str
    updated: str
    state: Literal["running", "finished", "canceled", "failed"]
    total: Count
    finished: Count
    waiting: Count
    lost: Count
    running: tuple[Running, ...]
    given_up: tuple[Unused, ...]
    excluded: tuple[Unused, ...]
    rate: Amount | None
    remaining: Amount | None


class StatusFile(File, frozen=True, kw_only=True, tag="profkit.baseline-status/1"):
    """The cells of a baseline by status, those planned, and the last run on several GPUs.

    `alive`: a process measures, on several GPUs if there is `progress`; `unreadable` is why that
    can't be read.
    """

    folder: str
    planned: Count
    counts: dict[str, int]
    alive: bool | None
    progress: ProgressFile | None
    unreadable: str | UnsetType = UNSET


def write_progress(folder: Path, progress: ProgressFile) -> None:
    """Save it; raises OSError."""
    write_atomic(folder / PROGRESS, encode(progress, dense=False), sync=False)


def forget_progress(folder: Path) -> None:
    """Remove that of an earlier run, where one begins that has none."""
    with suppress(OSError):
        (folder / PROGRESS).unlink()


def read_status(folder: Path) -> StatusFile:
    """The status of a baseline; raises BadInput for a folder without one."""
    plan = read_plan(folder)
    if plan is None:
        raise BadInput(f"{folder}: contains no baseline", "make one with profkit baseline run")
    progress, unreadable = None, ""
    try:
        progress = read_file(folder / PROGRESS, ProgressFile)
    except MissingFile:
        pass
    except BadInput as error:  # such as an empty one, after a loss of power
        unreadable = error.message
    counts = Counter(cell_statuses(folder))
    available = sum(backend.available for backend in plan.backends)
    return StatusFile(
        folder=str(folder),
        planned=len(plan.asked.matrix.shapes) * available,
        counts=dict(counts),
        alive=_is_alive(folder, progress),
        progress=progress,
        unreadable=unreadable or UNSET,
    )


def _is_alive(folder: Path, progress: ProgressFile | None) -> bool | None:
    """Whether a process measures into the folder: by its lock on this machine, by its last words
    elsewhere."""
    if progress is not None and progress.state != "running":
        return False
    if progress is not None and progress.host != host_name():
        age = datetime.now(UTC) - datetime.fromisoformat(progress.updated)
        return age.total_seconds() < _SILENT
    try:
        with file_lock(folder, ""):
            return False
    except EnvironmentProblem:
        return True


_ALONE = "it is measured on one GPU, without --on: press Ctrl-C where that runs"
_ANSWERED = 15.0  # s, chosen: a driver looks every second or two
_SILENT = 60.0  # s, chosen: a driver writes every second or two; clocks of hosts differ


def status_document(status: StatusFile) -> Document:
    """The status in words."""
    done = sum(count for name, count in status.counts.items() if name != "no_time")
    lines = [f"{status.folder}: {done} of {plural(status.planned, 'configuration')}"]
    if status.counts:
        lines.append("  " + ", ".join(f"{n} {name}" for name, n in sorted(status.counts.items())))
    blocks: list[Block] = []
    if status.progress is not None:
        blocks = [Lines((), gap=True), Facts("", tuple(_rows(status.progress, bool(status.alive))))]
    else:
        lines += filter(None, [known(status.unreadable)])
        lines += ["A process of this machine measures them"] if status.alive else []
    return Document(f"Status of {status.folder}", (Lines(tuple(lines)), *blocks))


def _rows(progress: ProgressFile, alive: bool) -> Iterator[Row]:
    """The last run on several GPUs; `alive` while it goes on."""
    ended = progress.state == "running" and not alive
    state = "ended without a word (go on with --resume)" if ended else progress.state
    driver = f"{progress.host}, process {progress.process}, --on {progress.executor}: {state}"
    yield Row("Driver", driver)
    yield Row(
        "Shapes",
        f"{progress.finished} of {progress.total} of this run, {progress.waiting} waiting, "
        f"{len(progress.running)} running, {progress.lost} lost and taken by others",
    )
    if progress.rate:
        unknown = progress.remaining is None
        left = f", about {'?' if unknown else duration(progress.remaining or 0.0)} left"
        yield Row("Rate", f"{progress.rate * 60:.3g} shapes a minute{left * alive}")
    for place, each in enumerate(progress.running if alive else ()):
        words = f"{each.shape} on {each.worker}, {each.seconds:.0f} s"
        yield Row("" if place else "Running", words)
    for label, several in (("Given up", progress.given_up), ("Not used", progress.excluded)):
        yield from (Row(label, f"{each.name}: {each.reason}") for each in several)


def ask_to_cancel(folder: Path, wait: Callable[[float], None]) -> str:
    """Ask the driver of a baseline to end, and what became of it.

    It sees a file, so it may run on another host that shares the folder.
    """
    status = read_status(folder)
    if not status.alive:
        jobs = cancel_jobs(folder / JOBS)
        left = f"; {plural(jobs, 'job')} of its last driver canceled" if jobs else ""
        return f"no driver works on it{left}"
    if status.progress is None and not known(status.unreadable):
        return f"{_ALONE}; measured configurations stay"
    with refusal(f"{folder / CANCEL}: can't be written", EnvironmentProblem):
        (folder / CANCEL).write_text(f"{host_name()} {os.getpid()} {timestamp()}\n")
    passed, step = 0.0, 0.25
    while passed < _ANSWERED:
        wait(step)
        passed += step
        progress = read_status(folder).progress
        if progress is not None and progress.state != "running":
            return "canceled"
    return "asked to end; it has not answered yet"
