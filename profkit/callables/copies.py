"""Copies of a call's arrays that lie in memory as the arrays do.

A contiguous copy hides a kernel that ignores strides, and takes other times; two copies of what was
one memory hide a write to one argument through another.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct

from profkit.callables.arrays import copied, framework, gradient

_ALIGNED = 64  # bytes; torch aligns memory of the host to 64 and of GPUs to more


class _Extent(Struct, frozen=True):
    """The addresses from the first byte of an array to behind its last; `first` is its element 0.

    Arrays of one `memory` may share bytes.
    """

    array: Any
    memory: tuple[object, ...]
    first: int
    low: int
    high: int


def copies(arrays: Sequence[Any]) -> list[Any]:
    """A copy of each array with its strides and its gradient; what overlaps does so in the copies.

    Arrays overlap that are of one framework and type. Of JAX's, of sparse ones, of subclasses and
    of conjugate views only the values are copied.
    """
    extents = [_extent(array) for array in arrays]
    laid_out = {
        id(extent.array): copy
        for group in _overlapping(extent for extent in extents if extent)
        for extent, copy in zip(group, _copies_of_memory(group), strict=True)
    }
    others = [laid_out[id(array)] if id(array) in laid_out else copied(array) for array in arrays]
    for array, other in zip(arrays, others, strict=True):
        if (grad := gradient(array)) is not None:
            other.grad = copied(grad)
    return others


def _extent(array: Any) -> _Extent | None:
    """None for an array whose memory isn't known."""
    kind = framework(array)
    if kind == "torch" and _is_plain_tensor(array):
        size, storage = array.element_size(), array.untyped_storage()
        place = (storage.data_ptr(), storage.nbytes())
        memory: tuple[object, ...] = (kind, array.device, array.dtype, *place)
        return _bounded(array, memory, array.data_ptr(), [size * n for n in array.stride()], size)
    if kind == "numpy" and type(array).__name__ == "ndarray" and not array.dtype.hasobject:
        pointer = array.__array_interface__["data"][0]
        return _bounded(array, (kind, array.dtype), pointer, array.strides, array.itemsize)
    if kind == "cupy":
        memory = (kind, array.device.id, array.dtype)
        return _bounded(array, memory, array.data.ptr, array.strides, array.itemsize)
    return None


def _is_plain_tensor(array: Any) -> bool:
    torch = sys.modules["torch"]
    return (
        type(array) in {torch.Tensor, torch.nn.Parameter}
        and array.layout is torch.strided
        and array.device.type != "meta"
        and not (array.is_conj() or array.is_neg() or array.is_quantized or array.is_nested)
    )


def _bounded(
    array: Any, memory: tuple[object, ...], first: int, strides: Sequence[int], size: int
) -> _Extent | None:
    """None for an array without elements, and for one whose elements don't fall on whole ones."""
    if 0 in array.shape or any(stride % size for stride in strides):
        return None
    steps = [(count - 1) * stride for count, stride in zip(array.shape, strides, strict=True)]
    low = first + sum(min(0, step) for step in steps)
    return _Extent(array, memory, first, low, first + sum(max(0, step) for step in steps) + size)


def _overlapping(extents: Iterable[_Extent]) -> Iterator[list[_Extent]]:
    """The extents in groups that share bytes, each by its addresses."""
    by_memory = sorted(extents, key=lambda extent: (repr(extent.memory), extent.low))
    for _, same in groupby(by_memory, key=lambda extent: extent.memory):
        group: list[_Extent] = []
        for extent in same:
            whole = (extent.low - group[0].low) % _item_size(extent.array) == 0 if group else False
            if group and not (whole and extent.low < max(each.high for each in group)):
                yield group
                group = []
            group.append(extent)
        yield group


def _item_size(array: Any) -> int:
    return int(array.dtype.itemsize)


def _copies_of_memory(group: Sequence[_Extent]) -> Iterator[Any]:
    """Copies of arrays that share memory, the one that begins first in front."""
    lowest, size = group[0], _item_size(group[0].array)
    count = (max(extent.high for extent in group) - lowest.low) // size
    if framework(lowest.array) == "torch":
        yield from _torch_copies(group, count)
        return
    strided = sys.modules[framework(lowest.array)].lib.stride_tricks.as_strided
    upward = tuple(slice(None, None, -1 if stride < 0 else 1) for stride in lowest.array.strides)
    memory = strided(lowest.array[(*upward, ...)], (count,), (size,)).copy()
    for extent in group:
        start = (extent.first - lowest.low) // size
        yield strided(memory[start:], extent.array.shape, extent.array.strides)


def _torch_copies(group: Sequence[_Extent], count: int) -> Iterator[Any]:
    """The same of tensors, with their alignment where the storage has elements before them."""
    lowest = group[0]
    size, offset = lowest.array.element_size(), lowest.array.storage_offset()
    before = min(offset, lowest.low % _ALIGNED // size)
    memory = lowest.array.detach().as_strided((before + count,), (1,), offset - before).clone()
    for extent in group:
        array, start = extent.array.detach(), before + (extent.first - lowest.low) // size
        copy = array.new_empty(0).set_(memory.untyped_storage(), start, array.shape, array.stride())
        yield copy.requires_grad_(extent.array.requires_grad)
