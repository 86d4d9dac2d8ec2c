"""Ends a torch training that has made enough steps for a timeline, as if it were over.

Any Python from 3.9 on loads this file beside the program, without profkit
(`profkit.execution.injection`). Their number is written to the file that PROFKIT_TRAINING_END
names. Several processes that train together go on: they would wait for each other.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from statistics import median
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

_PREPARING = 5  # first steps, chosen: autotuning, lazy loading
_STEPS, _SECONDS = 40, 5.0  # of them, chosen: medians and quartiles of steps are known by then
_PAUSE = 5.0  # chosen: usual steps after which another part of the program has run in between
# Such parts, chosen: they repeat, too; and times that the last took to come, in which it would have
# come again.
_PERIODS, _AGAIN = 3, 2.0
_EACH = 10  # steps from one look at them to the next


class Training:
    """The steps of each optimizer of a program."""

    def __init__(self, torch: Any, path: str) -> None:
        from torch.optim import optimizer

        self._torch, self._path, self._is_over = torch, path, False
        self._ends: WeakKeyDictionary[Any, list[float]] = WeakKeyDictionary()
        optimizer.register_optimizer_step_post_hook(self._stepped)

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        if self._torch.compiler.is_compiling():
            return
        if self._is_over and os.path.exists(self._path):  # the program has caught it, and goes on
            os.remove(self._path)
        ends = self._ends.setdefault(optimizer, [])
        ends.append(monotonic())
        if len(ends) % _EACH == 0 and not self._is_over and self._is_alone() and is_enough(ends):
            self._is_over = True
            with open(self._path, "w", encoding="utf-8") as file:
                file.write(str(len(ends)))
            raise SystemExit(0)

    def _is_alone(self) -> bool:
        """Whether this is the program's only process that trains, and its main thread."""
        is_initialized = getattr(self._torch.distributed, "is_initialized", bool)
        is_main = threading.current_thread() is threading.main_thread()
        return is_main and not is_initialized() and multiprocessing.parent_process() is None


def is_enough(ends: list[float]) -> bool:
    """Whether steps that ended at these moments (s) show what others after them do: what ran
    between them has come again, or hasn't for twice the time before it."""
    steady = ends[_PREPARING:]
    if len(steady) <= _STEPS or steady[-1] - steady[0] < _SECONDS:
        return False
    times = [after - before for before, after in zip(steady, steady[1:])]
    usual = median(times)
    pauses = [place for place, time in enumerate(times) if time > _PAUSE * usual]
    if not pauses or len(pauses) >= _PERIODS:
        return True
    return steady[-1] - steady[pauses[-1] + 1] > _AGAIN * (steady[pauses[-1]] - steady[0])


def install(module: Any) -> None:
    """Hook into torch, which has just been imported."""
    Training(module, os.environ["PROFKIT_TRAINING_END"])
