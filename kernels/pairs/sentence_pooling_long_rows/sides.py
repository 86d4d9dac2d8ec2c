"""Weighted means of token states: a program for all tokens, and 32 programs with partial sums."""

import torch
import triton
import triton.language as tl

PARTS = 32


@triton.jit
def pool(
    states, weights, out, total, tokens, features, span, TOKENS: tl.constexpr, BLOCK: tl.constexpr
):
    document = tl.program_id(0)
    part = tl.program_id(2)
    parts = tl.num_programs(2)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    weight = 0.0
    for start in range(part * span, part * span + span, TOKENS):
        rows = document * tokens + start + tl.arange(0, TOKENS)
        w = tl.load(weights + rows)
        x = tl.load(states + rows[:, None] * features + columns[None, :]).to(tl.float32)
        sums += tl.sum(w[:, None] * x, axis=0)
        weight += tl.sum(w, axis=0)
    place = document * parts + part
    if parts == 1:
        tl.store(out + place * features + columns, sums / weight)
    else:
        tl.store(out + place * features + columns, sums)
        tl.store(total + place, weight)


@triton.jit
def combine(partial, total, out, features, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    document = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    places = document * PARTS + tl.arange(0, PARTS)
    x = tl.load(partial + places[:, None] * features + columns[None, :])
    weight = tl.sum(tl.load(total + places), axis=0)
    tl.store(out + document * features + columns, tl.sum(x, axis=0) / weight)


def before(inputs):
    states, weights = inputs["states"], inputs["weights"]
    documents, tokens, features = states.shape
    out = torch.empty(documents, features, dtype=torch.float32, device=states.device)
    grid = (documents, features // 128, 1)
    pool[grid](
        states, weights, out, out, tokens, features, tokens, TOKENS=32, BLOCK=128, num_warps=4
    )
    return out


def after(inputs):
    states, weights = inputs["states"], inputs["weights"]
    documents, tokens, features = states.shape
    out = torch.empty(documents, features, dtype=torch.float32, device=states.device)
    partial = torch.empty(documents, PARTS, features, dtype=torch.float32, device=states.device)
    total = torch.empty(documents, PARTS, dtype=torch.float32, device=states.device)
    grid = (documents, features // 128, PARTS)
    span = tokens // PARTS
    pool[grid](
        states, weights, partial, total, tokens, features, span, TOKENS=32, BLOCK=128, num_warps=4
    )
    combine[(documents, features // 128)](
        partial, total, out, features, PARTS=PARTS, BLOCK=128, num_warps=4
    )
    return out
