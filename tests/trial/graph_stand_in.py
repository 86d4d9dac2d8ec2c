"""CUDA graphs as a CPU has them: operators are recorded in a capture, which leaves no trace, and
replayed on the tensors that they had."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map


class StandInGraph:
    """torch.cuda.CUDAGraph."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.replays = 0

    def replay(self) -> None:
        self.replays += 1
        with torch.no_grad():
            for function, args, kwargs, output in self.calls:
                again = function(*args, **kwargs)
                for held, new in zip(_tensors(output), _tensors(again), strict=True):
                    if held.data_ptr() != new.data_ptr():
                        held.copy_(new)


def _tensors(value: Any) -> list[Any]:
    return [leaf for leaf in tree_leaves(value) if torch.is_tensor(leaf)]


def _places(value: Any) -> dict[int, Any]:
    return {tensor.untyped_storage().data_ptr(): tensor for tensor in _tensors(value)}


class _Capture(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self, graph: StandInGraph) -> None:
        super().__init__()
        self.graph = graph
        self.before: dict[int, tuple[Any, Any]] = {}
        self.own: set[int] = set()

    def __torch_dispatch__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("operation not permitted when stream is capturing")
        for place, tensor in _places((args, kwargs)).items():
            if place not in self.own | self.before.keys():
                self.before[place] = tensor, tensor.clone()
        output = function(*args, **(kwargs or {}))
        self.own |= _places(output).keys() - self.before.keys()
        held = tree_map(lambda leaf: leaf.detach() if torch.is_tensor(leaf) else leaf, args)
        self.graph.calls.append((function, held, kwargs or {}, output))
        return output


class _Unread(TorchDispatchMode):  # type: ignore[misc]
    """In which no number may be read from the device."""

    def __torch_dispatch__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("called a synchronizing CUDA operation")
        return function(*args, **(kwargs or {}))


_unread: list[_Unread] = []


def set_sync_debug_mode(mode: int | str) -> None:
    """torch.cuda.set_sync_debug_mode, of "error" and back."""
    if mode == "error":
        _unread.append(_Unread())
        _unread[-1].__enter__()
    else:
        _unread.pop().__exit__(None, None, None)


@contextmanager
def captured(graph: StandInGraph, *, capture_error_mode: str, **_: object) -> Iterator[None]:
    """torch.cuda.graph, as other threads need it."""
    assert capture_error_mode == "thread_local"
    capture, is_capturing = _Capture(graph), torch.cuda.is_current_stream_capturing
    torch.cuda.is_current_stream_capturing = lambda: True
    try:
        with capture:
            yield
    finally:
        torch.cuda.is_current_stream_capturing = is_capturing
        for tensor, value in capture.before.values():
            tensor.data.copy_(value)
