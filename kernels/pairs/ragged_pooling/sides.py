"""Mean of the tokens of packed documents: a program per document, and per 128 of its tokens.

A document has max(draw, 0) + 1 tokens; the documents lie one behind the other.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def pool(
    tokens_ptr,
    draw_ptr,
    out_ptr,
    longest,
    documents: tl.constexpr,
    dim: tl.constexpr,
    block: tl.constexpr,
):
    document = tl.program_id(0)
    piece = tl.program_id(1)
    index = tl.arange(0, documents)
    lengths = tl.maximum(tl.load(draw_ptr + index), 0) + 1
    start = tl.sum(tl.where(index < document, lengths, 0), axis=0)
    length = tl.sum(tl.where(index == document, lengths, 0), axis=0)
    first = piece * longest
    last = tl.minimum(first + longest, length)
    lanes = tl.arange(0, dim)
    total = tl.zeros((block, dim), tl.float32)
    for token in range(first, last, block):
        rows = token + tl.arange(0, block)
        offsets = (start + rows)[:, None] * dim + lanes[None, :]
        x = tl.load(tokens_ptr + offsets, mask=rows[:, None] < last, other=0.0)
        total += x.to(tl.float32)
    if first < length:
        out = out_ptr + (document * tl.num_programs(1) + piece) * dim
        tl.store(out + lanes, tl.sum(total, axis=0) / length)


@triton.jit
def sum_pieces(partial_ptr, draw_ptr, out_ptr, pieces, longest, dim: tl.constexpr):
    document = tl.program_id(0)
    length = tl.maximum(tl.load(draw_ptr + document), 0) + 1
    lanes = tl.arange(0, dim)
    total = tl.zeros((dim,), tl.float32)
    for piece in range(tl.cdiv(length, longest)):
        total += tl.load(partial_ptr + (document * pieces + piece) * dim + lanes)
    tl.store(out_ptr + document * dim + lanes, total)


def before(inputs):
    tokens, draw = inputs["tokens"], inputs["draw"]
    documents, dim = draw.shape[0], tokens.shape[1]
    out = torch.empty((documents, dim), dtype=torch.float32, device=tokens.device)
    sizes = {"documents": documents, "dim": dim, "block": 8}
    pool[(documents, 1)](tokens, draw, out, 8192, **sizes, num_warps=4)
    return out


def after(inputs):
    tokens, draw = inputs["tokens"], inputs["draw"]
    documents, dim = draw.shape[0], tokens.shape[1]
    pieces, longest = 48, 128
    partial = torch.empty((documents, pieces, dim), dtype=torch.float32, device=tokens.device)
    out = torch.empty((documents, dim), dtype=torch.float32, device=tokens.device)
    sizes = {"documents": documents, "dim": dim, "block": 8}
    pool[(documents, pieces)](tokens, draw, partial, longest, **sizes, num_warps=4)
    sum_pieces[(documents,)](partial, draw, out, pieces, longest, dim=dim, num_warps=4)
    return out
