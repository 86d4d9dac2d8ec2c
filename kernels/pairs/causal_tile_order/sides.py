"""Causal grouped-query attention: query tiles in ascending order, and in descending order."""

import torch
import triton
import triton.language as tl


@triton.jit
def causal_attention(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    heads,
    group,
    length,
    scale,
    descending: tl.constexpr,
    dim: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
):
    head = tl.program_id(0)
    tile = tl.program_id(1)
    if descending:
        tile = length // block_m - 1 - tile
    kv_row = heads // group * dim
    rows = tile * block_m + tl.arange(0, block_m)
    lanes = tl.arange(0, dim)
    targets = rows[:, None] * heads * dim + head * dim + lanes[None, :]
    q = tl.load(q_ptr + targets)
    k_base = k_ptr + head // group * dim + lanes[:, None]
    v_base = v_ptr + head // group * dim + lanes[None, :]
    maximum = tl.full((block_m,), -1e30, tl.float32)
    total = tl.zeros((block_m,), tl.float32)
    result = tl.zeros((block_m, dim), tl.float32)
    for start in range(0, (tile + 1) * block_m, block_n):
        keys = start + tl.arange(0, block_n)
        score = tl.dot(q, tl.load(k_base + keys[None, :] * kv_row)) * scale
        score = tl.where(rows[:, None] >= keys[None, :], score, -1e30)
        larger = tl.maximum(maximum, tl.max(score, axis=1))
        weight = tl.exp2(score - larger[:, None])
        correction = tl.exp2(maximum - larger)
        total = total * correction + tl.sum(weight, axis=1)
        v = tl.load(v_base + keys[:, None] * kv_row)
        result = tl.dot(weight.to(tl.float16), v, result * correction[:, None])
        maximum = larger
    tl.store(out_ptr + targets, (result / total[:, None]).to(tl.float16))


def attend(inputs, descending):
    q, k, v = (inputs[name] for name in ("q", "k", "v"))
    length, heads, dim = q.shape
    out = torch.empty_like(q)
    causal_attention[(heads, length // 128)](
        q,
        k,
        v,
        out,
        heads,
        heads // k.shape[1],
        length,
        1.4426950408889634 / dim**0.5,
        descending=descending,
        dim=dim,
        block_m=128,
        block_n=128,
        num_warps=8,
        num_stages=2,
    )
    return out


def before(inputs):
    return attend(inputs, descending=False)


def after(inputs):
    return attend(inputs, descending=True)
