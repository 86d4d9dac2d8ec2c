"""Rung 7: FlashAttention-2 in Triton, which multiplies by wgmma and loads by TMA on Hopper."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

_LOG2E = 1.44269504


@dataclass(frozen=True)
class Config:
    """Query rows and keys of a tile, warps of a block, stages of the pipeline over the keys."""

    rows: int
    keys: int
    warps: int
    stages: int


# By head dimension and causal, for an H200.
CONFIGS = {
    (64, False): Config(rows=128, keys=64, warps=8, stages=3),
    (64, True): Config(rows=128, keys=64, warps=8, stages=3),
    (128, False): Config(rows=128, keys=128, warps=8, stages=2),
    (128, True): Config(rows=128, keys=64, warps=8, stages=3),
}


def triton_flash(q: Any, k: Any, v: Any, causal: bool, config: Config | None = None) -> Any:
    """Attention of contiguous, 16-byte aligned (batch, heads, length, dim), dim 64 or 128."""
    import torch

    batch, heads, length, dim = q.shape
    config = config or CONFIGS[dim, causal]
    out = torch.empty_like(q)
    rows, keys = [1, config.rows, dim], [1, config.keys, dim]
    shape, strides = [batch * heads, length, dim], [length * dim, dim, 1]
    _flash[(batch * heads * triton.cdiv(length, config.rows),)](
        TensorDescriptor(q, shape, strides, rows),
        TensorDescriptor(k, shape, strides, keys),
        TensorDescriptor(v, shape, strides, keys),
        TensorDescriptor(out, shape, strides, rows),
        length,
        _LOG2E / math.sqrt(dim),
        CAUSAL=causal,
        EVEN=length % config.keys == 0,
        ROWS=config.rows,
        KEYS=config.keys,
        DIM=dim,
        num_warps=config.warps,
        num_stages=config.stages,
    )
    return out


@triton.jit
def _flash(
    q,
    k,
    v,
    out,
    length,
    factor,
    CAUSAL: tl.constexpr,
    EVEN: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
):
    """A block's tile of query rows; `factor` is the scale times log2(e)."""
    tiles = tl.cdiv(length, ROWS)
    head = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    if CAUSAL:  # the last rows have the most keys: they start first
        tile = tiles - 1 - tile
    first_row = tile * ROWS

    query = q.load([head, first_row, 0]).reshape(ROWS, DIM)
    largest = tl.full([ROWS], float("-inf"), tl.float32)
    weights = tl.zeros([ROWS], tl.float32)
    sums = tl.zeros([ROWS, DIM], tl.float32)

    # First the tiles of keys that every row sees whole, then those that need a mask.
    end = min(length, first_row + ROWS) if CAUSAL else length
    whole = (min(length, first_row) if CAUSAL else length) // KEYS * KEYS
    sums, weights, largest = _walk(
        sums, weights, largest, query, k, v, head, first_row, 0, whole,
        length, factor, False, CAUSAL, ROWS, KEYS, DIM,
    )  # fmt: skip
    if CAUSAL or not EVEN:
        sums, weights, largest = _walk(
            sums, weights, largest, query, k, v, head, first_row, whole, end,
            length, factor, True, CAUSAL, ROWS, KEYS, DIM,
        )  # fmt: skip

    result = (sums / weights[:, None]).to(out.dtype)
    out.store([head, first_row, 0], result.reshape(1, ROWS, DIM))


@triton.jit
def _walk(
    sums,
    weights,
    largest,
    query,
    k,
    v,
    head,
    first_row,
    begin,
    end,
    length,
    factor,
    MASKED: tl.constexpr,
    CAUSAL: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
):
    """Add the keys from `begin` to `end` to the running softmax."""
    for first_key in tl.range(begin, end, KEYS):
        keys = k.load([head, first_key, 0]).reshape(KEYS, DIM)
        score = tl.dot(query, keys.T)
        if MASKED:
            key = first_key + tl.arange(0, KEYS)[None, :]
            seen = key < length
            if CAUSAL:
                seen = seen & (key <= first_row + tl.arange(0, ROWS)[:, None])
            score = tl.where(seen, score, float("-inf"))

        top = tl.maximum(largest, tl.max(score, 1))
        weight = tl.exp2(score * factor - (top * factor)[:, None])
        shrink = tl.exp2((largest - top) * factor)
        largest = top
        weights = weights * shrink + tl.sum(weight, 1)

        values = v.load([head, first_key, 0]).reshape(KEYS, DIM)
        sums = tl.dot(weight.to(values.dtype), values, sums * shrink[:, None])
    return sums, weights, largest
