"""Which processes of a timeline are one program: collectives join them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np
import numpy.typing as npt

from profkit.application.kernel_kinds import COMMUNICATION, kernel_kind
from profkit.application.nccl_calls import nccl_calls
from profkit.timeline.events import Events

Integers = npt.NDArray[np.int64]

_MET = 0.5  # share of a process's collectives that run beside another's; chosen: most of them


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
    kernels = events.kernels
    talking = np.array(
        [kernel_kind(item.name) == COMMUNICATION for item in events.kernel_names], dtype=np.bool_
    )
    rows = np.flatnonzero(talking[kernels.name]) if len(kernels) else np.zeros(0, dtype=np.int64)
    owners = np.array([stream.process for stream in events.streams])[kernels.stream[rows]]
    if len(np.unique(owners)) < 2:
        return
    communicators = nccl_calls(events).communicator[rows]
    for name, communicator in np.unique(np.stack([kernels.name[rows], communicators]), axis=1).T:
        chosen = communicators == communicator
        if not communicator:
            chosen &= kernels.name[rows] == name
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
