"""Work on many files in separate processes, any of which may die alone."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from typing import TypeVar

from profkit.commands.options import interruptible
from profkit.ui.progress import progress_line

_REFRESH = 0.5  # seconds between changes of the progress line; chosen: it looks alive

_Task = TypeVar("_Task")
_Outcome = TypeVar("_Outcome")


def in_parallel(
    do: Callable[[_Task], _Outcome], tasks: Sequence[_Task], died: Callable[[_Task], _Outcome]
) -> list[_Outcome]:
    """What a function makes of each task, in order, in as many processes as there are CPUs.

    A process that dies takes the others' work with it: what was not done is tried again by itself,
    and `died` is what became of the task whose process dies even so.
    """
    workers = min(len(tasks), _cpus())
    outcomes: dict[int, _Outcome] = {}
    if workers < 2:
        with progress_line() as progress:
            for index, task in enumerate(tasks):
                progress(index, len(tasks))
                outcomes[index] = do(task)
        return list(outcomes.values())
    with interruptible(), progress_line() as progress:
        with _pool(workers) as pool:
            jobs = [pool.submit(do, task) for task in tasks]
            pending = set(jobs)
            while pending:
                _, pending = wait(pending, _REFRESH)
                progress(len(jobs) - len(pending), len(jobs))
            with suppress(BrokenProcessPool):
                for index, job in enumerate(jobs):
                    outcomes[index] = job.result()
        for index, job in enumerate(jobs):
            if index not in outcomes:
                finished = job.done() and not job.cancelled() and job.exception() is None
                outcomes[index] = job.result() if finished else _alone(do, tasks[index], died)
                progress(len(outcomes), len(jobs))
    return [outcomes[index] for index in range(len(tasks))]


def _cpus() -> int:
    """How many this process may use, as far as the system says so."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _alone(
    do: Callable[[_Task], _Outcome], task: _Task, died: Callable[[_Task], _Outcome]
) -> _Outcome:
    with _pool(1) as pool:
        try:
            return pool.submit(do, task).result()
        except BrokenProcessPool:
            return died(task)


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with this one, whatever ends it."""
    servers = "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if servers else "spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.kill()
            raise


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
