"""Launches hopper.cu: attention for Hopper GPUs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kernels.attention.tensor_map import TensorMap
from profkit.capture.cuda_source import compile_kernel

SOURCE = Path(__file__).parent / "hopper.cu"
_ROWS = 64  # of a consumer
_PART = 64  # columns of a swizzled tile
_WARPGROUP = 128  # threads
_ELEMENT = 2  # bytes
_ALIGNMENT = 1024
_GROUP_BYTES = 24 * 2**20  # of K and V, to leave L2 some room


@dataclass(frozen=True)
class Tiles:
    """How hopper.cu cuts its work, in its macros."""

    consumers: int
    block_n: int
    stages: int
    q_stages: int = 2

    def shared_bytes(self, dim: int) -> int:
        rows = self.consumers * _ROWS * (self.q_stages + 1) + 2 * self.stages * self.block_n
        return rows * dim * _ELEMENT + _ALIGNMENT


TILES = {  # by head dimension, causal or not: the fastest of twenty on an H200
    (64, False): Tiles(consumers=4, block_n=64, stages=4),
    (64, True): Tiles(consumers=3, block_n=128, stages=4),
    (128, False): Tiles(consumers=2, block_n=128, stages=2),
    (128, True): Tiles(consumers=2, block_n=128, stages=2),
}


def hopper(q: Any, k: Any, v: Any, causal: bool, sms: int, tiles: Tiles | None = None) -> Any:
    """Attention over tensors of (batch, heads, length, dim), contiguous, at multiples of 16 bytes.

    `sms` is how many blocks run at once, one a multiprocessor.
    """
    import torch

    batch, heads, length, dim = q.shape
    tiles = tiles or TILES[dim, causal]
    rows = tiles.consumers * _ROWS
    bf16 = {"BF16": 1} if q.dtype == torch.bfloat16 else {}
    defines = {name.upper(): value for name, value in asdict(tiles).items()}
    kernel = compile_kernel(SOURCE, "hopper", defines={"DIM": dim, **bf16, **defines})

    out = torch.empty_like(q)
    boxes = (rows, tiles.block_n, tiles.block_n, _ROWS)
    maps = [
        TensorMap(tensor.view(batch * heads, length, dim), (1, box, _PART))
        for tensor, box in zip((q, k, v, out), boxes, strict=True)
    ]
    blocks = math.ceil(length / rows) * batch * heads
    group = max(1, _GROUP_BYTES // (2 * length * dim * _ELEMENT)) if causal else 1
    kernel.launch(
        (min(blocks, sms),),
        ((1 + tiles.consumers) * _WARPGROUP,),
        *(*maps, length, batch * heads, group, 1 / math.sqrt(dim), causal),
        shared_bytes=tiles.shared_bytes(dim),
    )
    return out
