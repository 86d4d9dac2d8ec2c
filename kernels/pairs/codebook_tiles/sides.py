"""Squared distance to the nearest code: 16 vectors per program, and 128."""

import torch
import triton
import triton.language as tl


@triton.jit
def nearest(
    x_ptr,
    codebook_ptr,
    norm_ptr,
    out_ptr,
    codes,
    dim: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
):
    rows = tl.program_id(0) * block_m + tl.arange(0, block_m)
    lanes = tl.arange(0, dim)
    x = tl.load(x_ptr + rows[:, None] * dim + lanes[None, :])
    smallest = tl.full((block_m,), 1e30, tl.float32)
    for start in range(0, codes, block_n):
        code = start + tl.arange(0, block_n)
        tile = tl.load(codebook_ptr + code[None, :] * dim + lanes[:, None])
        distance = tl.load(norm_ptr + code)[None, :] - 2.0 * tl.dot(x, tile)
        smallest = tl.minimum(smallest, tl.min(distance, axis=1))
    values = x.to(tl.float32)
    squared = tl.sum(values * values, axis=1)
    tl.store(out_ptr + rows, (squared + smallest).to(tl.float16))


@triton.jit
def squared_norms(codebook_ptr, norm_ptr, dim: tl.constexpr, block: tl.constexpr):
    rows = tl.program_id(0) * block + tl.arange(0, block)
    lanes = tl.arange(0, dim)
    code = tl.load(codebook_ptr + rows[:, None] * dim + lanes[None, :]).to(tl.float32)
    tl.store(norm_ptr + rows, tl.sum(code * code, axis=1))


def quantize(inputs, block_m):
    x, codebook = inputs["x"], inputs["codebook"]
    (vectors, dim), codes = x.shape, codebook.shape[0]
    norms = torch.empty(codes, dtype=torch.float32, device=x.device)
    out = torch.empty(vectors, dtype=torch.float16, device=x.device)
    squared_norms[(codes // 64,)](codebook, norms, dim=dim, block=64, num_warps=4)
    nearest[(vectors // block_m,)](
        x, codebook, norms, out, codes, dim=dim, block_m=block_m, block_n=64, num_warps=4
    )
    return out


def before(inputs):
    return quantize(inputs, block_m=16)


def after(inputs):
    return quantize(inputs, block_m=128)
