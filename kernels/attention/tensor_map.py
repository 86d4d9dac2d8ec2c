"""Tensor maps, by which the tensor memory accelerator (TMA) of Hopper GPUs addresses a tensor."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from operator import mul
from typing import Any

from profkit.core.errors import UsageError

_BYTES = 128  # sizeof(CUtensorMap), cuda.h
_ALIGNMENT = 64
_ELEMENT = 2  # bytes


@dataclass(frozen=True, eq=False)
class TensorMap:
    """A contiguous tensor of 16-bit elements as TMA addresses it: by boxes of it.

    `box` is outermost dimension first, as the tensor's shape. Its rows are at most 128 bytes, and
    are swizzled by as many in shared memory. What is outside of the tensor reads as zero.
    """

    tensor: Any
    box: tuple[int, ...]

    def as_argument(self) -> Any:
        """The 128 bytes of the map; raises UsageError for an unsuitable tensor or box."""
        tensor, shape = self.tensor, tuple(self.tensor.shape)
        if not tensor.is_cuda:
            raise UsageError(f"no tensor map for a tensor on {tensor.device}")
        if tensor.element_size() != _ELEMENT or not tensor.is_contiguous():
            raise UsageError(
                f"no tensor map for {tensor.dtype} with strides {tuple(tensor.stride())}",
                "pass a contiguous tensor of 16-bit elements",
            )
        if len(shape) != len(self.box):
            raise UsageError(f"a box of {len(self.box)} dimensions for a tensor of {len(shape)}")
        return _encoded(tensor.data_ptr(), shape, self.box)


@lru_cache(maxsize=1024)
def _encoded(address: int, shape: tuple[int, ...], box: tuple[int, ...]) -> Any:
    """A tensor map's bytes; valid as long as the tensor's memory."""
    from cuda.bindings import driver

    rank = len(shape)
    strides = [_ELEMENT * size for size in accumulate(shape[:0:-1], mul)]
    room = ctypes.create_string_buffer(_BYTES + _ALIGNMENT)
    offset = -ctypes.addressof(room) % _ALIGNMENT
    encoded = (ctypes.c_char * _BYTES).from_buffer(room, offset)
    status = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled(
        ctypes.byref(encoded),
        driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT16.value,
        rank,
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * rank)(*reversed(shape)),
        (ctypes.c_uint64 * (rank - 1))(*strides),
        (ctypes.c_uint32 * rank)(*reversed(box)),
        (ctypes.c_uint32 * rank)(*[1] * rank),
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE.value,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B.value,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B.value,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE.value,
    )
    if status != driver.CUresult.CUDA_SUCCESS.value:
        raise UsageError(f"no tensor map for a tensor of {shape} in boxes of {box}: {status}")
    return encoded
