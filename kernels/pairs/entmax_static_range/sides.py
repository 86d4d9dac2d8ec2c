"""1.5-entmax of rows by fifty bisections, whose loop is unrolled at compile time or not."""

import torch
import triton
import triton.language as tl

STEPS = 50


@triton.jit
def entmax_unrolled(x, out, columns, block: tl.constexpr, steps: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, block)
    z = 0.5 * tl.load(x + row * columns + offsets)
    low = tl.max(z, axis=0) - 1.0
    width = 1.0 - 1.0 / tl.sqrt(columns * 1.0)
    for _ in tl.static_range(steps):
        width = 0.5 * width
        middle = low + width
        rest = tl.maximum(z - middle, 0.0)
        low = tl.where(tl.sum(rest * rest, axis=0) >= 1.0, middle, low)
    rest = tl.maximum(z - low, 0.0)
    weights = rest * rest
    tl.store(out + row * columns + offsets, weights / tl.sum(weights, axis=0))


@triton.jit
def entmax(x, out, columns, block: tl.constexpr, steps: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, block)
    z = 0.5 * tl.load(x + row * columns + offsets)
    low = tl.max(z, axis=0) - 1.0
    width = 1.0 - 1.0 / tl.sqrt(columns * 1.0)
    for _ in tl.range(0, steps):
        width = 0.5 * width
        middle = low + width
        rest = tl.maximum(z - middle, 0.0)
        low = tl.where(tl.sum(rest * rest, axis=0) >= 1.0, middle, low)
    rest = tl.maximum(z - low, 0.0)
    weights = rest * rest
    tl.store(out + row * columns + offsets, weights / tl.sum(weights, axis=0))


def run(kernel, inputs):
    x = inputs["x"]
    rows, columns = x.shape
    out = torch.empty_like(x)
    kernel[(rows,)](x, out, columns, block=columns, steps=STEPS, num_warps=4)
    return out


def before(inputs):
    return run(entmax_unrolled, inputs)


def after(inputs):
    return run(entmax, inputs)
