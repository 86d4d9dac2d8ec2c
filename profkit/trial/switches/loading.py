"""DataLoaders: processes that read, pinned memory."""

from __future__ import annotations

import functools
import inspect
import os
import time
import weakref
from collections import deque
from contextlib import suppress
from itertools import islice
from typing import Any

_MOST_WORKERS = 8  # chosen: more rarely help a single GPU
_PREFETCHED = 4  # batches of each worker, twice torch's default
_MOST_LOOKS, _PARTS = 10_000, 100  # at parts of a dataset, at an object's; chosen: 10 ms
_SAMPLE = 4096  # elements of an array that are looked at, chosen


def loader_workers(program: Any) -> None:
    """Datasets are read by worker processes, as many as there are cores, 8 at most, which stay
    until the dataset is another than it was."""

    def change(options: Any) -> bool:
        workers = max(1, min(_MOST_WORKERS, len(os.sched_getaffinity(0)) - 1))
        if (options.get("num_workers") or 0) >= workers:
            return False
        program.record.facts["workers"] = str(workers)
        options["num_workers"] = workers
        options["persistent_workers"] = options.get("worker_init_fn") is None
        return True

    early: Any = weakref.WeakSet()

    def note(loader: Any) -> None:
        if loader.persistent_workers and not any(program.record.marks.values()):
            early.add(loader)

    _loaders(program, "loader-workers", change, note)
    _renew_workers(program, early)


def _renew_workers(program: Any, early: Any) -> None:
    """Workers have a copy of the dataset, which a program may change between epochs. The start of
    those of `early` loaders, made before the first unit, happens once and is no part of one."""
    loaders, devices = program.torch.utils.data.DataLoader, program.torch.cuda
    known: Any = weakref.WeakKeyDictionary()
    iterate = loaders.__iter__

    @functools.wraps(iterate)
    def iterated(loader: Any) -> Any:
        contents: Any = object()
        with suppress(Exception):  # of tensors without an address
            contents = _contents(loader.dataset, loader.collate_fn)
        is_once = loader in early and loader not in known
        if known.setdefault(loader, contents) != contents:
            loader._iterator, known[loader] = None, contents
        if is_once and devices.is_initialized():
            devices.synchronize()
        start = time.perf_counter_ns()
        batches = iterate(loader)
        if is_once:
            end = time.perf_counter_ns()
            program.record.pauses.append((end, (end - start) / 1e9))
        return batches

    loaders.__iter__ = iterated


def _contents(*roots: Any) -> list[Any]:
    """What changes with objects that are changed, as far as a look shows: the numbers and words in
    them, the nearest first, and where the rest lies."""
    waiting, seen = deque(roots), set[int]()
    contents: list[Any] = []
    while waiting and len(contents) < _MOST_LOOKS:
        value = waiting.popleft()
        if value is None or isinstance(value, (int, float, str)):
            contents.append(value)
        elif hasattr(value, "data_ptr"):
            contents.append((value.data_ptr(), value._version))
        elif hasattr(value, "tobytes") and hasattr(value, "flat"):
            contents.append(value.flat[:: max(1, value.size // _SAMPLE)].tobytes())
        elif id(value) not in seen:
            seen.add(id(value))
            is_many = isinstance(value, (dict, list, tuple))
            contents.append((id(value), len(value) if is_many else 0))
            parts = value if is_many else getattr(value, "__dict__", ())
            waiting += islice(parts.values() if hasattr(parts, "values") else parts, _PARTS)
    return contents


def loader_prefetch(program: Any) -> None:
    """Workers load more batches in advance."""

    def change(options: Any) -> bool:
        if not options.get("num_workers"):
            return False
        options["prefetch_factor"] = max(_PREFETCHED, 2 * (options.get("prefetch_factor") or 2))
        return True

    _loaders(program, "loader-prefetch", change)


def pinned_memory(program: Any) -> None:
    """Loaders pin their batches, and copies of pinned memory don't block."""

    def change(options: Any) -> bool:
        options["pin_memory"] = True
        return True

    _loaders(program, "pinned-memory", change)
    torch = program.torch
    for name in ("to", "cuda"):
        setattr(torch.Tensor, name, _unblocked(torch, getattr(torch.Tensor, name)))


def _unblocked(torch: Any, copy: Any) -> Any:
    @functools.wraps(copy)
    def started(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        is_here = not torch.cuda._is_in_bad_fork()  # a loader's worker asks no device
        if is_here and not tensor.is_cuda and "non_blocking" not in kwargs and tensor.is_pinned():
            kwargs["non_blocking"] = True
        return copy(tensor, *args, **kwargs)

    return started


def _loaders(program: Any, name: str, change: Any, note: Any = lambda loader: None) -> None:
    from torch.utils.data import DataLoader, IterableDataset

    start = DataLoader.__init__
    positions = list(inspect.signature(start).parameters)[2:]

    @functools.wraps(start)
    def started(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
        kwargs.update(zip(positions, args))
        is_read_once = isinstance(dataset, IterableDataset)
        if not (is_read_once and name == "loader-workers") and change(kwargs):
            program.applied(name)
        start(self, dataset, **kwargs)
        note(self)

    DataLoader.__init__ = started
