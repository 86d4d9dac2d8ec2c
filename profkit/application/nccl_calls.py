"""Collective kernels of several processes: NCCL's calls that launched them, what these say of their
messages, when the last rank started, and which processes they make one program."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from profkit.application.kernel_kinds import COMMUNICATION, kernels_of
from profkit.timeline.events import Events, Times

Integers = npt.NDArray[np.int64]

_SEND, _RECEIVE, _ALL_TO_ALL = "ncclSend", "ncclRecv", "ncclAlltoAll"
_TOGETHER = 0.9  # share of collectives in which all ranks meet; chosen: almost all
_MET = 0.5  # share of a process's collectives that run beside another's; chosen: most of them


class NcclCalls(Struct, frozen=True, eq=False):
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
    rows = np.flatnonzero(kernels_of(events, COMMUNICATION) & (kernels.call >= 0))
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


def _collectives(events: Events) -> tuple[Integers, Integers]:
    """The rows of collective kernels, and their processes."""
    rows = np.flatnonzero(kernels_of(events, COMMUNICATION))
    processes = np.array([stream.process for stream in events.streams], dtype=np.int64)
    return rows, processes[events.kernels.stream[rows]]


def latest_starts(events: Events) -> Times | None:
    """By kernel, when the last rank started this collective, 0 where unknown; None without other
    ranks.

    The n-th kernel of a name and communicator is the same collective on each rank, if all have
    equally many and almost all run at once on all ranks. Without a communicator's name others are
    of several, or end on a rank before another starts.
    """
    kernels = events.kernels
    rows, owners = _collectives(events)
    if len(np.unique(owners)) < 2:
        return None
    latest = np.zeros(len(kernels), dtype=np.int64)
    named = nccl_calls(events).communicator[rows]
    for name, communicator in np.unique(np.stack([kernels.name[rows], named]), axis=1).T:
        chosen = (kernels.name[rows] == name) & (named == communicator)
        members = np.unique(owners[chosen]) if communicator else np.unique(owners)
        own = [rows[chosen & (owners == owner)] for owner in members]
        if len(own) > 1 and len({len(column) for column in own}) == 1:
            table = np.stack(own)
            last = kernels.start[table].max(axis=0)
            together = last < kernels.end[table].min(axis=0)
            if together.mean() >= _TOGETHER:
                latest[table] = np.where(together, last, 0)
    return latest


def joined(events: Events) -> Mapping[int, frozenset[int]]:
    """The processes of each process's program; none for one that no collective joins to others.

    A communicator joins its members. Where NCCL's calls do not name it, two processes are joined if
    most collectives of the one that has fewer run beside such of the same name on the other.
    """
    programs: dict[int, frozenset[int]] = {}
    for pair in _pairs(events):
        alone = (frozenset((process,)) for process in pair)
        first, second = (programs.get(*each) for each in zip(pair, alone, strict=True))
        programs |= dict.fromkeys(first | second, first | second)
    return programs


def _pairs(events: Events) -> Iterator[tuple[int, int]]:
    """Pairs of processes that a collective joins."""
    rows, owners = _collectives(events)
    if len(np.unique(owners)) < 2:
        return
    names, communicators = events.kernels.name[rows], nccl_calls(events).communicator[rows]
    for name, communicator in np.unique(np.stack([names, communicators]), axis=1).T:
        chosen = communicators == communicator
        if not communicator:
            chosen &= names == name
        of_process = {
            process: rows[chosen & (owners == process)]
            for process in np.unique(owners[chosen]).tolist()
        }
        for pair in combinations(of_process, 2):
            if communicator or _met(events, *sorted(map(of_process.__getitem__, pair), key=len)):
                yield pair


def _met(events: Events, fewer: Integers, others: Integers) -> bool:
    """Whether most of some kernels run beside any of the others."""
    start, end = events.kernels.start, events.kernels.end
    begun = np.searchsorted(np.sort(start[others]), end[fewer])
    over = np.searchsorted(np.sort(end[others]), start[fewer], "right")
    return bool((begun > over).mean() >= _MET)
