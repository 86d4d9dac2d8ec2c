"""Attention with a bias by distance: with two warps per program, and with four."""

import torch
import triton
import triton.language as tl


@triton.jit
def biased_attention(
    q_ptr,
    k_ptr,
    v_ptr,
    slope_ptr,
    out_ptr,
    length,
    scale,
    dim: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
):
    head = tl.program_id(1)
    base = head * length * dim
    slope = tl.load(slope_ptr + head) * 1.4426950408889634
    rows = tl.program_id(0) * block_m + tl.arange(0, block_m)
    lanes = tl.arange(0, dim)
    q = tl.load(q_ptr + base + rows[:, None] * dim + lanes[None, :])
    maximum = tl.full((block_m,), -1e30, tl.float32)
    total = tl.zeros((block_m,), tl.float32)
    result = tl.zeros((block_m, dim), tl.float32)
    for start in range(0, length, block_n):
        keys = start + tl.arange(0, block_n)
        k = tl.load(k_ptr + base + keys[None, :] * dim + lanes[:, None])
        distance = tl.abs(rows[:, None] - keys[None, :]).to(tl.float32)
        score = tl.dot(q, k) * scale - slope * distance
        larger = tl.maximum(maximum, tl.max(score, axis=1))
        weight = tl.exp2(score - larger[:, None])
        correction = tl.exp2(maximum - larger)
        total = total * correction + tl.sum(weight, axis=1)
        v = tl.load(v_ptr + base + keys[:, None] * dim + lanes[None, :])
        result = tl.dot(weight.to(tl.float16), v, result * correction[:, None])
        maximum = larger
    result = result / total[:, None]
    tl.store(out_ptr + base + rows[:, None] * dim + lanes[None, :], result.to(tl.float16))


def attend(inputs, warps):
    q, k, v, slope = (inputs[name] for name in ("q", "k", "v", "slope"))
    heads, length, dim = q.shape
    out = torch.empty_like(q)
    scale = 1.4426950408889634 / dim**0.5
    tile = {"dim": dim, "block_m": 64, "block_n": 64}
    biased_attention[(length // 64, heads)](
        q, k, v, slope, out, length, scale, **tile, num_warps=warps, num_stages=2
    )
    return out


def before(inputs):
    return attend(inputs, warps=2)


def after(inputs):
    return attend(inputs, warps=4)
