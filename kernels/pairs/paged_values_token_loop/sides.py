"""Weighted sums of the values in a paged cache: a token at a time, and 64 tokens at a time."""

import torch
import triton
import triton.language as tl

PAGE = 16


@triton.jit
def token_loop(pool, table, weights, out, tokens, PAGE: tl.constexpr, WIDTH: tl.constexpr):
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    heads = tl.num_programs(1)
    columns = tl.arange(0, WIDTH)
    sums = tl.zeros((WIDTH,), dtype=tl.float32)
    for token in range(tokens):
        page = tl.load(table + sequence * (tokens // PAGE) + token // PAGE)
        row = (page * heads + head) * PAGE + token % PAGE
        weight = tl.load(weights + (sequence * heads + head) * tokens + token)
        sums += weight * tl.load(pool + row * WIDTH + columns).to(tl.float32)
    tl.store(out + (sequence * heads + head) * WIDTH + columns, sums)


@triton.jit
def tile_loop(
    pool,
    table,
    weights,
    out,
    tokens,
    PAGE: tl.constexpr,
    WIDTH: tl.constexpr,
    TOKENS: tl.constexpr,
):
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    heads = tl.num_programs(1)
    columns = tl.arange(0, WIDTH)
    sums = tl.zeros((WIDTH,), dtype=tl.float32)
    for start in range(0, tokens, TOKENS):
        token = start + tl.arange(0, TOKENS)
        page = tl.load(table + sequence * (tokens // PAGE) + token // PAGE)
        row = (page * heads + head) * PAGE + token % PAGE
        weight = tl.load(weights + (sequence * heads + head) * tokens + token)
        values = tl.load(pool + row[:, None] * WIDTH + columns[None, :]).to(tl.float32)
        sums += tl.sum(weight[:, None] * values, axis=0)
    tl.store(out + (sequence * heads + head) * WIDTH + columns, sums)


def before(inputs):
    pool, weights = inputs["pool"], inputs["weights"]
    sequences, heads, tokens = weights.shape
    width = pool.shape[-1]
    out = torch.empty(sequences, heads, width, dtype=torch.float32, device=pool.device)
    token_loop[(sequences, heads)](
        pool, inputs["table"], weights, out, tokens, PAGE=PAGE, WIDTH=width, num_warps=4
    )
    return out


def after(inputs):
    pool, weights = inputs["pool"], inputs["weights"]
    sequences, heads, tokens = weights.shape
    width = pool.shape[-1]
    out = torch.empty(sequences, heads, width, dtype=torch.float32, device=pool.device)
    tile_loop[(sequences, heads)](
        pool,
        inputs["table"],
        weights,
        out,
        tokens,
        PAGE=PAGE,
        WIDTH=width,
        TOKENS=64,
        num_warps=4,
    )
    return out
