"""Decoding with grouped queries: a program per query head, and per KV head and part of a cache."""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634  # log2(e)


@triton.jit
def single_head(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    group,
    length,
    scale,
    dim: tl.constexpr,
    block: tl.constexpr,
):
    head = tl.program_id(0)
    lanes = tl.arange(0, dim)
    keys = tl.arange(0, block)
    q = tl.load(q_ptr + head * dim + lanes).to(tl.float32) * scale
    base = head // group * length * dim
    maximum = tl.full((1,), -1e30, tl.float32)
    total = tl.zeros((1,), tl.float32)
    result = tl.zeros((dim,), tl.float32)
    for start in range(0, length, block):
        offsets = base + (start + keys)[:, None] * dim + lanes[None, :]
        k = tl.load(k_ptr + offsets).to(tl.float32)
        score = tl.sum(k * q[None, :], axis=1)
        larger = tl.maximum(maximum, tl.max(score, axis=0))
        weight = tl.exp2(score - larger)
        correction = tl.exp2(maximum - larger)
        v = tl.load(v_ptr + offsets).to(tl.float32)
        total = total * correction + tl.sum(weight, axis=0)
        result = result * correction + tl.sum(weight[:, None] * v, axis=0)
        maximum = larger
    tl.store(out_ptr + head * dim + lanes, (result / total).to(tl.float16))


@triton.jit
def head_group(
    q_ptr,
    k_ptr,
    v_ptr,
    result_ptr,
    statistics_ptr,
    length,
    part,
    scale,
    group: tl.constexpr,
    dim: tl.constexpr,
    block: tl.constexpr,
):
    head = tl.program_id(0)
    piece = tl.program_id(1)
    queries = tl.arange(0, 16)  # the smallest tile of tl.dot
    lanes = tl.arange(0, dim)
    keys = tl.arange(0, block)
    valid = queries < group
    q_offsets = (head * group + queries)[:, None] * dim + lanes[None, :]
    q = tl.load(q_ptr + q_offsets, mask=valid[:, None], other=0.0)
    base = (head * length + piece * part) * dim
    maximum = tl.full((16,), -1e30, tl.float32)
    total = tl.zeros((16,), tl.float32)
    result = tl.zeros((16, dim), tl.float32)
    for start in range(0, part, block):
        rows = base + (start + keys) * dim
        score = tl.dot(q, tl.load(k_ptr + rows[None, :] + lanes[:, None])) * scale
        larger = tl.maximum(maximum, tl.max(score, axis=1))
        weight = tl.exp2(score - larger[:, None])
        correction = tl.exp2(maximum - larger)
        total = total * correction + tl.sum(weight, axis=1)
        v = tl.load(v_ptr + rows[:, None] + lanes[None, :])
        result = tl.dot(weight.to(tl.float16), v, result * correction[:, None])
        maximum = larger
    row = (head * group + queries) * tl.num_programs(1) + piece
    target = result_ptr + row[:, None] * dim + lanes[None, :]
    tl.store(target, result / total[:, None], mask=valid[:, None])
    tl.store(statistics_ptr + row, maximum + tl.log2(total), mask=valid)


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


def before(inputs):
    q, k, v = (inputs[name] for name in ("q", "k", "v"))
    heads, group, dim = q.shape
    out = torch.empty_like(q)
    single_head[(heads * group,)](
        q, k, v, out, group, k.shape[1], LOG2E / dim**0.5, dim=dim, block=64, num_warps=4
    )
    return out


def after(inputs):
    q, k, v = (inputs[name] for name in ("q", "k", "v"))
    heads, group, dim = q.shape
    length, parts = k.shape[1], 8
    result = torch.empty((heads, group, parts, dim), dtype=torch.float32, device=q.device)
    statistics = torch.empty((heads, group, parts), dtype=torch.float32, device=q.device)
    out = torch.empty_like(q)
    head_group[(heads, parts)](
        q,
        k,
        v,
        result,
        statistics,
        length,
        length // parts,
        LOG2E / dim**0.5,
        group=group,
        dim=dim,
        block=64,
        num_warps=4,
        num_stages=3,
    )
    combine[(heads * group,)](result, statistics, out, dim=dim, parts=parts, num_warps=4)
    return out
