"""What is recorded of one process of the program: times at step boundaries, results, features."""

from __future__ import annotations

import atexit
import multiprocessing.process
import os
import sys
import time
from bisect import bisect
from collections.abc import Callable
from typing import Any

from .forks import changed, write
from .state import Watch, difference, is_installed, is_of_program, is_own, random_numbers, state

PREPARING = 5  # first units that no window begins in, chosen: allocator, autotuning, lazy loading
_LEAST_UNITS = {"generate": 3}  # chosen: a call takes seconds
_WINDOWS = {"generate": 3.0}  # windows, chosen: its first calls compile, which fills one
_RARE = 8  # chosen: calls of libraries by one of the program in each step
_LEAST = 15  # units in a window, chosen: their mean varies by a quarter of a unit's spread
_FEW, _LONG = 3, 3.0  # the same, of units so long that they fill so many windows
_MOST = 20_000  # units recorded, chosen: 1 MB of times
_SHORT = 60  # characters of a folder, chosen: paths of sockets in it have 107 at most
_MOST_RESULTS = 400  # chosen: steps of a window of 4 s at 10 ms


class Record:
    """Boundaries by kind, results by series, and features that switches need.

    `plan` has the folder to write to, the unit and the number of units after which the process
    ends (None: the first run, which ends when it has a `window` of units), `grace` seconds later
    unless the program has ended by itself until then. What switches use of `child.state` is here.
    """

    Watch, is_own, is_of_program = Watch, staticmethod(is_own), staticmethod(is_of_program)
    state, difference = staticmethod(state), staticmethod(difference)
    random_numbers = staticmethod(random_numbers)

    def __init__(self, plan: Any) -> None:
        self.plan = plan
        self.process = os.getpid()
        self.marks: dict[str, list[tuple[int, Any, float]]] = {}
        self.passed: dict[str, int] = {}
        self.secondary: set[str] = set()
        self.compiled: list[int] = []  # when the compiler has ended, in ns
        self.pauses: list[tuple[int, float]] = []  # what happens once: its end in ns, and seconds
        self.waits: list[tuple[int, float]] = []  # for input: their end in ns, and seconds
        self.looks: list[tuple[int, Any]] = []  # moments within units, as those in `marks`
        self.results: dict[str, list[Any]] = {}
        self.features: set[str] = set()
        self.applied: set[str] = set()
        self.facts: Any = {}
        self.failure = ""  # why results count for nothing, as seen at the end
        self.new_event: Callable[[], Any] = lambda: None
        self.finishing: list[Callable[[], None]] = []
        self.closing: list[Callable[[], None]] = []  # at the end, though it was written before
        self._written: Any = None
        self.elapsed: Callable[[Any, Any], float] = lambda before, after: 0.0
        self._ended = False
        self._closing = ""  # the kind whose units have filled the window
        self._end = 0.0
        if len(plan["folder"]) < _SHORT:  # it is removed in any case
            current: Any = multiprocessing.process.current_process()
            current._config.setdefault("tempdir", plan["folder"])
        atexit.register(self.close)
        self._exit = os._exit
        os._exit = self._leave

    def mark(self, kind: str, weight: float = 1.0) -> None:
        """A unit of a kind has ended now; `weight` is how much work it was."""
        if os.getpid() != self.process or self.plan["unit"] not in (None, kind):
            return
        if self._ended and kind == "optimizer" and self._is_provisional():
            self._ended = False  # what was before has only prepared it
        if self._ended:
            if time.monotonic() > self._end:
                self.close()
                self.stop()
            return
        row = self.marks.setdefault(kind, [])
        if len(row) < _MOST:
            row.append((time.perf_counter_ns(), self.new_event(), weight))
        if self._is_enough(kind, row):
            self._closing = kind
            self.write(stopped=True)
            self._end = time.monotonic() + self.plan["grace"]
            if not self.plan["grace"]:
                self.stop()

    def look(self) -> None:
        """Note when the device gets to where the host is now, within a unit."""
        if os.getpid() == self.process and not self._ended and len(self.looks) < _MOST:
            self.looks.append((time.perf_counter_ns(), self.new_event()))

    def _is_enough(self, kind: str, row: list[Any]) -> bool:
        unit, window = self.plan["unit"], self.plan["window"]
        if unit is not None:
            count = self.passed.get(kind, 0) + len(row)
            return bool(kind == unit and self.plan["units"] and count >= self.plan["units"])
        least = _LEAST_UNITS.get(kind, _LEAST)
        first = min(PREPARING, least - 1)
        if window is None or len(row) < first + min(least, _FEW) or kind != self.leading(last=kind):
            return False
        window *= _WINDOWS.get(kind, 1.0) * (_LONG if len(row) < first + least else 1.0)
        return bool(row[-1][0] - row[first - 1][0] > window * 1e9)

    def _is_provisional(self) -> bool:
        """Whether other units than a training's have filled the window: one may follow."""
        return self._closing not in ("", "optimizer", "generate")

    def restart(self, kind: str) -> None:
        """The units of a kind so far are those of an earlier part of the program."""
        self.passed[kind] = self.passed.get(kind, 0) + len(self.marks.pop(kind, ()))

    def leading(self, least: int = 0, last: str = "") -> str:
        """The kind of unit that a window is of: optimizer steps before calls of generate, of which
        there are at least so many, before the function or module that is called least of those that
        are called in each step, of equals the `last` one; `secondary` ones are where the program's
        own are rare. What a process calls that works for another, which may train with it, is no
        unit."""
        for kind in ("optimizer", "generate"):
            if len(self.marks.get(kind, ())) >= least and kind in self.marks:
                return kind
        processes: Any = sys.modules.get("multiprocessing.process")
        if processes is not None and processes.parent_process() is not None:
            return ""
        counts = {kind: len(row) for kind, row in self.marks.items()}
        own = {kind: count for kind, count in counts.items() if kind not in self.secondary}
        if max(own.values(), default=0) * _RARE >= max(counts.values(), default=0):
            counts = own
        several = [kind for kind, count in counts.items() if count >= PREPARING + _FEW]
        often = [kind for kind in several if counts[kind] >= _LEAST] or several
        return min(often, key=lambda kind: (counts[kind], kind != last), default="")

    def result(self, series: str, value: Callable[[], Any]) -> None:
        """Keep a result, computed now and read at the end, unless there are enough."""
        row = self.results.setdefault(series, [])
        if len(row) < _MOST_RESULTS and (not self._ended or self._is_provisional()):
            try:
                row.append(value())
            except Exception:  # of a kind that can't be sampled, sparse or a random key
                row.append(None)

    def _leave(self, status: int) -> Any:
        """In place of `os._exit`, before which no handler of `atexit` is called."""
        self.close()
        self._exit(status)

    def stop(self) -> None:
        """End this process as it stands: the rest of the program is not run."""
        with open(os.path.join(self.plan["folder"], "stopped"), "w", encoding="utf-8"):
            pass
        sys.stdout.flush()
        sys.stderr.flush()
        self._exit(0)

    def close(self) -> None:
        """The program is at its end, or no more of it is run."""
        if os.getpid() == self.process:
            for look in self.closing:
                look()
        self.write()

    def note(self, feature: str) -> None:
        """Add a feature, to what was written before too."""
        self.features.add(feature)
        if self._ended and self._written and os.getpid() == self.process:
            self._written["features"] = sorted({*self._written["features"], feature})
            write(self.plan["folder"], f"{self.process}.json", self._written)

    def write(self, stopped: bool = False) -> None:
        """Write what was recorded; once, and only in the process that recorded it."""
        if self._ended or os.getpid() != self.process:
            return
        self._ended = True
        for finish in self.finishing:
            try:
                finish()
            except RuntimeError as fault:
                self.failure = f"RuntimeError: {fault}"
        results = {name: self._read(row) for name, row in self.results.items()}
        document = {
            "stopped": stopped,
            "written": time.time(),
            "rank": int(os.environ.get("RANK", "0")),
            "leading": self.leading(least=2, last=self._closing),
            "passed": self.passed,
            "intervals": {kind: self._intervals(row) for kind, row in self.marks.items()},
            "compiling": {kind: self._compiling(row) for kind, row in self.marks.items()},
            "waiting": {kind: self._waiting(row) for kind, row in self.marks.items()},
            "backlog": {kind: self._backlog(row) for kind, row in self.marks.items()},
            "results": {name: row for name, row in results.items() if any(row)},
            "features": sorted(self.features),
            "applied": sorted(self.applied),
            "facts": self.facts,
            "failure": self.failure,
            "modules": list(installed()),
            "changed": changed(),
        }
        write(self.plan["folder"], f"{self.process}.json", document)
        self._written = document

    def _intervals(self, row: list[tuple[int, Any, float]]) -> list[float]:
        """Seconds from each boundary to the next, without pauses, for one unit of work."""
        times = []
        for (before, start, _), (after, end, weight) in zip(row, row[1:]):
            seconds = self.elapsed(start, end) if start and end else (after - before) / 1e9
            paused = sum(each for moment, each in self.pauses if before < moment <= after)
            times.append((seconds - paused) / (weight or 1.0))
        return times

    def _compiling(self, row: list[tuple[int, Any, float]]) -> list[int]:
        """The places of intervals in which something was compiled."""
        ends = enumerate(zip(row, row[1:]))
        return [
            place
            for place, ((before, *_), (after, *_)) in ends
            if any(before < moment <= after for moment in self.compiled)
        ]

    def _waiting(self, row: list[tuple[int, Any, float]]) -> float:
        """The share of the time after the first units that the host waits for input: their own
        waits are those for workers that start."""
        moments = [moment for moment, *_ in row]
        moments = moments[min(PREPARING - 1, max(len(row) - 1 - _FEW, 0)) :]
        if len(moments) < 2:
            return 0.0
        start, end = moments[0], moments[-1]
        waits = sum(seconds for moment, seconds in self.waits if start < moment <= end)
        return waits / ((end - start) / 1e9)

    def _backlog(self, row: list[tuple[int, Any, float]]) -> float:
        """Median seconds by which the device gets later than the host to where units end and to
        what is looked at within them, added up, above the least of them; 0 where there is no
        device. A host that waits in each part of a unit is behind in none of its ends; a single
        look in a unit doesn't count, as it shows no more than how long the last kernel takes."""
        if len(row) < 3 or any(event is None for _, event, _ in row):
            return 0.0
        start, first, _ = row[0]
        looks = [look for look in self.looks if look[1]]
        moments, lags = [moment for moment, _ in looks], []
        for (before, *_), (after, end, _) in zip(row, row[1:]):
            inside = looks[bisect(moments, before) : bisect(moments, after)]
            points = [*(inside if len(inside) > 1 else []), (after, end)]
            lags.append([self.elapsed(first, e) - (moment - start) / 1e9 for moment, e in points])
        least = min(0.0, *map(min, lags))
        sums = sorted(sum(lag - least for lag in unit) for unit in lags)
        return sums[len(sums) // 2]

    def _read(self, row: list[Any]) -> list[Any]:
        read: list[Any] = []
        for result in row:
            try:
                read.append([float(number) for number in result.reshape(-1).tolist()])
            except Exception:  # a device that failed, a buffer that is gone
                read.append(None)
        return read


def installed() -> dict[str, Any]:
    """How modules of installed packages were found, in the order of their import."""
    specs = [(name, getattr(each, "__spec__", None)) for name, each in list(sys.modules.items())]
    return {name: spec for name, spec in specs if is_installed(str(getattr(spec, "origin", "")))}


def importing() -> str:
    """The module of an installed package that is being imported, the outermost; "" without."""
    specs = installed().items()
    return next((name for name, spec in specs if getattr(spec, "_initializing", False)), "")
