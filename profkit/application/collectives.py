"""Bus bandwidth of collectives: bytes of NCCL's messages over the time in which they are exchanged.

Bus bandwidth is that of NCCL's tests (doc/PERFORMANCE.md there), which compares with the link's
whatever the number of ranks. The time of a collective is from when its last rank started it.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from profkit.application.kernel_kinds import COMMUNICATION, collective, kernels_of
from profkit.application.nccl_calls import NcclCalls, latest_starts, nccl_calls
from profkit.application.steps import Steps
from profkit.core.grouping import grouped
from profkit.hardware.gpus import find_datasheet
from profkit.timeline.events import Events, Times
from profkit.timeline.messages import RANGE_PREFIX
from profkit.timeline.work import streams_of
from profkit.ui.text import number, percent

Integers = npt.NDArray[np.int64]

_FACTORS: Mapping[str, Callable[[int], float]] = {
    "all-reduce": lambda ranks: 2 * (ranks - 1) / ranks,
    "all-gather": lambda ranks: ranks - 1,
    "reduce-scatter": lambda ranks: ranks - 1,
    "all-to-all": lambda ranks: ranks - 1,
    "broadcast": lambda _: 1,
    "reduce": lambda _: 1,
    "send/receive": lambda _: 1,
}
"""Bytes on the bus of a byte of the message that NCCL's call names, by ranks. PERFORMANCE.md has
(n-1)/n where its size is that of all ranks' messages; the call names one of n."""

NO_RANGES = (
    "NCCL's NVTX ranges have the sizes of messages, and none is recorded: trace nvtx "
    "(nsys profile -t cuda,nvtx)"
)
NO_PAYLOADS = (
    "NCCL's NVTX ranges are here without their payloads, which have the sizes of messages: record "
    "again with NCCL 2.20 or newer, and keep the export's columns and tables of NVTX payloads "
    "(binaryData, NVTX_PAYLOAD_SCHEMA_ENTRIES)"
)
IN_GRAPHS = "launched by CUDA graphs, which name no message"
NO_CALLS = "no call with a size belongs to these kernels"
HANDED_OVER = (
    "a rank's kernel may end before the others have its data, and when they ran is unknown"
)
NO_RANKS = "the communicator's ranks are not recorded: record its start and all ranks"

_ONE_WAY = {"broadcast", "reduce", "send/receive"}
"""Operations whose senders wait for nobody: their kernels end with the data in a buffer."""


class Exchange(Struct, frozen=True):
    """A collective operation in the steps of a rank.

    `size` is the mean of its messages in bytes, `bandwidth` the bus bandwidth in B/s, NaN where
    `reason` says why it is unknown. `link` is NVLink's datasheet rate in one direction in B/s, of
    the product `product`; 0 where there is none, ranks are on other machines, or share a GPU.
    `waits`: it is unknown when some other rank started, so that the time has waits for it.
    """

    ranks: int = 0
    size: float = math.nan
    bandwidth: float = math.nan
    link: float = 0.0
    product: str = ""
    waits: bool = False
    reason: str = ""


def bandwidth_words(exchange: Exchange) -> str:
    """The bus bandwidth with its link's, or why it is unknown; a short form is before the colon."""
    waits = "; its time has waits for ranks whose start is not known" if exchange.waits else ""
    if exchange.reason:
        return f"bus bandwidth unknown: {exchange.reason}{waits}"
    least = " or more" if exchange.waits else ""
    words = (
        f"bus bandwidth {number(exchange.bandwidth, 'B/s', 3)}{least}: messages of "
        f"{number(exchange.size, 'B', 3)} on average, {exchange.ranks} ranks"
    )
    if exchange.link:
        words += (
            f"; {percent(exchange.bandwidth / exchange.link)} of NVLink's "
            f"{number(exchange.link, 'B/s', 3)} in one direction (datasheet of {exchange.product})"
        )
    return words + waits


def exchanges(events: Events, steps: Steps) -> Mapping[str, Exchange]:
    """The collective operations in the typical steps of a rank, by name."""
    kernels = events.kernels
    exchanging = kernels_of(events, COMMUNICATION)
    if not exchanging.any():
        return {}
    own = streams_of(events, steps.process, steps.device)[kernels.stream]
    rows = np.flatnonzero(exchanging & own & steps.has(kernels.start))
    names = (collective(events.kernel_names[name].name) for name in kernels.name[rows])
    rows_of = grouped(zip(names, rows.tolist(), strict=True))
    calls = nccl_calls(events)
    latest = latest_starts(events)
    streams = (events.streams[index] for index in np.unique(kernels.stream[exchanging]))
    recorded = len({(stream.process, stream.device) for stream in streams})
    return {
        operation: _exchange(events, operation, np.array(of_operation), calls, latest, recorded)
        for operation, of_operation in sorted(rows_of.items())
    }


def _exchange(
    events: Events,
    operation: str,
    rows: Integers,
    calls: NcclCalls,
    latest: Times | None,
    recorded: int,
) -> Exchange:
    kernels = events.kernels
    sizes, ranks_of = calls.size[rows], calls.ranks[rows]
    known = sizes > 0
    last = np.zeros(len(rows), dtype=np.int64) if latest is None else latest[rows]
    waits = latest is not None and bool((last == 0).any())
    if not known.any():
        return Exchange(reason=_reason(events, rows), waits=waits)
    ranks = int(ranks_of[known].max()) or recorded
    factor = _FACTORS.get(operation)
    if factor is None or ranks < 2:
        reason = NO_RANKS if factor else f"no formula for {operation}"
        return Exchange(reason=reason, waits=waits)
    if operation in _ONE_WAY and (waits or latest is None):
        return Exchange(reason=HANDED_OVER)
    begin = np.maximum(kernels.start[rows], last)
    time = float((kernels.end[rows] - begin)[known].sum()) / 1e9
    size = float(sizes[known].sum())
    sheet = None
    if ranks <= min(recorded, len(events.gpus)):  # all of them on this machine, each on its GPU
        gpu = events.gpus[0]
        sheet, _ = find_datasheet(gpu.name, gpu.cc, gpu.sm_count, gpu.memory_bytes)
    return Exchange(
        ranks=ranks,
        size=size / int(known.sum()),
        bandwidth=factor(ranks) * size / time if time > 0 else math.nan,
        link=sheet.nvlink.value / 2 if sheet else 0.0,
        product=sheet.name if sheet else "",
        waits=waits or latest is None or ranks > recorded,
    )


def _reason(events: Events, rows: Integers) -> str:
    """Why no size of these kernels is known."""
    if (events.kernels.graph_node[rows] != 0).all():
        return IN_GRAPHS
    if len(events.messages):
        return NO_CALLS
    named = any(name.startswith(RANGE_PREFIX) for name in events.range_names)
    return NO_PAYLOADS if named else NO_RANGES
