"""What feeds the device: loaders, copies, Python's garbage collector, generation."""

from __future__ import annotations

import functools
import gc
import inspect
import os
from typing import Any

_MOST_WORKERS = 8  # chosen: more rarely help a single GPU
_PREFETCHED = 4  # batches of each worker, twice torch's default
_COLLECTED_AFTER = 3  # steps, chosen: what these have made stays


def loader_workers(program: Any) -> None:
    """Datasets are read by worker processes, as many as there are cores, 8 at most."""

    def change(options: Any) -> bool:
        workers = max(1, min(_MOST_WORKERS, len(os.sched_getaffinity(0)) - 1))
        if (options.get("num_workers") or 0) >= workers:
            return False
        program.record.facts["workers"] = str(workers)
        options["num_workers"] = workers  # anew in each epoch, for which a dataset may be changed
        return True

    _loaders(program, "loader-workers", change)


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


def _loaders(program: Any, name: str, change: Any) -> None:
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

    DataLoader.__init__ = started


def gc_frozen(program: Any) -> None:
    """Objects that the first steps have made are no longer looked at by the garbage collector."""
    steps = 0

    def freeze() -> None:
        nonlocal steps
        steps += 1
        if steps == _COLLECTED_AFTER:
            gc.collect()
            gc.freeze()
            program.applied("gc-frozen")

    def passed(module: Any, args: Any, kwargs: Any) -> Any:
        freeze()
        return args, kwargs

    program.on_step.append(freeze)
    program.changes.append(passed)


def static_kv_cache(program: Any) -> None:
    """`generate` keeps keys and values in memory of a fixed size, and compiles its steps."""

    def changed(kwargs: Any) -> Any:
        if not {"cache_implementation", "past_key_values"} & kwargs.keys():
            program.applied("static-kv-cache")
            return {**kwargs, "cache_implementation": "static"}
        return kwargs

    program.generation.append(changed)
