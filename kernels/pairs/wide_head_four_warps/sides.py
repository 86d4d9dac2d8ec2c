"""Attention with heads of 256 elements in Triton; the sides differ in the warps of a program."""

import torch
import triton
import triton.language as tl


@triton.jit
def attention(
    q,
    k,
    v,
    out,
    length,
    scale,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    width: tl.constexpr,
):
    head = tl.program_id(1)
    start = head * length * width
    rows = tl.program_id(0) * block_m + tl.arange(0, block_m)
    columns = tl.arange(0, block_n)
    elements = tl.arange(0, width)
    of_rows = start + rows[:, None] * width + elements[None, :]
    queries = tl.load(q + of_rows)
    peak = tl.full((block_m,), -1.0e30, tl.float32)
    total = tl.zeros((block_m,), tl.float32)
    sums = tl.zeros((block_m, width), tl.float32)
    for first in range(0, length, block_n):
        of_columns = start + (first + columns)[:, None] * width + elements[None, :]
        keys = tl.load(k + of_columns)
        scores = tl.dot(queries, tl.trans(keys)) * scale
        higher = tl.maximum(peak, tl.max(scores, 1))
        shrink = tl.exp2(peak - higher)
        weights = tl.exp2(scores - higher[:, None])
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + of_columns)
        sums = sums * shrink[:, None]
        sums = tl.dot(weights.to(tl.float16), values, sums)
        peak = higher
    tl.store(out + of_rows, (sums / total[:, None]).to(tl.float16))


BLOCK_M = 128
BLOCK_N = 32
LOG2_E = 1.4426950408889634


def run(inputs, num_warps):
    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    heads, length, head = q.shape
    out = torch.empty_like(q)
    attention[(length // BLOCK_M, heads)](
        q,
        k,
        v,
        out,
        length,
        LOG2_E / head**0.5,
        block_m=BLOCK_M,
        block_n=BLOCK_N,
        width=head,
        num_warps=num_warps,
        num_stages=2,
    )
    return out


def before(inputs):
    return run(inputs, num_warps=4)


def after(inputs):
    return run(inputs, num_warps=8)
