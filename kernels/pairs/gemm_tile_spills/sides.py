"""A linear layer with SiLU in tiles of 128 x 256: on four warps, and on eight."""

import torch
import triton
import triton.language as tl


@triton.jit
def linear_silu(
    x_ptr,
    weight_ptr,
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
    result = total / (1.0 + tl.exp(-total))
    tl.store(out_ptr + rows[:, None] * width + columns[None, :], result.to(tl.float16))


def layer(inputs, warps):
    x, weight = inputs["x"], inputs["weight"]
    (rows, depth), width = x.shape, weight.shape[1]
    out = torch.empty((rows, width), dtype=x.dtype, device=x.device)
    tile = {"block_m": 128, "block_n": 256, "block_k": 64}
    linear_silu[(triton.cdiv(rows, 128), triton.cdiv(width, 256))](
        x, weight, out, width, depth, **tile, num_warps=warps, num_stages=3
    )
    return out


def before(inputs):
    return layer(inputs, warps=4)


def after(inputs):
    return layer(inputs, warps=8)
