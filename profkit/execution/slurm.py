"""Slurm, by submitit: a job a GPU, with a list of tasks each.

A job writes each result as soon as it is known into a folder that it shares with the driver, so
that a killed job loses the task that it was at. Lists get shorter toward the end: each GPU then has
as much to do.
"""

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from pickle import UnpicklingError, dumps, loads
from typing import Any

from msgspec import Struct, field

from profkit.core.atomic_file import PART, write_atomic
from profkit.core.errors import EnvironmentProblem
from profkit.core.extras import require
from profkit.execution.placement import JOBS, Placement
from profkit.execution.protocol import Fate, MakeWorker, Outcome, Task, run_task, worker_name

RESULTS, RECORD, CURRENT = "results", "jobs", "current"
_FRUITLESS = 10  # chosen: jobs in a row that fail, or whose GPU can't be used
_LONGEST_LIST = 500  # chosen: what a killed driver's job may go on with
_SHARE = 2  # chosen: lists of half of what is left, by GPU
_SHORTEST = 10.0  # s, chosen: what a list takes at least, since a job takes seconds to start
_RESERVE = 100.0  # s: submitit signals a job 90 s before its end; none begins a task then
_REAPED = 5.0  # s, chosen: submitit's local jobs end within a second or two
_LOOKED = 0.05  # s, chosen: between two looks into the folder of results


class SlurmExecutor:
    """Jobs of a cluster; `folder` is shared with them."""

    def __init__(self, make: MakeWorker, folder: Path, place: Placement) -> None:
        import submitit

        self.name = "slurm"
        folder = folder.resolve()
        self._make, self._folder, self._place = make, folder, place
        self._limit = place.gpus or JOBS
        self._results = folder / RESULTS
        for part in (self._results, folder / CURRENT):
            part.mkdir(parents=True, exist_ok=True)
        try:
            self._submitit: Any = submitit.AutoExecutor(
                folder=folder / "logs" / "%j", cluster=place.cluster
            )
        except RuntimeError:  # no srun
            raise EnvironmentProblem(
                "--on slurm: this machine has no Slurm",
                "start it on a login node, or use --on local",
            ) from None
        self._jobs: dict[str, _Job] = {}
        self._waiting: list[Task] = []
        self._hosts: set[str] = set()
        self._seconds = 0.0
        self._fruitless = self._refusals = 0
        cancel_jobs(folder, place.cluster)

    @property
    def workers(self) -> int:
        """Slurm finds some, unless none of the last ones could be used."""
        return 0 if self._refusals > _FRUITLESS else self._limit

    def room(self, waiting: int) -> int:
        """As many tasks as new jobs would take."""
        free = self.workers - len(self._jobs)
        most = free * self._length(waiting) - len(self._waiting)
        return max(0, min(waiting, most))

    def submit(self, task: Task) -> None:
        """Keep it for the next job."""
        self._waiting.append(task)

    def poll(self, seconds: float) -> list[Outcome]:
        """The results that jobs have written, and what was left of jobs that ended."""
        self._begin()
        deadline = time.monotonic() + seconds
        while not (outcomes := self._written() or self._ended()):
            if time.monotonic() >= deadline:
                break
            time.sleep(_LOOKED)
        return outcomes

    def exclude(self, worker: str) -> None:
        """Have Slurm leave out its machine."""
        self._hosts.add(worker.split()[0])
        self._refusals += 1

    def running(self) -> Mapping[str, str]:
        """The first task of each job, and the job."""
        first = ((next(iter(job.tasks)), job) for job in self._jobs.values() if job.tasks)
        return {task: f"job {job.handle.job_id}" for task, job in first}

    def close(self) -> None:
        """Cancel the jobs, but for those that have no task left."""
        for job in self._jobs.values():
            if job.tasks:
                _cancel(job.handle)
        (self._folder / RECORD).unlink(missing_ok=True)
        if self._place.cluster != "slurm":  # its processes are this one's
            deadline = time.monotonic() + _REAPED
            while time.monotonic() < deadline and not all(
                job.handle.done() for job in self._jobs.values()
            ):
                time.sleep(_LOOKED)
        for part in self._results.glob(f".*{PART}"):  # of jobs that were killed as they wrote
            part.unlink(missing_ok=True)
        self._jobs.clear()

    def _length(self, waiting: int) -> int:
        fewest = math.ceil(_SHORTEST / self._seconds) if self._seconds else 1
        return max(fewest, min(_LONGEST_LIST, waiting // (_SHARE * self._limit)))

    def _begin(self) -> None:
        """Submit jobs for the tasks that wait."""
        count = min(self._limit - len(self._jobs), len(self._waiting))
        if count <= 0:
            return
        lists = [self._waiting[start::count] for start in range(count)]
        self._waiting = []
        place = self._place
        self._submitit.update_parameters(  # None: not set; other clusters ignore those of Slurm
            timeout_min=place.minutes,
            name="profkit",
            nodes=1,
            tasks_per_node=1,
            slurm_gpus_per_node=1,
            slurm_partition=place.partition,
            slurm_exclude=",".join(sorted(self._hosts)) or None,
        )
        for tasks in lists:
            seconds = place.minutes * 60 - _RESERVE
            handle = self._submitit.submit(run_list, self._make, tasks, self._results, seconds)
            self._jobs[handle.job_id] = _Job(handle, {task.id: task for task in tasks})
        write_atomic(self._folder / RECORD, "".join(f"{job}\n" for job in self._jobs))

    def _written(self) -> list[Outcome]:
        outcomes = collected(self._folder)
        for outcome in outcomes:
            self._note(outcome.task)
            if outcome.fate is Fate.done:
                self._refusals = 0
        return outcomes

    def _note(self, task: str) -> None:
        """A task has ended: a job works at the next, and takes so long for each."""
        for job in self._jobs.values():
            if job.tasks.pop(task, None):
                now = time.monotonic()
                if job.counted:
                    self._seconds = (now - job.counted[0]) / len(job.counted)
                job.counted.append(now)

    def _ended(self) -> list[Outcome]:
        """The task that a failed job was at is lost, others were not begun."""
        outcomes: list[Outcome] = []
        for number in [number for number, job in self._jobs.items() if job.handle.done()]:
            if late := self._written():
                return late
            job = self._jobs.pop(number)
            why, current = _failure(job.handle), _text(self._folder / CURRENT / number)
            self._fruitless = 0 if not why or job.counted else self._fruitless + 1
            if self._fruitless > _FRUITLESS:
                raise EnvironmentProblem(
                    f"--on slurm: jobs fail ({why})", f"see {self._folder / 'logs'}"
                )
            for task in job.tasks:
                fate = Fate.lost if why and task == current else Fate.returned
                outcomes.append(Outcome(task, fate, f"job {number}", reason=why))
        return outcomes


class _Job(Struct, frozen=True):
    """A job, its tasks without a result in their order, and when results came (s)."""

    handle: Any
    tasks: dict[str, Task]
    counted: list[float] = field(default_factory=list)


def collected(folder: Path) -> list[Outcome]:
    """The results that jobs have written since the last look, or an earlier driver's jobs."""
    outcomes = []
    for file in (folder / RESULTS).glob("[!.]*"):
        with suppress(OSError, UnpicklingError, EOFError):
            outcomes.append(loads(file.read_bytes()))
        file.unlink(missing_ok=True)
    return outcomes


def run_list(make: MakeWorker, tasks: Sequence[Task], results: Path, seconds: float) -> int:
    """In a job: run tasks while there is time, each result into a file; how many."""
    from submitit import JobEnvironment

    started, longest, count = time.monotonic(), 0.0, 0
    current = results.parent / CURRENT / JobEnvironment().job_id
    name = worker_name()
    with make(None) as worker:
        for task in tasks:
            begun = time.monotonic()
            write_atomic(current, task.id, sync=False)
            if begun - started + longest > seconds:
                break
            outcome = run_task(worker, task, name)
            result = results / f"{task.id}.{task.attempt}"
            write_atomic(result, dumps(outcome), sync=False)  # what is lost is measured again
            count += 1
            if outcome.fate is Fate.refused:
                break
            longest = max(longest, time.monotonic() - begun)
    return count


def cancel_jobs(folder: Path, cluster: str = "slurm") -> int:
    """Cancel the jobs that an earlier driver left; how many."""
    numbers = _text(folder / RECORD).split()
    if not numbers:
        return 0
    require("canceling jobs of Slurm", "submitit")
    import submitit

    kind = submitit.SlurmJob if cluster == "slurm" else submitit.LocalJob
    for number in numbers:
        _cancel(kind(folder / "logs" / "%j", number))
    (folder / RECORD).unlink(missing_ok=True)
    return len(numbers)


def _text(path: Path) -> str:
    """The text of a file of jobs; "" where they have written none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def _cancel(handle: Any) -> None:
    with suppress(Exception):  # one that has ended
        handle.cancel(check=False)


def _failure(handle: Any) -> str:
    """Why a job failed; "" where it did not."""
    if not handle.paths.result_pickle.exists():  # exception() would wait for it
        return f"the job ended without a result ({handle.state.lower()})"
    error = handle.exception()
    if error is None:
        return ""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" -")]
    trace = [line for line in lines if "Error" in line]
    return f"the job failed ({(trace or lines or [type(error).__name__])[-1]})"[:200]
