"""The GPUs of this machine: a thread each, whose worker starts a process with that GPU alone."""

import queue
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress

from profkit.core.text_files import error_words
from profkit.execution.protocol import (
    Fate,
    MakeWorker,
    Outcome,
    Task,
    Worker,
    run_task,
    worker_name,
)

_MANY = 4  # tasks a worker, chosen: with fewer left none waits behind another
_JOINED = 10.0  # s, chosen: a worker ends its process within 5 s


class LocalExecutor:
    """Workers on GPUs by number; None stands for the CPU or for the GPU that is visible."""

    def __init__(self, make: MakeWorker, gpus: Sequence[int | None], ahead: int) -> None:
        self.name = "local"
        self._ahead = ahead
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._slots = [_Slot(make, gpu, self._outcomes) for gpu in gpus]
        for slot in self._slots:
            slot.thread.start()

    @property
    def workers(self) -> int:
        """Those not excluded."""
        return sum(not slot.excluded for slot in self._slots)

    def room(self, waiting: int) -> int:
        """What its workers take: toward the end one each."""
        most = self._ahead if waiting >= _MANY * len(self._slots) else 1
        return min(waiting, sum(max(0, slot.room(most)) for slot in self._slots))

    def submit(self, task: Task) -> None:
        """Give it to the worker with the fewest."""
        max(self._slots, key=lambda slot: slot.room(self._ahead)).give(task)

    def poll(self, seconds: float) -> list[Outcome]:
        """Those that ended."""
        outcomes = []
        with suppress(queue.Empty):
            outcomes.append(self._outcomes.get(timeout=seconds))
            while True:
                outcomes.append(self._outcomes.get_nowait())
        for outcome in outcomes:
            for slot in self._slots:
                if slot.name == outcome.worker:
                    del slot.tasks[outcome.task]
        return outcomes

    def exclude(self, worker: str) -> None:
        """Leave its GPU alone."""
        for slot in self._slots:
            if slot.name == worker and not slot.excluded:
                slot.excluded = True
                slot.inbox.put(None)

    def running(self) -> Mapping[str, str]:
        """Tasks and GPUs."""
        return {task: slot.name for slot in self._slots for task in slot.tasks}

    def close(self) -> None:
        """End the processes."""
        for slot in self._slots:
            slot.inbox.put(None)
            slot.stop()
        for slot in self._slots:
            slot.thread.join(_JOINED)


class _Slot:
    """A GPU, its thread, and the tasks that it has."""

    def __init__(
        self, make: MakeWorker, gpu: int | None, outcomes: queue.SimpleQueue[Outcome]
    ) -> None:
        self.name = worker_name(gpu)
        self.inbox: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.tasks: dict[str, Task] = {}
        self.excluded = False
        self._make, self._gpu, self._outcomes = make, gpu, outcomes
        self._worker: Worker | None = None

    def room(self, most: int) -> int:
        """How many tasks it takes more."""
        return 0 if self.excluded else most - len(self.tasks)

    def give(self, task: Task) -> None:
        """Run it in the thread."""
        self.tasks[task.id] = task
        self.inbox.put(task)

    def stop(self) -> None:
        """End what runs."""
        if self._worker is not None:
            self._worker.stop()

    def _serve(self) -> None:
        with ExitStack() as stack:
            try:
                self._worker = worker = stack.enter_context(self._make(self._gpu))
            except Exception as error:
                why = f"no worker can be made ({error_words(error)})"
                while (task := self.inbox.get()) is not None:
                    self._outcomes.put(Outcome(task.id, Fate.refused, self.name, reason=why))
                return
            while (task := self.inbox.get()) is not None:
                try:
                    outcome = run_task(worker, task, self.name)
                except Exception as error:
                    outcome = Outcome(task.id, Fate.lost, self.name, reason=error_words(error))
                self._outcomes.put(outcome)
