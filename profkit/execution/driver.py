"""The driver: gives tasks to an executor until each has a result or is given up.

A task that fails twice is given up; one whose worker died is run by another, and given up once it
has taken down several.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from msgspec import Struct

from profkit.core.errors import EnvironmentProblem
from profkit.execution.protocol import Executor, Fate, Outcome, Task

FAILURES = 2  # chosen: one crash may be chance
_DEATHS = 4  # chosen: killing 1% of all tasks at random gives up one in 10^8
_POLL = 0.2  # s, chosen: what a cancellation waits for


class Handler(Protocol):
    """What the driver does not know: contents, results and their files."""

    def content(self, task: str, attempt: int, /) -> Any:
        """What to send; None where the task is not to be run any more."""

    def accept(self, task: str, outcome: Outcome, /) -> Reply:
        """Save a result."""

    def give_up(self, task: str, reason: str, /) -> None:
        """Save that there is no result, and why."""

    def watch(self, state: State) -> None:
        """Called often; ends the run by an exception."""


class Reply(Struct, frozen=True):
    """`failed`: why the task is to be run again; `excluded`: why its worker is of no use."""

    failed: str = ""
    excluded: str = ""


@dataclass
class State:
    """How far a run is; times by the monotonic clock. Tasks of `since` are with the executor."""

    total: int
    started: float = field(default_factory=time.monotonic)
    finished: int = 0
    waiting: int = 0
    lost: int = 0
    given_up: dict[str, str] = field(default_factory=dict)
    excluded: dict[str, str] = field(default_factory=dict)
    running: Mapping[str, str] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float | None:
        """Tasks per second."""
        took = time.monotonic() - self.started
        return self.finished / took if self.finished else None

    @property
    def remaining(self) -> float | None:
        """Seconds, at that rate."""
        return (self.total - self.finished) / self.rate if self.rate else None


def drive(executor: Executor, tasks: Iterable[str], handler: Handler) -> State:
    """Run all tasks; the executor stays open.

    Raises EnvironmentProblem where no worker is left, and what `handler.watch` raises.
    """
    return _Run(executor, tasks, handler).run()


class _Run:
    def __init__(self, executor: Executor, tasks: Iterable[str], handler: Handler) -> None:
        self._executor, self._handler = executor, handler
        self._waiting = deque(tasks)
        self._failures: Counter[str] = Counter()
        self._deaths: Counter[str] = Counter()
        self._remedy = ""
        self._state = State(len(self._waiting))

    def run(self) -> State:
        """Until nothing waits or runs."""
        state = self._state
        while self._waiting or state.since:
            self._submit()
            if not state.since and self._waiting and not self._executor.workers:
                reasons = "; ".join(f"{name}: {why}" for name, why in state.excluded.items())
                raise EnvironmentProblem(f"no GPU can be used ({reasons})", self._remedy)
            outcomes = [each for each in self._executor.poll(_POLL) if each.task in state.since]
            for outcome in outcomes:
                del state.since[outcome.task]
            self._submit()  # workers go on while results are saved
            for outcome in outcomes:
                self._settle(outcome)
            state.waiting = len(self._waiting)
            state.running = self._executor.running()
            self._handler.watch(state)
        return state

    def _submit(self) -> None:
        room = self._executor.room(len(self._waiting))
        while room > 0 and self._waiting:
            task = self._waiting.popleft()
            content = self._handler.content(task, self._failures[task] + 1)
            if content is None:
                self._state.finished += 1
                continue
            self._state.since[task] = time.monotonic()
            self._executor.submit(Task(task, content, self._failures[task] + 1))
            room -= 1

    def _settle(self, outcome: Outcome) -> None:
        task = outcome.task
        if outcome.fate is Fate.done:
            reply = self._handler.accept(task, outcome)
            if reply.excluded:
                self._exclude(outcome.worker, reply.excluded)
                self._waiting.append(task)
            elif reply.failed:
                self._failures[task] += 1
                self._again(task, reply.failed, self._failures[task] >= FAILURES)
            else:
                self._finish(task)
        elif outcome.fate is Fate.lost:
            self._state.lost += 1
            self._deaths[task] += 1
            self._again(task, outcome.reason, self._deaths[task] >= _DEATHS)
        else:
            if outcome.fate is Fate.refused:
                self._remedy = outcome.remedy
                self._exclude(outcome.worker, outcome.reason)
            self._waiting.append(task)

    def _exclude(self, worker: str, reason: str) -> None:
        self._state.excluded[worker] = reason
        self._executor.exclude(worker)

    def _again(self, task: str, reason: str, enough: bool) -> None:
        if not enough:
            self._waiting.append(task)
            return
        self._state.given_up[task] = reason
        self._handler.give_up(task, reason)
        self._finish(task)

    def _finish(self, task: str) -> None:
        self._state.finished += 1
        self._failures.pop(task, None)
        self._deaths.pop(task, None)
