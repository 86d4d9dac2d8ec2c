"""Which call made the node of a CUDA graph that a kernel is of.

nsys records the making of nodes with --cuda-graph-trace=node: of one that a stream's capture made,
during the call that would have launched the kernel; of one of an executable graph, what it was
copied from.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from profkit.timeline.events import Calls, Indices, Kernels

_MOST_COPIES = 8  # of copies of a graph, chosen: a graph, its executable one and child graphs
_NESTED = 4  # calls, chosen: a runtime call may contain driver calls that ended before


class Node(Struct, frozen=True):
    """The node that this one was copied from, when it was made, and the thread that did."""

    original: int | None
    time: int
    thread: int


def capturing_calls(
    kernels: Kernels,
    calls: Calls,
    processes: Sequence[int],
    nodes: Mapping[tuple[int, int], Node],
) -> Indices:
    """For each kernel the call that made its node, -1 where it is unknown or has none.

    `processes` are those of streams; nodes have numbers of their own in each process.
    """
    captures = np.full(len(kernels), -1, np.int32)
    rows = np.flatnonzero(kernels.graph_node)
    numbers, place = np.unique(kernels.graph_node[rows], return_inverse=True)
    codes, alike = np.unique(place * len(processes) + kernels.stream[rows], return_inverse=True)
    of_thread = {
        thread: np.flatnonzero(calls.thread == thread)
        for thread in {node.thread for node in nodes.values()}
    }
    captured = []
    for code in codes.tolist():
        number, stream = divmod(code, len(processes))
        node = _first(nodes, processes[stream], int(numbers[number]))
        captured.append(_call(calls, of_thread[node.thread], node.time) if node else -1)
    captures[rows] = np.array(captured, np.int32)[alike]
    return captures


def _first(nodes: Mapping[tuple[int, int], Node], process: int, number: int | None) -> Node | None:
    """The node that one was copied from in the first place."""
    for _ in range(_MOST_COPIES):
        node = nodes.get((process, number or 0))
        if node is None or node.original is None:
            return node
        number = node.original
    return None


def _call(calls: Calls, rows: npt.NDArray[np.int64], time: int) -> int:
    """The innermost of a thread's calls at a time; -1 where there is none."""
    last = int(np.searchsorted(calls.start[rows], time, side="right"))
    near = rows[max(0, last - _NESTED) : last][::-1]
    return int(next((row for row in near if calls.end[row] >= time), -1))
