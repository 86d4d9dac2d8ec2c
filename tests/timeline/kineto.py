"""Writes `Events` as torch.profiler would have: a Chrome trace with Kineto's categories, names and
arguments."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from profkit.timeline.events import Events, GpuWork, Intervals, Ranges

BASE = 1_790_857_026_000_000_000  # ns, baseTimeNanoseconds
PID = 4711
START = 4_831_987_149_943_395  # ns after it, of the first event: as large as after 56 days
_COPIES = {
    "host to device": "HtoD", "device to host": "DtoH", "device to device": "DtoD",
    "host to host": "HtoH", "peer to peer": "PtoP",
}  # fmt: skip

Event = dict[str, Any]


def micro(ns: int) -> float:
    """Microseconds with three decimals, as Kineto writes them."""
    return float(f"{ns // 1000}.{ns % 1000:03}")


def span(cat: str, name: str, start: int, end: int, **args: object) -> Event:
    times = {"ts": micro(start + START), "dur": micro(end - start)}
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 7, **times, "args": args}


def kernel(start: int, end: int, correlation: int, name: str = "k(int)", **args: object) -> Event:
    place = {"device": 0, "context": 1, "stream": 7, "correlation": correlation}
    shape = {"grid": [8, 2, 1], "block": [64, 1, 1], "registers per thread": 40}
    given = {**place, **shape, "shared memory": 1040, "graph node id": 0, **args}
    return span("kernel", name, start, end, **given)


def on_host(cat: str, name: str, start: int, end: int, tid: int = PID, **args: object) -> Event:
    return span(cat, name, start, end, **args) | {"pid": PID, "tid": tid}


def call(start: int, end: int, correlation: int, name: str = "cudaLaunchKernel") -> Event:
    return on_host("cuda_runtime", name, start, end, correlation=correlation)


def steps(count: int, launches: int = 5) -> list[Event]:
    """Steps of 100 µs with kernels of 10 µs, each launched 5 µs before its start."""
    events = []
    for step in range(count):
        begin = step * 100_000
        events.append(on_host("user_annotation", f"ProfilerStep#{step + 7}", begin, begin + 99_000))
        for number in range(launches):
            start, correlation = begin + 15_000 * number, 1 + step * launches + number
            events.append(call(start + 1_000, start + 3_000, correlation))
            named = f"void layer_{number}<float>(float*)"
            events.append(kernel(start + 6_000, start + 16_000, correlation, named))
    return events


def trace(events: Iterable[Event], **facts: object) -> dict[str, object]:
    head = {"schemaVersion": 1, "deviceProperties": [], "displayTimeUnit": "ms"}
    return {**head, "baseTimeNanoseconds": BASE, **facts, "traceEvents": list(events)}


def write(path: Path, events: Iterable[Event], **facts: object) -> Path:
    """Write a trace in the form in which Kineto does: with line breaks, compressed by its name."""
    text = json.dumps(trace(events, **facts), indent=1).encode()
    path.write_bytes(gzip.compress(text, 1) if path.suffix == ".gz" else text)
    return path


def write_trace(events: Events, path: Path) -> Path:
    """Write a timeline of one process."""
    gpus = [
        {
            "id": gpu.device, "name": gpu.name, "numSms": gpu.sm_count,
            "totalGlobalMem": gpu.memory_bytes, "computeMajor": gpu.cc[0],
            "computeMinor": gpu.cc[1],
        }
        for gpu in events.gpus
    ]  # fmt: skip
    return write(path, _events(events), deviceProperties=gpus)


def _events(events: Events) -> Iterator[Event]:
    processes = {thread.process >> 24 or thread.process for thread in events.threads}
    yield {
        "ph": "M", "name": "process_name", "ts": micro(START), "pid": min(processes), "tid": 0,
        "args": {"name": "python"},
    }  # fmt: skip
    yield from _kernels(events)
    yield from _copies(events)
    for number, row in enumerate(_columns(events.calls, "start", "end", "name", "thread"), 1):
        start, end, name, thread = row
        called = events.call_names[name]
        cat = "cuda_runtime" if called.startswith("cuda") else "cuda_driver"
        yield span(cat, called, start, end, correlation=number, cbid=211) | _thread(events, thread)
        yield {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": number, "ts": 0, "pid": 0, "tid": 0}
    yield from _ranges(events, events.ranges)


def _columns(table: Intervals, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(getattr(table, name).tolist() for name in names), strict=True)


def _thread(events: Events, index: int) -> Event:
    thread = events.threads[max(index, 0)]
    return {"pid": thread.process >> 24 or thread.process, "tid": thread.number}


def _ranges(events: Events, ranges: Ranges) -> Iterator[Event]:
    for start, end, name, thread in _columns(ranges, "start", "end", "name", "thread"):
        args = span("user_annotation", events.range_names[name], start, end)
        yield args | _thread(events, thread)


def _work(events: Events, table: GpuWork, *columns: str) -> Iterator[tuple[Any, ...]]:
    for start, end, stream, call, *rest in _columns(
        table, "start", "end", "stream", "call", *columns
    ):
        place = events.streams[stream]
        args = {"device": place.device, "context": place.context, "stream": place.number}
        yield start, end, {**args, "correlation": call + 1 or 3_000_000_000}, *rest


def _kernels(events: Events) -> Iterator[Event]:
    for start, end, args, name, number, node in _work(
        events, events.kernels, "name", "configuration", "graph_node"
    ):
        shape = events.configurations[number]
        args |= {
            "queued": 0, "registers per thread": shape.registers,
            "shared memory": shape.shared_static + shape.shared_dynamic,
            "blocks per SM": 4.705883, "warps per SM": "inf",
            "grid": list(shape.grid), "block": list(shape.block),
            "est. achieved occupancy %": 100, "graph id": node >> 32, "graph node id": node,
        }  # fmt: skip
        yield span("kernel", events.kernel_names[name].name, start, end, **args)


def _copies(events: Events) -> Iterator[Event]:
    for start, end, args, number, size in _work(events, events.memory_operations, "kind", "size"):
        kind = events.memory_kinds[number]
        args |= {"bytes": size, "memory bandwidth (GB/s)": 7.2257}
        if kind.kind == "memset":
            yield span("gpu_memset", "Memset (Device)", start, end, **args)
        else:
            ends = (kind.source.title() or "Unknown", kind.target.title() or "Unknown")
            name = f"Memcpy {_COPIES[kind.kind]} ({' -> '.join(ends)})"
            yield span("gpu_memcpy", name, start, end, **args)
