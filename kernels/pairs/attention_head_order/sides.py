"""Self-attention of an encoder: programs in head-first order, and in tile-first order."""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634  # log2(e)


@triton.jit
def attention(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    heads,
    length,
    scale,
    head_first: tl.constexpr,
    dim: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
):
    pid = tl.program_id(0)
    if head_first:
        head = pid % heads
        tile = pid // heads
    else:
        tiles = length // block_m
        head = pid // tiles
        tile = pid % tiles
    base = head * length * dim
    rows = tile * block_m + tl.arange(0, block_m)
    lanes = tl.arange(0, dim)
    keys = tl.arange(0, block_n)
    q = tl.load(q_ptr + base + rows[:, None] * dim + lanes[None, :])
    k_tile = k_ptr + base + keys[None, :] * dim + lanes[:, None]
    v_tile = v_ptr + base + keys[:, None] * dim + lanes[None, :]
    maximum = tl.full((block_m,), -1e30, tl.float32)
    total = tl.zeros((block_m,), tl.float32)
    result = tl.zeros((block_m, dim), tl.float32)
    for _ in range(0, length, block_n):
        score = tl.dot(q, tl.load(k_tile)) * scale
        larger = tl.maximum(maximum, tl.max(score, axis=1))
        weight = tl.exp2(score - larger[:, None])
        correction = tl.exp2(maximum - larger)
        total = total * correction + tl.sum(weight, axis=1)
        result = result * correction[:, None]
        result = tl.dot(weight.to(tl.float16), tl.load(v_tile), result)
        maximum = larger
        k_tile += block_n * dim
        v_tile += block_n * dim
    result = result / total[:, None]
    tl.store(out_ptr + base + rows[:, None] * dim + lanes[None, :], result.to(tl.float16))


def attend(inputs, head_first):
    q, k, v = (inputs[name] for name in ("q", "k", "v"))
    heads, length, dim = q.shape
    out = torch.empty_like(q)
    attention[(heads * (length // 128),)](
        q,
        k,
        v,
        out,
        heads,
        length,
        LOG2E / dim**0.5,
        head_first=head_first,
        dim=dim,
        block_m=128,
        block_n=64,
        num_warps=8,
        num_stages=3,
    )
    return out


def before(inputs):
    return attend(inputs, head_first=True)


def after(inputs):
    return attend(inputs, head_first=False)
