"""A few steps of an application as a zoomable view for a page, which loads nothing."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from msgspec import UNSET, Struct, UnsetType

from profkit.application.application import Application, Process
from profkit.application.kernel_kinds import GRAPH, kernel_kind
from profkit.core.text_files import shipped_text
from profkit.core.typed_file import plain
from profkit.timeline.cuda_calls import call_kind
from profkit.timeline.events import Events, Indices, Intervals, Times
from profkit.ui.document import Widget
from profkit.ui.template import embedded
from profkit.ui.text import literal

MOST_SLICES = 40_000
"""Kernels, copies, calls and ranges in a view; chosen: at most 1 MB."""
_STEPS = 3  # steps in a view, if so many fit; chosen: how one follows another is seen
_PROCESSES = 4  # processes in a view; chosen: a screen
_LONGEST_NAME = 300  # characters; chosen: what a hint shows
_DEEPEST = 8  # rows of nested ranges or calls; chosen


def timeline_widget(application: Application) -> Widget:
    """A view of a few steps: streams, host threads and NVTX ranges on one axis."""
    buttons = "".join(
        f'<button type="button" data-key="{key}" aria-label="{title}">{text}</button>'
        for key, title, text in (
            ("+", "Zoom in", "+"),
            ("-", "Zoom out", "−"),
            ("ArrowLeft", "Move left", "←"),
            ("ArrowRight", "Move right", "→"),
            ("0", "Show all", "All"),
        )
    )
    name = f"Timeline of {_range_words(application)}; keys: + and - zoom, arrows move"
    markup = (
        f'<div class="timeline"><div class="bar">{buttons}<span>Drag to move; Ctrl and wheel, or '
        "+ and -, zoom.</span></div>"
        f'<canvas tabindex="0" role="img" aria-label="{name}"></canvas>'
        '<div class="tip" role="status" hidden></div><div class="keys"></div>'
        f'<script type="application/json">{embedded(plain(view_data(application)))}</script></div>'
    )
    style, script = (
        shipped_text("profkit.application", f"assets/timeline.{kind}") for kind in ("css", "js")
    )
    return Widget(markup, style, script)


class Step(Struct, frozen=True):
    """The start of a step."""

    name: str
    time: int


class Track(Struct, frozen=True):
    """Slices in order of start: their lengths, the numbers of their names, and the row of each
    where there are several."""

    name: str
    light: bool
    rows: int
    longest: int
    start: list[int]
    length: list[int]
    name_of: list[int]
    row: list[int] | UnsetType = UNSET


class View(Struct, frozen=True):
    """What the script draws: times in ns from the first shown step, starts as differences; names,
    and the number of the kind of each."""

    span: int
    steps: list[Step]
    names: list[str]
    kind: list[int]
    kinds: list[str]
    tracks: list[Track]


def view_data(application: Application) -> View:
    """A few steps of an application, as the script draws them."""
    low, high, numbers = _window(application)
    view = _View(application.events, low, high)
    processes = application.processes[:_PROCESSES]
    tracks = [track for process in processes for track in view.tracks(process)]
    bounds = processes[0].steps.bounds
    return View(
        high - low,
        [Step(f"step {number}", int(bounds[number]) - low) for number in numbers],
        [name for name, _ in view.numbers],
        [view.kinds[kind] for _, kind in view.numbers],
        list(view.kinds),
        tracks,
    )


def _range_words(application: Application) -> str:
    numbers = _window(application)[2]
    return f"step {numbers[0]}" if len(numbers) == 1 else f"steps {numbers[0]} to {numbers[-1]}"


def _window(application: Application) -> tuple[int, int, list[int]]:
    """From the start of a usual step on, as many as fit."""
    steps = application.processes[0].steps
    wall = np.diff(steps.bounds)
    typical = np.flatnonzero(steps.typical)
    usual = typical[np.argsort(wall[typical], kind="stable")[len(typical) // 2]]
    first = min(int(usual), max(0, len(steps) - _STEPS))
    for count in range(min(_STEPS, len(steps) - first), 0, -1):
        low, high = int(steps.bounds[first]), int(steps.bounds[first + count])
        if count == 1 or _amount(application.events, low, high) <= MOST_SLICES:
            break
    low = min(low, int(steps.call_bounds[first]))
    while _amount(application.events, low, high) > MOST_SLICES and high - low > 1:
        high = low + (high - low) // 2
    return low, high, list(range(first, first + count))


def _amount(events: Events, low: int, high: int) -> int:
    tables = (
        events.kernels,
        events.memory_operations,
        events.graphs,
        events.calls,
        events.ranges,
    )
    return sum(len(_rows(table, low, high)) for table in tables)


def _rows(table: Intervals, low: int, high: int) -> npt.NDArray[np.int64]:
    """What runs between two times."""
    last = int(np.searchsorted(table.start, high))
    return np.flatnonzero(table.end[:last] > low)


class _View:
    """The tracks of a window; names with their kinds are numbered."""

    def __init__(self, events: Events, low: int, high: int) -> None:
        self._events = events
        self._low, self._high = low, high
        self.numbers: dict[tuple[str, str], int] = {}
        self.kinds: dict[str, int] = {}

    def tracks(self, process: Process) -> Iterator[Track]:
        """The streams of a process, and of each host thread its NVTX ranges and CUDA calls."""
        events, number = self._events, process.steps.process
        kernels, memory, graphs = events.kernels, events.memory_operations, events.graphs
        for index, stream in enumerate(events.streams):
            if stream.process == number:
                slices = [
                    *self._slices(kernels, kernels.stream == index, kernels.name, self._kernel),
                    *self._slices(memory, memory.stream == index, memory.kind, self._copy),
                    *self._slices(graphs, graphs.stream == index, graphs.graph, _graph),
                ]
                name = f"GPU {process.steps.device}, stream {stream.number}"
                yield from self._track(name, sorted(slices), light=False)
        for index, thread in enumerate(events.threads):
            if thread.process == number:
                label = f"host thread {thread.number}"
                for name, table, named in (
                    ("NVTX", events.ranges, self._range),
                    ("CUDA calls", events.calls, self._call),
                ):
                    slices = self._slices(table, table.thread == index, table.name, named)
                    yield from self._track(f"{label}, {name}", slices, light=True)

    def _slices(
        self,
        table: Intervals,
        chosen: npt.NDArray[np.bool_],
        codes: Indices | Times,
        named: Callable[[int], tuple[str, str]],
    ) -> list[tuple[int, int, int]]:
        """Start, end and number of the name of each chosen interval that runs in the window."""
        rows = _rows(table, self._low, self._high)
        rows = rows[chosen[rows]]
        columns = (table.start[rows], table.end[rows], codes[rows])
        return [
            (start, end, self._number(*named(code)))
            for start, end, code in zip(*(column.tolist() for column in columns), strict=True)
        ]

    def _number(self, name: str, kind: str) -> int:
        self.kinds.setdefault(kind, len(self.kinds))
        return self.numbers.setdefault((literal(name)[:_LONGEST_NAME], kind), len(self.numbers))

    def _kernel(self, code: int) -> tuple[str, str]:
        name = self._events.kernel_names[code].name
        return name, kernel_kind(name)

    def _copy(self, code: int) -> tuple[str, str]:
        name = self._events.memory_kinds[code].words
        return name, "memset" if name == "memset" else "memory copy"

    def _range(self, code: int) -> tuple[str, str]:
        return self._events.range_names[code], "NVTX range"

    def _call(self, code: int) -> tuple[str, str]:
        name = self._events.call_names[code]
        return name, call_kind(name)

    def _track(
        self, name: str, slices: list[tuple[int, int, int]], *, light: bool
    ) -> Iterator[Track]:
        """Slices in order of start, if any; what overlaps has rows of its own."""
        low, high = self._low, self._high
        starts, lengths, numbers, rows = [], [], [], []
        free = [low - 1] * _DEEPEST
        before = 0
        for start, end, number in slices:
            begin, finish = max(start, low), min(end, high)
            row = next((row for row in range(_DEEPEST) if free[row] <= begin), _DEEPEST - 1)
            free[row] = finish
            starts.append(begin - low - before)
            before = begin - low
            lengths.append(finish - begin)
            numbers.append(number)
            rows.append(row)
        if slices:
            count, longest = max(rows) + 1, max(lengths)
            several = rows if count > 1 else UNSET
            yield Track(name, light, count, longest, starts, lengths, numbers, several)


def _graph(code: int) -> tuple[str, str]:
    return f"CUDA graph {code}", GRAPH
