"""A matrix product with scaled channels: in 144 large tiles, and in tiles a quarter as large."""

import torch
import triton
import triton.language as tl


@triton.jit
def scaled_product(
    x_ptr,
    weight_ptr,
    scale_ptr,
    out_ptr,
    width,
    depth,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    block_k: tl.constexpr,
):
    rows = tl.program_id(0) * block_m + tl.arange(0, block_m)
    columns = tl.program_id(1) * block_n + tl.arange(0, block_n)
    inner = tl.arange(0, block_k)
    x = x_ptr + rows[:, None] * depth + inner[None, :]
    weight = weight_ptr + inner[:, None] * width + columns[None, :]
    total = tl.zeros((block_m, block_n), tl.float32)
    for _ in range(0, depth, block_k):
        total = tl.dot(tl.load(x), tl.load(weight), total)
        x += block_k
        weight += block_k * width
    total *= tl.load(scale_ptr + columns)[None, :]
    tl.store(out_ptr + rows[:, None] * width + columns[None, :], total.to(tl.float16))


def product(inputs, block_m, block_n, warps, stages):
    x, weight, scale = inputs["x"], inputs["weight"], inputs["scale"]
    (rows, depth), width = x.shape, weight.shape[1]
    out = torch.empty((rows, width), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(rows, block_m), triton.cdiv(width, block_n))
    tile = {"block_m": block_m, "block_n": block_n, "block_k": 64}
    scaled_product[grid](
        x, weight, scale, out, width, depth, **tile, num_warps=warps, num_stages=stages
    )
    return out


def before(inputs):
    return product(inputs, block_m=128, block_n=256, warps=8, stages=4)


def after(inputs):
    return product(inputs, block_m=64, block_n=128, warps=4, stages=3)
