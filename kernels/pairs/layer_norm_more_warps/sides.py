"""Layer norm of a sum: a row on four warps, and on sixteen."""

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm(x_ptr, residual_ptr, out_ptr, epsilon, columns: tl.constexpr):
    offsets = tl.program_id(0) * columns + tl.arange(0, columns)
    x = tl.load(x_ptr + offsets) + tl.load(residual_ptr + offsets)
    centered = x - tl.sum(x, axis=0) / columns
    variance = tl.sum(centered * centered, axis=0) / columns
    tl.store(out_ptr + offsets, centered * tl.rsqrt(variance + epsilon))


def norm(inputs, warps):
    x = inputs["x"]
    rows, columns = x.shape
    out = torch.empty_like(x)
    layer_norm[(rows,)](x, inputs["residual"], out, 1e-5, columns=columns, num_warps=warps)
    return out


def before(inputs):
    return norm(inputs, warps=4)


def after(inputs):
    return norm(inputs, warps=16)
