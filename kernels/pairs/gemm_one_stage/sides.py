"""A projection plus its residual: the loop over tiles without a pipeline, and with four stages."""

import torch
import triton
import triton.language as tl


@triton.jit
def projection(
    x_ptr,
    weight_ptr,
    residual_ptr,
    out_ptr,
    width,
    depth,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    block_k: tl.constexpr,
    stages: tl.constexpr,
):
    rows = tl.program_id(1) * block_m + tl.arange(0, block_m)
    columns = tl.program_id(0) * block_n + tl.arange(0, block_n)
    inner = tl.arange(0, block_k)
    x = x_ptr + rows[:, None] * depth + inner[None, :]
    weight = weight_ptr + columns[None, :] * depth + inner[:, None]
    total = tl.zeros((block_m, block_n), tl.float32)
    for _ in tl.range(0, depth, block_k, num_stages=stages):
        total = tl.dot(tl.load(x), tl.load(weight), total)
        x += block_k
        weight += block_k
    target = rows[:, None] * width + columns[None, :]
    total += tl.load(residual_ptr + target).to(tl.float32)
    tl.store(out_ptr + target, total.to(tl.float16))


def project(inputs, stages):
    x, weight, residual = inputs["x"], inputs["weight"], inputs["residual"]
    (rows, depth), width = x.shape, weight.shape[0]
    out = torch.empty_like(residual)
    grid = (triton.cdiv(width, 128), triton.cdiv(rows, 128))
    tile = {"block_m": 128, "block_n": 128, "block_k": 64, "stages": stages}
    projection[grid](x, weight, residual, out, width, depth, **tile, num_warps=8)
    return out


def before(inputs):
    return project(inputs, stages=1)


def after(inputs):
    return project(inputs, stages=4)
