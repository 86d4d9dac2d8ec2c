"""Rotary position embedding of all heads: in tensor operations, and in one kernel."""

import torch
import triton
import triton.language as tl


def before(inputs):
    x = inputs["x"]
    cosine = torch.cat((inputs["cosine"], inputs["cosine"]), dim=-1)
    sine = torch.cat((inputs["sine"], inputs["sine"]), dim=-1)
    first, second = x.chunk(2, dim=-1)
    rotated = torch.cat((-second, first), dim=-1)
    return torch.addcmul(x * cosine, rotated, sine)


@triton.jit
def rotate(x_ptr, cosine_ptr, sine_ptr, out_ptr, length, half: tl.constexpr, block: tl.constexpr):
    position = tl.program_id(0) * block + tl.arange(0, block)
    lanes = tl.arange(0, half)
    table = position[:, None] * half + lanes[None, :]
    cosine = tl.load(cosine_ptr + table).to(tl.float32)
    sine = tl.load(sine_ptr + table).to(tl.float32)
    rows = tl.program_id(1) * length + position
    offsets = rows[:, None] * (2 * half) + lanes[None, :]
    first = tl.load(x_ptr + offsets).to(tl.float32)
    second = tl.load(x_ptr + offsets + half).to(tl.float32)
    tl.store(out_ptr + offsets, (first * cosine - second * sine).to(tl.float16))
    tl.store(out_ptr + offsets + half, (second * cosine + first * sine).to(tl.float16))


def after(inputs):
    x = inputs["x"]
    heads, length, dim = x.shape
    out = torch.empty_like(x)
    rotate[(length // 32, heads)](
        x, inputs["cosine"], inputs["sine"], out, length, half=dim // 2, block=32, num_warps=4
    )
    return out
