"""GPU work that nsys did not record although the program submitted it.

Of programs of JAX that were traced with CUDA graphs as a whole, nsys 2025.3 lost the launches of
the main thread: the GPU then looks idle. So it does where kernels of plain launches are lost.
"""

import numpy as np

from profkit.core.columns import Mask
from profkit.timeline.events import Events, Times

REMEDY = "record with --cuda-graph-trace=node"
FAILED_REMEDY = (
    "record again with {} as new as the driver and no other profiler attached ({}, DCGM), and let "
    "the program end by itself"
)
_PROFILERS = {"nsys": ("an nsys", "torch.profiler"), "torch.profiler": ("a CUPTI", "nsys")}
"""Of what records: what has to be as new as the driver, and what may hold the counters."""
_MODULE = "XlaModule:"  # of NVTX ranges: XLA launches a compiled program in each
_GRAPH_LAUNCH = "GraphLaunch"  # in names of calls
_LAUNCH = "LaunchKernel"  # the same, of one kernel
_BEGIN, _END = "StreamBeginCapture", "StreamEndCapture"  # launches between them are recorded later
_TOLD = 2  # diagnostics, chosen: more repeat
_FEWEST = 3  # chosen: a recording may begin or end in one
_LOST = 0.5
"""Share without GPU work from which launches were lost, chosen: 99% and more in two recordings that
lost them, 0 in 60 others."""


def lost_work(events: Events, process: int | None = None) -> str:
    """What a process submitted without a trace of it on the GPU, in words; "" where nothing was.

    Without a process: any of them. Work whose call is unknown may be that of any call.
    """
    return lost_graphs(events, process) or _lost_launches(events, process)


def lost_graphs(events: Events, process: int | None = None) -> str:
    """The same of CUDA graphs and XLA modules, which are recorded where graphs are traced by
    node."""
    submitting, unknown = _submitting(events, process)
    return _lost("CUDA graphs", _graph_launches(events, process, submitting), unknown) or _lost(
        "XLA modules", _modules(events, process, submitting), unknown
    )


def _lost_launches(events: Events, process: int | None) -> str:
    """The same of launched kernels; "" where no kernel at all is recorded (`failed_tracing`)."""
    if not len(events.kernels):
        return ""
    submitting, unknown = _submitting(events, process)
    return _lost("kernels", _kernel_launches(events, process, submitting), unknown)


def _lost(what: str, with_work: Mask, unknown: int) -> str:
    count, lost = len(with_work), int((~with_work).sum())
    if count >= _FEWEST and lost > _LOST * count and unknown < lost:
        return f"the GPU work of {lost:,} of {count:,} launched {what} is not recorded"
    return ""


def _submitting(events: Events, process: int | None) -> tuple[Mask, int]:
    """For each call whether it has work of a process, and how much of that has no known call."""
    submitting = np.zeros(len(events.calls) + 1, dtype=np.bool_)
    unknown = 0
    for table in (events.kernels, events.memory_operations, events.graphs):
        own = _of(process, [stream.process for stream in events.streams])[table.stream]
        submitting[table.call[own]] = True
        unknown += int((own & (table.call < 0)).sum())
    return submitting[:-1], unknown


def failed_tracing(events: Events) -> str:
    """Why no kernel or no GPU work at all was recorded of a program that submits some, in words; ""
    where there is a kernel or a graph, or nothing tells that tracing failed."""
    if len(events.kernels) or len(events.graphs):
        return ""
    submitting = ("Launch",) if len(events.memory_operations) else ("Launch", "Memcpy", "Memset")
    named = [any(word in name for word in submitting) for name in events.call_names]
    calls = int(np.array([*named, False])[events.calls.name].sum())
    told = [text for text in events.diagnostics if "Does the process use" not in text][:_TOLD]
    if not calls and not (told and not len(events.memory_operations)):
        return ""
    lost = "launches" if len(events.memory_operations) else "launches, copies and memsets"
    reason = f"{lost} called: {calls:,}, recorded on the GPU: 0" if calls else "no GPU work"
    words = f" (nsys: {' '.join(told)})" if told else ""
    return f"tracing failed: {reason}{words}"


def unrecorded(events: Events, process: int | None = None) -> str:
    """What was not recorded, with what to do about it; "" where nothing is known to be missing."""
    if lost := lost_work(events, process):
        return f"{lost}, and the GPU is not known to be idle without it: {remedy(events, process)}"
    failed = failed_tracing(events)
    return f"{failed}; {failed_remedy(events)}" if failed else ""


def remedy(events: Events, process: int | None = None) -> str:
    """What to do about lost work."""
    is_of_graphs = events.profiler == "nsys" and lost_graphs(events, process)
    return REMEDY if is_of_graphs else failed_remedy(events)


def failed_remedy(events: Events) -> str:
    """What to do where a profiler recorded nothing."""
    return FAILED_REMEDY.format(*_PROFILERS[events.profiler])


def _of(process: int | None, owners: list[int]) -> Mask:
    return np.array([process in {None, owner} for owner in owners], dtype=np.bool_)


def _graph_launches(events: Events, process: int | None, submitting: Mask) -> Mask:
    """For each launch of a CUDA graph, whether it has work."""
    return submitting[_calls(events, process, _GRAPH_LAUNCH)]


def _kernel_launches(events: Events, process: int | None, submitting: Mask) -> Mask:
    """For each launch of a kernel that no CUDA graph captures, whether it or a call within it has
    work."""
    calls, launches = events.calls, _calls(events, process, _LAUNCH)
    found = []
    for thread in np.unique(calls.thread[launches]).tolist():
        own = calls.thread == thread
        rows = np.flatnonzero(own & launches)
        outer = np.maximum.accumulate(np.append(0, calls.end[rows]))[:-1] <= calls.start[rows]
        rows = rows[outer & ~_captured(events, events.threads[thread].process, calls.start[rows])]
        times = calls.start[submitting & own]
        found.append(
            np.searchsorted(times, np.maximum(calls.end[rows], calls.start[rows] + 1))
            > np.searchsorted(times, calls.start[rows])
        )
    return np.concatenate([np.zeros(0, dtype=np.bool_), *found])


def _captured(events: Events, process: int, times: Times) -> Mask:
    """Whether any thread of a process captures a graph at these times."""
    begun, ended = (events.calls.start[_calls(events, process, name)] for name in (_BEGIN, _END))
    return np.searchsorted(begun, times) > np.searchsorted(ended, times)


def _calls(events: Events, process: int | None, name: str) -> Mask:
    """Which calls of a process have this in their name."""
    named = np.array([name in each for each in events.call_names], dtype=np.bool_)
    own = _of(process, [thread.process for thread in events.threads])
    return named[events.calls.name] & own[events.calls.thread]


def _modules(events: Events, process: int | None, submitting: Mask) -> Mask:
    """For each module that XLA launched, whether a call of its thread in its range has work."""
    named = np.array([name.startswith(_MODULE) for name in events.range_names], dtype=np.bool_)
    ranges, calls = events.ranges, events.calls
    own = named[ranges.name] & ranges.closed & (ranges.thread >= 0)
    rows = np.flatnonzero(own if process is None else own & (ranges.process == process))
    with_work = np.zeros(len(rows), dtype=np.bool_)
    for thread in np.unique(ranges.thread[rows]):
        inside = ranges.thread[rows] == thread
        times = calls.start[submitting & (calls.thread == thread)]
        bounds = (ranges.start[rows[inside]], ranges.end[rows[inside]])
        first, last = (np.searchsorted(times, bound) for bound in bounds)
        with_work[inside] = last > first
    return with_work
