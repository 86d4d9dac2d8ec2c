"""Attention of one query per head to a long cache: a program per head, and a split cache."""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634  # log2(e)


@triton.jit
def decode(
    q_ptr,
    k_ptr,
    v_ptr,
    result_ptr,
    statistics_ptr,
    length,
    part,
    scale,
    dim: tl.constexpr,
    block: tl.constexpr,
):
    head = tl.program_id(0)
    piece = tl.program_id(1)
    lanes = tl.arange(0, dim)
    keys = tl.arange(0, block)
    q = tl.load(q_ptr + head * dim + lanes).to(tl.float32) * scale
    base = (head.to(tl.int64) * length + piece * part) * dim
    maximum = tl.full((1,), -1e30, tl.float32)
    total = tl.zeros((1,), tl.float32)
    result = tl.zeros((dim,), tl.float32)
    for start in range(0, part, block):
        offsets = base + (start + keys)[:, None] * dim + lanes[None, :]
        k = tl.load(k_ptr + offsets).to(tl.float32)
        v = tl.load(v_ptr + offsets).to(tl.float32)
        score = tl.sum(k * q[None, :], axis=1)
        larger = tl.maximum(maximum, tl.max(score, axis=0))
        weight = tl.exp2(score - larger)
        correction = tl.exp2(maximum - larger)
        total = total * correction + tl.sum(weight, axis=0)
        result = result * correction + tl.sum(weight[:, None] * v, axis=0)
        maximum = larger
    row = head * tl.num_programs(1) + piece
    tl.store(result_ptr + row * dim + lanes, result / total)
    single = tl.arange(0, 1)
    tl.store(statistics_ptr + row + single, maximum + tl.log2(total))


@triton.jit
def combine(result_ptr, statistics_ptr, out_ptr, dim: tl.constexpr, parts: tl.constexpr):
    head = tl.program_id(0)
    pieces = tl.arange(0, parts)
    lanes = tl.arange(0, dim)
    statistics = tl.load(statistics_ptr + head * parts + pieces)
    weight = tl.exp2(statistics - tl.max(statistics, axis=0))
    result = tl.load(result_ptr + (head * parts + pieces)[:, None] * dim + lanes[None, :])
    combined = tl.sum(weight[:, None] * result, axis=0) / tl.sum(weight, axis=0)
    tl.store(out_ptr + head * dim + lanes, combined.to(tl.float16))


def attend(inputs, parts):
    q, k, v = (inputs[name] for name in ("q", "k", "v"))
    heads, length, dim = k.shape
    result = torch.empty((heads, parts, dim), dtype=torch.float32, device=q.device)
    statistics = torch.empty((heads, parts), dtype=torch.float32, device=q.device)
    out = torch.empty_like(q)
    part = length // parts
    scale = LOG2E / dim**0.5
    decode[(heads, parts)](
        q, k, v, result, statistics, length, part, scale, dim=dim, block=64, num_warps=4
    )
    combine[(heads,)](result, statistics, out, dim=dim, parts=parts, num_warps=4)
    return out


def before(inputs):
    return attend(inputs, parts=1)


def after(inputs):
    return attend(inputs, parts=32)
