"""Executors: they run tasks on GPUs, one worker a GPU, and report what became of each.

A worker is made by a picklable function of a GPU's number (None: the one that its process sees) and
measures one task at a time. A task's content is picklable, its result bytes.
"""

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from profkit.capture.gpu import VISIBLE
from profkit.core.errors import ProfkitError


class Task(Struct, frozen=True):
    """A unit of work; `attempt` counts from 1."""

    id: str
    content: Any
    attempt: int = 1


class Fate(Enum):
    """What became of a task: it has a result, its worker died, its worker can't be used, or it was
    not begun."""

    done = "done"
    lost = "lost"
    refused = "refused"
    returned = "returned"


class Outcome(Struct, frozen=True):
    """The end of an attempt; `reason` says why there is no result."""

    task: str
    fate: Fate
    worker: str
    result: bytes = b""
    reason: str = ""
    remedy: str = ""


class Worker(Protocol):
    """Runs tasks on one GPU. Raises ProfkitError where that GPU or machine can't be used.

    Several threads may call it: the GPU runs one task at a time, while the result of the previous
    one is encoded.
    """

    def __call__(self, task: Task, /) -> bytes:
        """The result of a task."""

    def stop(self) -> None:
        """End the task that is running, from another thread."""


MakeWorker: TypeAlias = Callable[[int | None], AbstractContextManager[Worker]]


class Executor(Protocol):
    """Runs tasks by workers of its own."""

    name: str

    def room(self, waiting: int) -> int:
        """How many tasks it takes now, of that many that wait."""

    def submit(self, task: Task) -> None:
        """Take a task."""

    def poll(self, seconds: float) -> list[Outcome]:
        """Tasks that ended, after `seconds` at most."""

    @property
    def workers(self) -> int:
        """How many workers run or may come."""

    def exclude(self, worker: str) -> None:
        """Give this worker no more tasks."""

    def running(self) -> Mapping[str, str]:
        """The tasks that it has, and the workers that they are at."""

    def close(self) -> None:
        """End all workers and their tasks."""


def run_task(worker: Worker, task: Task, name: str) -> Outcome:
    """The outcome of a task at a living worker."""
    try:
        return Outcome(task.id, Fate.done, name, worker(task))
    except ProfkitError as error:
        return Outcome(task.id, Fate.refused, name, reason=error.message, remedy=error.remedy)


def host_name() -> str:
    """The name of this machine, without its domain."""
    return socket.gethostname().partition(".")[0]


def worker_name(gpu: int | None = None) -> str:
    """The name of a worker on this machine: of its GPU, else of its process."""
    if gpu is not None:
        return f"{host_name()} GPU {gpu}"
    visible = os.environ.get(VISIBLE)
    parts = host_name(), visible and f"GPU {visible}", f"process {os.getpid()}"
    return " ".join(filter(None, parts))
