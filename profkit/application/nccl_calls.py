"""Which of NCCL's calls launched which kernel, and what they say of its message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from profkit.application.kernel_kinds import COMMUNICATION, kernel_kind
from profkit.timeline.events import Events, Times

Integers = npt.NDArray[np.int64]

_SEND, _RECEIVE, _ALL_TO_ALL = "ncclSend", "ncclRecv", "ncclAlltoAll"


@dataclass(frozen=True, eq=False)
class NcclCalls:
    """By kernel the bytes of its message, the communicator's ranks, and its number in `Messages`; 0
    where unknown."""

    size: Times
    ranks: Times
    communicator: Times


def nccl_calls(events: Events) -> NcclCalls:
    """What NCCL's calls say of each kernel.

    A kernel is launched within the call that names its message, or at the end of a group of calls.
    """
    kernels, calls, messages = events.kernels, events.calls, events.messages
    columns = np.zeros((3, len(kernels)), dtype=np.int64)
    named = NcclCalls(*columns)
    if not len(messages):
        return named
    kinds = np.array(
        [kernel_kind(item.name) == COMMUNICATION for item in events.kernel_names], dtype=np.bool_
    )
    rows = np.flatnonzero(kinds[kernels.name] & (kernels.call >= 0))
    launched: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)  # by thread
    for row in rows.tolist():
        call = kernels.call[row]
        launched[int(calls.thread[call])].append((int(calls.start[call]), row))
    for call in np.unique(events.graphs.call[events.graphs.call >= 0]).tolist():
        launched[int(calls.thread[call])].append((int(calls.start[call]), -1))
    for thread, launches in launched.items():
        own = np.flatnonzero(messages.thread == thread)
        for chosen, together in _groups(events, own, sorted(launches)):
            for row, places in _shared(events, chosen, together):
                named.size[row] = _bytes(events, places)
                named.ranks[row] = messages.ranks[places].max()
                communicators = np.unique(messages.communicator[places])
                named.communicator[row] = communicators[0] if len(communicators) == 1 else 0
    return named


def _groups(
    events: Events, own: Integers, launches: list[tuple[int, int]]
) -> Iterator[tuple[Integers, list[int]]]:
    """Calls of a thread, and the kernels that were launched after them and before the next."""
    begun = np.searchsorted(events.messages.start[own], [time for time, _ in launches], "right")
    first = np.flatnonzero(np.diff(begun, prepend=0)).tolist()
    for low, high in pairwise([*first, len(launches)]):
        used = int(begun[low - 1]) if low else 0
        yield own[used : int(begun[low])], [row for _, row in launches[low:high]]


def _shared(events: Events, places: Integers, rows: list[int]) -> Iterator[tuple[int, Integers]]:
    """Each kernel with its calls; none where that is ambiguous, or a CUDA graph was launched."""
    if -1 in rows or (events.kernels.graph_node[rows] != 0).any():
        return
    calls, messages = events.calls, events.messages
    last = places[-1:]
    inside = messages.end[last[0]] >= calls.start[events.kernels.call[rows[0]]]
    if len(rows) == 1:
        yield rows[0], last if inside else places
    elif len(rows) == len(places):
        yield from ((row, places[number : number + 1]) for number, row in enumerate(rows))


def _bytes(events: Events, places: Integers) -> int:
    """The bytes of calls; of sends and receives those of the larger direction. An all-to-all names
    those for one other rank."""
    messages = events.messages
    directions: defaultdict[str, int] = defaultdict(int)
    names = (events.range_names[name] for name in messages.name[places].tolist())
    columns = messages.size[places].tolist(), messages.ranks[places].tolist()
    for name, size, ranks in zip(names, *columns, strict=True):
        others = max(ranks - 1, 1) if name == _ALL_TO_ALL else 1
        directions[name if name in {_SEND, _RECEIVE} else ""] += size * others
    return max(directions.values())
