"""The events of a timeline as columns: millions of them fit, and a pass over one is a few ms.

Times are whole nanoseconds from the first event of the recording. An index of -1 is an unknown.
"""

from datetime import datetime
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Times: TypeAlias = npt.NDArray[np.int64]
Indices: TypeAlias = npt.NDArray[np.int32]


class KernelName(Struct, frozen=True):
    """A kernel's demangled name with its parameters, and its short name."""

    name: str
    label: str


class LaunchConfiguration(Struct, frozen=True):
    """What a kernel is launched with; shared memory in bytes for a block."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    shared_static: int
    shared_dynamic: int


class Stream(Struct, frozen=True):
    """Where GPU work is queued: its process, device, context and stream number."""

    process: int
    device: int
    context: int
    number: int


class Thread(Struct, frozen=True):
    """A host thread: nsys's number of its process (the high bits of `globalTid`), and its own."""

    process: int
    number: int


class MemoryKind(Struct, frozen=True):
    """A kind of copy, or "memset"; source and target are kinds of memory, "" where unknown."""

    kind: str
    source: str
    target: str

    @property
    def words(self) -> str:
        """The direction, and whether host memory is pinned."""
        for memory in ("pageable", "pinned", "managed", "unified"):
            if any(memory in place for place in (self.source, self.target)):
                return f"{self.kind}, {memory}"
        return self.kind


class TimelineGpu(Struct, frozen=True):
    """A GPU of the recorded machine; `cc` is (0, 0) and numbers are 0 where unknown."""

    device: int
    name: str
    cc: tuple[int, int]
    sm_count: int
    memory_bytes: int


class Intervals(Struct, frozen=True, eq=False):
    """Events with a start and an end, in order of start, then of end: arrays of one length."""

    start: Times
    end: Times

    def __len__(self) -> int:
        return len(self.start)


class GpuWork(Intervals, frozen=True, eq=False):
    """Work on a GPU: its stream, and the call that submitted it (an index into `calls`)."""

    stream: Indices
    call: Indices


class Kernels(GpuWork, frozen=True, eq=False):
    """Kernels; `graph_node` is 0 for what was not launched by a CUDA graph."""

    name: Indices
    configuration: Indices
    graph_node: Times


class MemoryOperations(GpuWork, frozen=True, eq=False):
    """Copies and fills; `size` in bytes."""

    kind: Indices
    size: Times


class Graphs(GpuWork, frozen=True, eq=False):
    """CUDA graphs traced as a whole, whose kernels are unknown; `graph` tells them apart."""

    graph: Times


class Calls(Intervals, frozen=True, eq=False):
    """CUDA runtime and driver calls on host threads."""

    name: Indices
    thread: Indices


class Ranges(Intervals, frozen=True, eq=False):
    """NVTX ranges; `thread` is -1 for a start/end range, which belongs to its process.

    A range that was never ended is not `closed`, and ends with the recording.
    """

    name: Indices
    thread: Indices
    process: Times
    closed: npt.NDArray[np.bool_]


class Messages(Intervals, frozen=True, eq=False):
    """NCCL's calls with the bytes of their message, by NVTX range: `name` as in `range_names`.

    `ranks` are those of the communicator, 0 where its start was not recorded; `communicator` is the
    same number on all of them, 0 where it was not named.
    """

    name: Indices
    thread: Indices
    size: Times
    ranks: Times
    communicator: Times


_NONE = np.zeros(0, dtype=np.int64)
_NO_INDEX = _NONE.astype(np.int32)
NO_MESSAGES = Messages(_NONE, _NONE, _NO_INDEX, _NO_INDEX, _NONE, _NONE, _NONE)


NO_RANGES = Ranges(_NONE, _NONE, _NO_INDEX, _NO_INDEX, _NONE, _NONE.astype(np.bool_))
NO_CAPTURES = _NO_INDEX
MODULE_PREFIX = "profkit-modules:"
"""How the names of injected ranges begin (`execution/injection/module_ranges.py`)."""


class Events(Struct, frozen=True, eq=False):
    """A timeline of Nsight Systems or torch.profiler.

    Indices point into the tables of names, streams and so on.
    `origin_ns` is the first event's time after the start of the session at `created`. `gpus` are
    those with work, or all where that is unknown. `untimed` counts GPU work, calls and ranges
    without valid times, which are left out. `operators` are a framework's, named as ranges are;
    `modules` the closed ranges that profkit injected, which are not among `ranges`.
    `captures` has for each kernel the call that captured its node of a CUDA graph, -1 where none is
    known; it is empty where no capture was recorded. `diagnostics` are nsys's warnings about
    tracing CUDA.
    """

    path: Path
    product_version: str
    schema_version: str
    created: datetime | None
    origin_ns: int
    gpus: tuple[TimelineGpu, ...]
    kernel_names: tuple[KernelName, ...]
    call_names: tuple[str, ...]
    range_names: tuple[str, ...]
    configurations: tuple[LaunchConfiguration, ...]
    memory_kinds: tuple[MemoryKind, ...]
    streams: tuple[Stream, ...]
    threads: tuple[Thread, ...]
    kernels: Kernels
    memory_operations: MemoryOperations
    graphs: Graphs
    calls: Calls
    ranges: Ranges
    untimed: int
    operators: Ranges = NO_RANGES
    modules: Ranges = NO_RANGES
    captures: Indices = NO_CAPTURES
    messages: Messages = NO_MESSAGES
    diagnostics: tuple[str, ...] = ()
    profiler: str = "nsys"
