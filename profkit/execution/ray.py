"""An existing Ray cluster: an actor on each whole GPU, which runs task after task.

Actors rather than tasks: Ray ends the process of a GPU task with it, and a target takes seconds to
import. Nothing is retried by Ray; results are its objects, so no storage is shared. Tasks and
outcomes are pickled here: Ray's own pickling takes 0.9 ms a task, measured on a Xeon.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping
from pickle import dumps, loads
from typing import Any, TypeAlias

from profkit.core.errors import EnvironmentProblem
from profkit.execution.protocol import Fate, MakeWorker, Outcome, Task, depth, run_task, worker_name

_Handle: TypeAlias = Any  # of an actor: Ray may not be installed
_COUNTED = 5.0  # s, chosen: between two counts of the cluster's GPUs
_FRUITLESS = 10  # chosen: starts of workers in a row without a result


class _Actor:
    """In a process of Ray's, which sees one GPU."""

    def __init__(self, make: MakeWorker) -> None:
        self._stack = contextlib.ExitStack()
        self._worker = self._stack.enter_context(make(None))
        self._name = worker_name()

    def name(self) -> str:
        return self._name

    def run(self, task: bytes) -> bytes:
        return dumps(run_task(self._worker, loads(task), self._name))


class RayExecutor:
    """Actors on a cluster; connects to it, and disconnects when it is closed."""

    def __init__(self, make: MakeWorker, address: str | None, gpus: int | None, ahead: int) -> None:
        import ray

        self.name = "ray"
        self._ray: Any = ray
        self._limit, self._ahead = gpus, ahead
        self._connected = not ray.is_initialized()
        if self._connected:
            try:
                ray.init(
                    address=address or "auto", log_to_driver=False, logging_level=logging.ERROR
                )
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise _unanswered(address, str(error)) from None
        # Without CPUs: by default an actor is placed where one is free, and on a node of few CPUs
        # the second GPU waited tens of seconds for it.
        options = {"num_gpus": 1, "num_cpus": 0, "max_restarts": 0, "max_task_retries": 0}
        self._kind = ray.remote(**options, max_concurrency=ahead)(_Actor)
        self._make = ray.put(make)
        self._starting: dict[Any, _Handle] = {}
        self._actors: dict[str, _Handle] = {}
        self._excluded: set[str] = set()
        self._tasks: dict[Any, tuple[Task, str]] = {}
        self._load: dict[str, int] = {}
        self._counted = -_COUNTED
        self._fruitless = 0
        self._why = ""
        self._start()

    @property
    def workers(self) -> int:
        """Those that run or start."""
        return len(self._load) + len(self._starting)

    def room(self, waiting: int) -> int:
        """What its actors take."""
        most = depth(self._ahead, waiting, len(self._load))
        free = sum(max(0, most - load) for load in self._load.values())
        return min(waiting, free)

    def submit(self, task: Task) -> None:
        """Give it to the actor with the fewest."""
        name = min(self._load, key=lambda name: self._load[name])
        self._load[name] += 1
        self._tasks[self._actors[name].run.remote(dumps(task))] = task, name

    def poll(self, seconds: float) -> list[Outcome]:
        """Results; those of dead actors are lost."""
        self._start()
        references = [*self._tasks, *self._starting]
        if not references:
            time.sleep(seconds)
            return []
        ready, _ = self._ray.wait(references, timeout=seconds)
        if ready:
            several, _ = self._ray.wait(references, num_returns=len(references), timeout=0)
            ready = set(several)
        outcomes = []
        for reference in references:  # in the order of submission
            if reference not in ready:
                continue
            if reference in self._starting:
                self._started(reference)
            else:
                outcomes += self._ended(reference)
        return outcomes

    def exclude(self, worker: str) -> None:
        """Leave the actor where it is: it holds a GPU that is of no use."""
        self._load.pop(worker, None)
        self._excluded.add(worker)

    def running(self) -> Mapping[str, str]:
        """Tasks and actors."""
        return {task.id: name for task, name in self._tasks.values()}

    def close(self) -> None:
        """End the actors."""
        for actor in (*self._actors.values(), *self._starting.values()):
            self._ray.kill(actor)
        if self._connected:
            self._ray.shutdown()

    def _start(self) -> None:
        """Start an actor on each GPU without one."""
        if time.monotonic() - self._counted < _COUNTED:
            return
        self._counted = time.monotonic()
        if self._fruitless > _FRUITLESS:
            raise EnvironmentProblem(f"--on ray: workers die ({self._why})", "see Ray's logs")
        total = int(self._ray.cluster_resources().get("GPU", 0))
        if not total and not self._actors:
            raise EnvironmentProblem(
                "--on ray: the cluster has no GPU", "start nodes with `ray start --num-gpus N`"
            )
        wanted = min(total, self._limit or total)
        for _ in range(wanted - len(self._actors) - len(self._starting)):
            actor = self._kind.remote(self._make)
            self._starting[actor.name.remote()] = actor

    def _started(self, reference: Any) -> None:
        actor = self._starting.pop(reference)
        try:
            name = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            self._died(error)
            return
        self._actors[name] = actor
        self._load[name] = 0

    def _ended(self, reference: Any) -> list[Outcome]:
        """Its outcome; of a dead actor those of all its tasks: the first is lost."""
        if reference not in self._tasks:  # with its actor
            return []
        task, name = self._tasks.pop(reference)
        if name in self._load:
            self._load[name] -= 1
        try:
            outcome: Outcome = loads(self._ray.get(reference))
        except self._ray.exceptions.RayTaskError as error:
            return [Outcome(task.id, Fate.lost, name, reason=_words(error))]
        except self._ray.exceptions.RayError as error:
            why = _words(error)
            self._actors.pop(name, None)
            self._load.pop(name, None)
            self._died(error)
            others = [key for key, (_, actor) in self._tasks.items() if actor == name]
            tasks = [task, *(self._tasks.pop(key)[0] for key in others)]
            return [
                Outcome(each.id, Fate.returned if place else Fate.lost, name, reason=why)
                for place, each in enumerate(tasks)
            ]
        self._fruitless = 0
        return [outcome]

    def _died(self, error: Exception) -> None:
        self._fruitless += 1
        self._why = _words(error)
        self._counted = -_COUNTED


def _unanswered(address: str | None, why: str) -> EnvironmentProblem:
    if "ray[client]" in why:
        return EnvironmentProblem(
            f"--on {address}: Ray's client is not installed",
            "pip install 'ray[client]', or use --on ray on a machine of the cluster",
        )
    where = f"{address}: no cluster answers there" if address else "ray: no cluster runs here"
    return EnvironmentProblem(
        f"--on {where}", "start one with `ray start --head`, or use --on local"
    )


def _words(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"[:200]
