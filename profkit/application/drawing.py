"""A few steps of an application as a zoomable view for a page, which loads nothing."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from profkit.application.application import Application, Process
from profkit.application.kernel_kinds import GRAPH, kernel_kind
from profkit.application.parts import memory_name
from profkit.core.text_files import shipped_text
from profkit.timeline.events import Events, Intervals
from profkit.ui.text import literal

MOST_SLICES = 40_000
"""Kernels, copies, calls and ranges in a view; chosen: at most 1 MB."""
_STEPS = 3  # steps in a view, if so many fit; chosen: how one follows another is seen
_PROCESSES = 4  # processes in a view; chosen: a screen
_LONGEST_NAME = 300  # characters; chosen: what a hint shows
_DEEPEST = 8  # rows of nested ranges or calls; chosen
_HARMLESS = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_CALLS = (
    ("launch call", ("Launch",)),
    ("synchronization", ("Synchronize", "EventQuery", "StreamWait")),
    ("memory allocation", ("Malloc", "Alloc", "Free", "MemCreate")),
    ("copy call", ("Memcpy", "Memset")),
)


def timeline_script() -> str:
    """The script of all views of a page."""
    return shipped_text("profkit.application", "assets/timeline.js")


def timeline_style() -> str:
    """The style of all views of a page, in the colors of the report page."""
    return shipped_text("profkit.application", "assets/timeline.css")


def timeline_html_fragment(application: Application) -> str:
    """A view of a few steps: streams, host threads and NVTX ranges on one axis.

    The page also needs `timeline_style()` and, after it, `timeline_script()`.
    """
    data = json.dumps(view_data(application), separators=(",", ":")).translate(_HARMLESS)
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
    name = html.escape(f"Timeline of {_range_words(application)}; keys: + and - zoom, arrows move")
    return (
        f'<div class="timeline"><div class="bar">{buttons}<span>Drag to move; Ctrl and wheel, or '
        "+ and -, zoom.</span></div>"
        f'<canvas tabindex="0" role="img" aria-label="{name}"></canvas>'
        '<div class="tip" role="status" hidden></div><div class="keys"></div>'
        f'<script type="application/json">{data}</script></div>'
    )


@dataclass
class _Names:
    """Names with their kinds, numbered."""

    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)

    def number(self, name: str, kind: str) -> int:
        self.kinds.setdefault(kind, len(self.kinds))
        return self.numbers.setdefault((literal(name)[:_LONGEST_NAME], kind), len(self.numbers))


def view_data(application: Application) -> dict[str, Any]:
    """What the script draws: times in ns from the first shown step, starts as differences."""
    events = application.events
    low, high, numbers = _window(application)
    names = _Names()
    processes = application.processes[:_PROCESSES]
    tracks = [
        track for process in processes for track in _tracks(events, process, low, high, names)
    ]
    bounds = processes[0].steps.bounds
    return {
        "span": high - low,
        "steps": [
            {"name": f"step {number}", "time": int(bounds[number]) - low} for number in numbers
        ],
        "names": [name for name, _ in names.numbers],
        "kind": [names.kinds[kind] for _, kind in names.numbers],
        "kinds": list(names.kinds),
        "tracks": tracks,
    }


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


def _tracks(
    events: Events, process: Process, low: int, high: int, names: _Names
) -> Iterable[dict[str, Any]]:
    number = process.steps.process
    several = f"GPU {process.steps.device}"
    for stream_number, stream in enumerate(events.streams):
        if stream.process == number:
            slices = _stream_slices(events, stream_number, low, high, names)
            if slices:
                yield _track(f"{several}, stream {stream.number}", slices, low, high, light=False)
    for thread_number, thread in enumerate(events.threads):
        if thread.process != number:
            continue
        rows = _rows(events.ranges, low, high)
        rows = rows[events.ranges.thread[rows] == thread_number]
        slices = [
            (start, end, names.number(events.range_names[name], "NVTX range"))
            for start, end, name in _columns(events.ranges, rows, events.ranges.name)
        ]
        label = f"host thread {thread.number}"
        if slices:
            yield _track(f"{label}, NVTX", slices, low, high, light=True)
        rows = _rows(events.calls, low, high)
        rows = rows[events.calls.thread[rows] == thread_number]
        slices = [
            (start, end, names.number(events.call_names[name], _call_kind(events.call_names[name])))
            for start, end, name in _columns(events.calls, rows, events.calls.name)
        ]
        if slices:
            yield _track(f"{label}, CUDA calls", slices, low, high, light=True)


def _columns(
    table: Intervals, rows: npt.NDArray[np.int64], name: npt.NDArray[Any]
) -> Iterable[tuple[int, int, int]]:
    columns = (table.start[rows], table.end[rows], name[rows])
    return zip(*(column.tolist() for column in columns), strict=True)


def _stream_slices(
    events: Events, stream: int, low: int, high: int, names: _Names
) -> list[tuple[int, int, int]]:
    kernels, memory, graphs = events.kernels, events.memory_operations, events.graphs
    slices = []
    rows = _rows(kernels, low, high)
    for start, end, number in _columns(kernels, rows[kernels.stream[rows] == stream], kernels.name):
        name = events.kernel_names[number].name
        slices.append((start, end, names.number(name, kernel_kind(name))))
    rows = _rows(memory, low, high)
    for start, end, number in _columns(memory, rows[memory.stream[rows] == stream], memory.kind):
        name = memory_name(events.memory_kinds[number])
        kind = "memset" if name == "memset" else "memory copy"
        slices.append((start, end, names.number(name, kind)))
    rows = _rows(graphs, low, high)
    for start, end, number in _columns(graphs, rows[graphs.stream[rows] == stream], graphs.graph):
        slices.append((start, end, names.number(f"CUDA graph {number}", GRAPH)))
    return sorted(slices)


def _call_kind(name: str) -> str:
    kinds = (kind for kind, words in _CALLS if any(word in name for word in words))
    return next(kinds, "CUDA call")


def _track(
    name: str, slices: list[tuple[int, int, int]], low: int, high: int, *, light: bool
) -> dict[str, Any]:
    """Slices in order of start; what overlaps has rows of its own."""
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
    deepest = max(rows)
    return {
        "name": name,
        "light": light,
        "rows": deepest + 1,
        "longest": max(lengths),
        "start": starts,
        "length": lengths,
        "name_of": numbers,
        **({"row": rows} if deepest else {}),
    }
