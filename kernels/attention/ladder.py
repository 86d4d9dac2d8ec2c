"""The attention ladder: kernels of the same function, each one idea past the one before."""

from __future__ import annotations

import math
from collections.abc import Callable, Container
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from profkit import Unsupported
from profkit.capture.cuda_source import CudaKernel, compile_kernel

FOLDER = Path(__file__).parent
_TENSOR_CORE_DIMS = (64, 128)
_AMPERE = (8, 0)
_HOPPER = 9
_THREADS = 256  # of a block of rungs 1 to 3
_ROWS = 64  # of a block's tile of Q, and of a tile of K or V, of rungs 1 to 5
_SPLIT_BLOCKS_PER_SM = 4


@dataclass(frozen=True)
class Rung:
    """A kernel of the ladder. `run` takes q, k, v (batch, heads, length, dim) and causal."""

    number: int
    name: str
    file: str
    idea: str
    run: Callable[[Any, Any, Any, bool], Any]


@dataclass(frozen=True)
class Tiles:
    """How async_pipeline.cu cuts its work: a block has 16 * strips * warps query rows."""

    warps: int
    strips: int
    keys: int
    blocks: int

    @property
    def rows(self) -> int:
        return 16 * self.strips * self.warps


ASYNC_TILES = {
    64: Tiles(warps=4, strips=2, keys=64, blocks=2),
    128: Tiles(warps=8, strips=1, keys=64, blocks=1),
}


def serial_kv(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Rung 1; any head dimension up to 128."""
    q, k, v, out = _tensors(q, k, v, dims=range(1, 129))
    kernel = _kernel("serial_kv", q)
    kernel.launch(_grid(q, _ROWS), (_THREADS,), q, k, v, out, q.shape[2], _scale(q), causal)
    return out


def all_threads(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Rung 2."""
    q, k, v, out = _tensors(q, k, v)
    kernel = _kernel("all_threads", q)
    kernel.launch(_grid(q, _ROWS), (_THREADS,), q, k, v, out, q.shape[2], _scale(q), causal)
    return out


def split_kv(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Rung 3: two launches."""
    import torch

    q, k, v, out = _tensors(q, k, v)
    (blocks,) = _grid(q, _ROWS)
    length, dim = q.shape[2:]
    keys = keys_a_split(length, blocks, _gpu(q).multi_processor_count)
    splits = math.ceil(length / keys)
    rows = q.numel() // dim
    partial = torch.empty((splits, rows, dim), dtype=torch.float32, device=q.device)
    largest, weights = torch.empty((2, splits, rows), dtype=torch.float32, device=q.device)
    scratch = (partial, largest, weights)

    kernel = _kernel("split_kv", q)
    grid = (blocks, splits)
    kernel.launch(grid, (_THREADS,), q, k, v, *scratch, length, keys, _scale(q), causal)
    combine = _kernel("split_kv", q, "combine")
    combine.launch((math.ceil(out.numel() / _THREADS),), (_THREADS,), *scratch, out, rows, splits)
    return out


def keys_a_split(length: int, blocks: int, sms: int) -> int:
    """Keys of a split, in whole tiles, with which so many blocks a split fill the SMs."""
    tiles = math.ceil(length / _ROWS)
    splits = min(max(sms * _SPLIT_BLOCKS_PER_SM // blocks, 1), tiles)
    return math.ceil(tiles / splits) * _ROWS


def tensor_core(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Rung 4."""
    q, k, v, out = _tensors(q, k, v, least=_AMPERE)
    kernel = _kernel("tensor_core", q)
    kernel.launch(_grid(q, _ROWS), (128,), q, k, v, out, q.shape[2], _scale(q), causal)
    return out


def swizzled(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Rung 5."""
    q, k, v, out = _tensors(q, k, v, least=_AMPERE)
    kernel = _kernel("swizzled", q)
    kernel.launch(_grid(q, _ROWS), (128,), q, k, v, out, q.shape[2], _scale(q), causal)
    return out


def async_pipeline(q: Any, k: Any, v: Any, causal: bool, tiles: Tiles | None = None) -> Any:
    """Rung 6, with the head dimension's tiles unless told others."""
    q, k, v, out = _tensors(q, k, v, least=_AMPERE)
    length, dim = q.shape[2:]
    tiles = tiles or ASYNC_TILES[dim]
    cut = {name.upper(): value for name, value in asdict(tiles).items()}
    _kernel("async_pipeline", q, **cut).launch(
        _grid(q, tiles.rows),
        (32 * tiles.warps,),
        *(q, k, v, out, length, _scale(q), causal),
        shared_bytes=8 * tiles.keys * dim,
    )
    return out


def triton_flash(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Rung 7."""
    q, k, v, _ = _tensors(q, k, v, least=_AMPERE)
    try:
        from kernels.attention.triton_flash import triton_flash as flash
    except ImportError as error:
        raise Unsupported(f"Triton can't be used ({error})") from error
    return flash(q, k, v, causal)


def hopper(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Rung 8."""
    from kernels.attention.hopper import hopper as attention

    gpu = _gpu(q)
    if gpu.major != _HOPPER:
        raise Unsupported("the kernel needs compute capability 9.0")
    q, k, v, _ = _tensors(q, k, v)
    return attention(q, k, v, causal, gpu.multi_processor_count)


def fastest(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """The fastest rung for the GPU and the tensors."""
    gpu = _gpu(q)
    if q.shape[3] not in _TENSOR_CORE_DIMS or (gpu.major, gpu.minor) < _AMPERE:
        return serial_kv(q, k, v, causal)
    return (hopper if gpu.major == _HOPPER else async_pipeline)(q, k, v, causal)


RUNGS: tuple[Rung, ...] = (
    Rung(1, "serial_kv", "serial_kv.cu", "tiles in shared memory, a running softmax", serial_kv),
    Rung(2, "all_threads", "all_threads.cu", "four lanes share a query row", all_threads),
    Rung(3, "split_kv", "split_kv.cu", "K and V are split over blocks", split_kv),
    Rung(4, "tensor_core", "tensor_core.cu", "mma.sync, weights stay in registers", tensor_core),
    Rung(5, "swizzled", "swizzled.cu", "swizzled tiles, no bank conflicts", swizzled),
    Rung(6, "async_pipeline", "async_pipeline.cu", "copies beside the arithmetic", async_pipeline),
    Rung(7, "triton_flash", "triton_flash.py", "Triton: wgmma and TMA on Hopper", triton_flash),
    Rung(8, "hopper", "hopper.cu", "wgmma, TMA, warpgroups of their own trade", hopper),
)


def _tensors(
    q: Any,
    k: Any,
    v: Any,
    dims: Container[int] = _TENSOR_CORE_DIMS,
    least: tuple[int, int] = (0, 0),
) -> tuple[Any, Any, Any, Any]:
    """q, k, v as the kernels read them, and room for the output; Unsupported where they can't."""
    import torch

    gpu = _gpu(q)
    if q.dtype not in {torch.float16, torch.bfloat16}:
        raise Unsupported("the kernel takes float16 and bfloat16")
    if q.shape[3] not in dims:
        told = "up to 128" if isinstance(dims, range) else "64 and 128"
        raise Unsupported(f"the kernel takes head dimensions {told}")
    if not q.shape == k.shape == v.shape or not q.dtype == k.dtype == v.dtype:
        raise Unsupported("the kernel takes q, k and v of one shape and dtype")
    if (gpu.major, gpu.minor) < least:
        raise Unsupported(f"the kernel needs compute capability {least[0]}.{least[1]}")
    return (
        _aligned(q),
        _aligned(k),
        _aligned(v),
        torch.empty(q.shape, dtype=q.dtype, device=q.device),
    )


def _gpu(tensor: Any) -> Any:
    """torch's properties of the GPU that holds the tensor; Unsupported where none does."""
    import torch

    if not tensor.is_cuda:
        raise Unsupported("the kernel needs a CUDA device")
    return torch.cuda.get_device_properties(tensor.device)


def _aligned(tensor: Any) -> Any:
    """Contiguous, and from an address that 16-byte loads can take."""
    tensor = tensor.contiguous()
    return tensor.clone() if tensor.data_ptr() % 16 else tensor


def _kernel(file: str, q: Any, name: str | None = None, **defines: int) -> CudaKernel:
    """The kernel `name`, by default named as its file, for q's dtype and head dimension."""
    import torch

    bf16 = {"BF16": 1} if q.dtype == torch.bfloat16 else {}
    every = {"DIM": int(q.shape[3])} | bf16 | defines
    return compile_kernel(FOLDER / f"{file}.cu", name or file, defines=every)


def _grid(q: Any, rows: int) -> tuple[int]:
    """A block for each tile of `rows` query rows of each head, in the one dimension with room."""
    batch, heads, length, _ = q.shape
    return (batch * heads * math.ceil(length / rows),)


def _scale(q: Any) -> float:
    return 1 / math.sqrt(q.shape[3])
