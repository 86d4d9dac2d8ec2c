"""DataLoaders: processes that read, pinned memory."""

from __future__ import annotations

import atexit
import functools
import inspect
import os
import time
import weakref
from typing import Any

_MOST_WORKERS = 8  # chosen: more rarely help a single GPU
_PREFETCHED = 4  # batches of each worker, twice torch's default


def loader_workers(program: Any) -> None:
    """Datasets are read by worker processes, as many as there are cores, 8 at most, which stay; one
    of those without indices, which several may each read whole, where all loaders read such."""
    most = 1 if "iterated-dataset" in program.record.plan["features"] else _MOST_WORKERS

    def chosen(options: Any) -> Any:
        workers = max(1, min(most, len(os.sched_getaffinity(0))))
        if (options.get("num_workers") or 0) >= workers:
            return None
        stay, facts = options.get("worker_init_fn") is None, program.record.facts
        facts["persistent"] = str(stay and facts.get("persistent") != "False")
        facts["workers"] = str(workers)
        return {"num_workers": workers, "persistent_workers": stay}

    early: Any = weakref.WeakSet()

    def note(loader: Any) -> None:
        if loader.persistent_workers and not any(program.record.marks.values()):
            early.add(loader)

    _loaders(program, "loader-workers", chosen, note)
    _watch_workers(program, early)


def _watch_workers(program: Any, early: Any) -> None:
    """Workers have a copy of the dataset, which a program may not change as long as they stay. The
    start of those of `early` loaders, made before the first unit, happens once and is no part of
    one."""
    from torch.utils.data import dataloader

    devices, record = program.torch.cuda, program.record
    loaders, iterators = dataloader.DataLoader, dataloader._MultiProcessingDataLoaderIter
    known: Any = weakref.WeakKeyDictionary()
    begun: Any = weakref.WeakKeyDictionary()
    iterate, following = loaders.__iter__, iterators._next_data
    watch = record.Watch()

    def look(batches: Any, is_due: bool = False) -> None:
        """Raises RuntimeError where the program has changed what workers go on reading as it
        was."""
        read = functools.partial(record.state, batches._dataset, batches._collate_fn)
        if batches in begun and (name := watch.difference(begun[batches], read, is_due=is_due)):
            raise RuntimeError(f"its dataset changed while workers read it: {name}")

    @functools.wraps(iterate)
    def iterated(loader: Any) -> Any:
        contents = record.state(loader.dataset, loader.collate_fn)
        is_once = loader in early and loader not in known
        name = record.difference(known.setdefault(loader, contents), contents)
        if name and loader.persistent_workers:
            raise RuntimeError(f"the program changes its dataset between epochs: {name}")
        if is_once and devices.is_initialized():
            devices.synchronize()
        start = time.perf_counter_ns()
        batches = iterate(loader)
        if is_once:
            end = time.perf_counter_ns()
            record.pauses.append((end, (end - start) / 1e9))
        if isinstance(batches, iterators):
            begun[batches] = contents
        return batches

    @functools.wraps(following)
    def followed(batches: Any) -> Any:
        try:
            data = following(batches)
        except StopIteration:
            look(batches, is_due=True)
            raise
        look(batches)
        return data

    loaders.__iter__, iterators._next_data = iterated, followed


def loader_prefetch(program: Any) -> None:
    """Workers load more batches in advance."""

    def chosen(options: Any) -> Any:
        factor = max(_PREFETCHED, 2 * (options.get("prefetch_factor") or 2))
        return {"prefetch_factor": factor} if options.get("num_workers") else None

    _loaders(program, "loader-prefetch", chosen)


def pinned_memory(program: Any) -> None:
    """Loaders pin their batches, and copies of pinned memory don't block."""
    _loaders(program, "pinned-memory", lambda _: {"pin_memory": True})
    torch = program.torch
    from torch.utils.data._utils import pin_memory as pinning

    pin = pinning.pin_memory

    @functools.wraps(pin)
    def pinned(data: Any, *args: Any) -> Any:
        data = pin(data, *args)
        if isinstance(data, torch.Tensor):
            data._is_of_loader = True  # a program may write to its own pinned memory again
        return data

    pinning.pin_memory = pinned
    for name in ("to", "cuda"):
        setattr(torch.Tensor, name, _unblocked(getattr(torch.Tensor, name)))


def _unblocked(copy: Any) -> Any:
    @functools.wraps(copy)
    def started(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(tensor, "_is_of_loader", False) and not any(each is True for each in args):
            kwargs.setdefault("non_blocking", True)
        return copy(tensor, *args, **kwargs)

    return started


def _loaders(program: Any, name: str, chosen: Any, note: Any = lambda loader: None) -> None:
    """Loaders have the options that are `chosen` for theirs, if any."""
    from torch.utils.data import DataLoader, IterableDataset, dataloader

    start = DataLoader.__init__
    positions = list(inspect.signature(start).parameters)[2:]

    @functools.wraps(start)
    def started(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
        kwargs.update(zip(positions, args))
        is_iterated = name == "loader-workers" and isinstance(dataset, IterableDataset)
        is_other = is_iterated and "iterated-dataset" not in program.record.plan["features"]
        if not is_other and (options := chosen(kwargs)):
            kwargs.update(options)
            program.applied(name)
        start(self, dataset, **kwargs)
        note(self)

    DataLoader.__init__ = started
    _end_workers(dataloader._MultiProcessingDataLoaderIter)


def _end_workers(iterators: Any) -> None:
    """Workers end before torch's own end waits for one after the other, where batches are pinned
    and workers stay; those of loaders that are deleted have ended."""
    begin, running = iterators.__init__, weakref.WeakSet[Any]()

    @functools.wraps(begin)
    def begun(batches: Any, loader: Any) -> None:
        begin(batches, loader)
        running.add(batches)
        atexit.register(lambda: [each._shutdown_workers() for each in list(running)])

    iterators.__init__ = begun
