"""Launches hopper.cu: attention for Hopper GPUs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from profkit.capture.cuda_source import TensorMap, compile_kernel

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

    consumers: int = 2
    block_n: int = 128
    split: int = 1
    stages: int = 2
    q_stages: int = 2
    pingpong: int = 1
    polynomial: int = 0
    rescale_above: str = "8.0f"

    def shared_bytes(self, dim: int) -> int:
        rows = self.consumers * _ROWS * (self.q_stages + 1) + 2 * self.stages * self.block_n
        return rows * dim * _ELEMENT + _ALIGNMENT


TILES = {64: Tiles(stages=4), 128: Tiles(stages=2)}


def hopper(q: Any, k: Any, v: Any, causal: bool, tiles: Tiles | None = None) -> Any:
    """Attention over tensors of (batch, heads, length, dim), contiguous, at multiples of 16."""
    import torch

    batch, heads, length, dim = q.shape
    tiles = tiles or TILES[dim]
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
    sms = torch.cuda.get_device_properties(q.device).multi_processor_count
    group = max(1, _GROUP_BYTES // (2 * length * dim * _ELEMENT)) if causal else 1
    kernel.launch(
        (min(blocks, sms),),
        ((1 + tiles.consumers) * _WARPGROUP,),
        *(*maps, length, batch * heads, group, 1 / math.sqrt(dim), causal),
        shared_bytes=tiles.shared_bytes(dim),
    )
    return out
