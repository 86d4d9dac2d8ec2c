"""Which NVTX ranges are around calls: push/pop ranges count on their own thread, start/end ranges
in their whole process."""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from profkit.timeline.events import Calls, Events, Indices, Ranges, Times

_Places: TypeAlias = npt.NDArray[np.int64]

MOST_AROUND = 16
"""The most enclosing NVTX ranges that are kept per call. Nested modules and operators have about
10; far more come from ranges that are never ended."""

_CHUNK = 1 << 16  # calls, chosen: their tables take some 10 MB
_NEVER = np.iinfo(np.int64).min


class Nesting(Struct, frozen=True, eq=False):
    """The ranges around calls: a path is their names, outermost first, () outside all ranges.

    `path` has each call's index into `paths`, `innermost` its innermost range, -1 without any.
    Where there are more than MOST_AROUND, the path is of the innermost.
    """

    paths: tuple[tuple[str, ...], ...]
    path: Indices
    innermost: Indices


def origins(events: Events, kernels: Indices) -> Nesting:
    """The ranges and operators around the calls that launched kernels, by their indices."""
    calls = launching_calls(events)[kernels]
    if not len(events.operators):
        return around(events, calls)
    tables = events.ranges, events.operators
    columns = ([getattr(each, name) for each in tables] for name in Ranges.__struct_fields__)
    return around(replace(events, ranges=Ranges(*map(np.concatenate, columns))), calls)


def launching_calls(events: Events) -> Indices:
    """The call that launched each kernel; of one in a CUDA graph that which captured it, where it
    was recorded."""
    calls, captures = events.kernels.call, events.captures
    return np.where(captures < 0, calls, captures) if len(captures) else calls


def around(events: Events, calls: Indices) -> Nesting:
    """The ranges around calls by their indices; there are none around -1."""
    path, innermost = np.zeros(len(calls), np.int32), np.full(len(calls), -1, np.int32)
    paths: dict[bytes, int] = {np.full(MOST_AROUND, -1, np.int32).tobytes(): 0}
    tables = _Nests(events).around(calls) if len(events.ranges) else ()
    for places, alike, ranges in tables:
        names = np.where(ranges < 0, -1, events.ranges.name[ranges]).astype(np.int32)
        rows = names.view(f"V{names.itemsize * MOST_AROUND}").ravel().tolist()
        of_row = [paths.setdefault(row, len(paths)) for row in rows]
        path[places] = np.array(of_row, np.int32)[alike]
        innermost[places] = ranges[alike, -1]
    texts = [np.frombuffer(row, np.int32) for row in paths]
    named = (tuple(events.range_names[name] for name in row if name >= 0) for row in texts)
    return Nesting(tuple(named), path, innermost)


class _Nests:
    """The ranges by owner, a thread or a process, each owner's outermost first."""

    def __init__(self, events: Events) -> None:
        self._calls: Calls = events.calls
        ranges: Ranges = events.ranges
        whole = ranges.thread < 0
        of_threads = np.array([thread.process for thread in events.threads], np.int64)
        processes = np.unique(np.concatenate([of_threads, ranges.process]))
        first = len(events.threads)
        self._process = first + np.searchsorted(processes, of_threads)
        owner = np.where(whole, first + np.searchsorted(processes, ranges.process), ranges.thread)
        self._order = np.lexsort((whole, -ranges.end, ranges.start))
        by_owner = np.argsort(owner[self._order], kind="stable")
        self._rank = by_owner
        placed = self._order[by_owner]
        self._start, end = ranges.start[placed], ranges.end[placed]
        self._bounds = np.searchsorted(owner[placed], np.arange(first + len(processes) + 1))
        self._ends = end[np.lexsort((end, owner[placed]))]
        self._latest = _Latest(end)

    def around(self, calls: Indices) -> Iterator[tuple[_Places, Indices, Indices]]:
        """Places in `calls`; for each the row of a table; the table of ranges, innermost last."""
        known = np.flatnonzero(calls >= 0)
        threads = self._calls.thread[calls[known]]
        by_thread = known[np.argsort(threads, kind="stable")]
        bounds = np.searchsorted(np.sort(threads), np.arange(len(self._process) + 1))
        for thread, process in enumerate(self._process):
            places = by_thread[bounds[thread] : bounds[thread + 1]]
            for first in range(0, len(places), _CHUNK):
                chunk = places[first : first + _CHUNK]
                yield chunk, *self._of_thread(calls[chunk], (thread, int(process)))

    def _of_thread(self, calls: Indices, owners: tuple[int, int]) -> tuple[Indices, Indices]:
        """For calls of a thread the row of a table, and the table; neighbors share rows."""
        start, end = self._calls.start[calls], self._calls.end[calls]
        begun, changes = [], np.zeros(len(calls), np.bool_)
        for owner in owners:
            low, high = self._bounds[owner : owner + 2]
            begun.append(low + np.searchsorted(self._start[low:high], start, "right"))
            ended = np.searchsorted(self._ends[low:high], end, "left")
            changes[1:] |= (np.diff(begun[-1]) != 0) | (np.diff(ended) != 0)
        firsts = np.flatnonzero(changes | (np.arange(len(calls)) == 0))
        ranks = np.concatenate(
            [
                self._enclosing(until[firsts], end[firsts], int(self._bounds[owner]))
                for owner, until in zip(owners, begun, strict=True)
            ],
            axis=1,
        )
        ranks.sort(axis=1)
        ranks = ranks[:, -MOST_AROUND:]
        table = np.where(ranks < 0, -1, self._order[ranks]).astype(np.int32)
        return np.cumsum(changes, dtype=np.int32), table

    def _enclosing(self, until: _Places, ends: Times, low: int) -> _Places:
        """The ranks of the last ranges from `low` on and before `until` that end no earlier."""
        ranks = np.full((len(until), MOST_AROUND), -1, np.int64)
        active = np.flatnonzero(until > low)
        until = until[active]
        for column in range(MOST_AROUND):
            until = self._latest.before(until, ends[active])
            inside = until >= low
            active, until = active[inside], until[inside]
            if not len(active):
                break
            ranks[active, column] = self._rank[until]
        return ranks


class _Latest:
    """Times in a binary tree of maxima, so that a search takes log n steps."""

    def __init__(self, times: Times) -> None:
        self._levels = len(times).bit_length()
        self._leaves = 1 << self._levels
        self._tree = np.full(2 * self._leaves, _NEVER)
        self._tree[self._leaves : self._leaves + len(times)] = times
        for level in reversed(range(self._levels)):
            below = self._tree[2 << level : 4 << level]
            self._tree[1 << level : 2 << level] = below.reshape(-1, 2).max(axis=1)

    def before(self, places: _Places, times: Times) -> _Places:
        """For each place the last one before it with at least a time; -1 where there is none."""
        node = places + self._leaves
        top = np.zeros(len(places), np.int64)
        for _ in range(self._levels):
            hit = (top == 0) & (node & 1 == 1) & (self._tree[node - 1] >= times)
            top[hit] = node[hit] - 1
            node = node >> 1
        for _ in range(self._levels):
            inner = (top > 0) & (top < self._leaves)
            right = 2 * top + 1
            right_hit = self._tree[np.where(inner, right, 0)] >= times
            top = np.where(inner, np.where(right_hit, right, right - 1), top)
        return np.where(top > 0, top - self._leaves, -1)
