"""The gradient of a bias, sums over rows: atomics for each row, and for each 128 rows."""

import torch
import triton
import triton.language as tl

ROWS = 128
COLUMNS = 256


@triton.jit
def add_row(gradient, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    values = tl.load(gradient + row * columns + at)
    tl.atomic_add(out + at, values, sem="relaxed")


def before(inputs):
    gradient = inputs["gradient"]
    rows, columns = gradient.shape
    out = torch.zeros(columns, dtype=gradient.dtype, device=gradient.device)
    add_row[(rows,)](gradient, out, columns, BLOCK=columns, num_warps=8)
    return out


@triton.jit
def add_rows(gradient, out, columns, ROWS: tl.constexpr, STEP: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros((STEP, BLOCK), dtype=tl.float32)
    for start in range(0, ROWS, STEP):
        rows = first + start + tl.arange(0, STEP)
        sums += tl.load(gradient + rows[:, None] * columns + at[None, :])
    tl.atomic_add(out + at, tl.sum(sums, axis=0), sem="relaxed")


def after(inputs):
    gradient = inputs["gradient"]
    rows, columns = gradient.shape
    out = torch.zeros(columns, dtype=gradient.dtype, device=gradient.device)
    grid = (rows // ROWS, columns // COLUMNS)
    add_rows[grid](gradient, out, columns, ROWS=ROWS, STEP=16, BLOCK=COLUMNS, num_warps=8)
    return out
