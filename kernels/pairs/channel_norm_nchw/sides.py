"""Layer norm over the channels of NCHW: a program per pixel, and per 64 neighboring pixels."""

import torch
import triton
import triton.language as tl


@triton.jit
def channel_norm(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    plane,
    epsilon,
    channels: tl.constexpr,
    pixels: tl.constexpr,
):
    pixel = tl.program_id(0) * pixels + tl.arange(0, pixels)
    channel = tl.arange(0, channels)
    base = tl.program_id(1) * channels * plane
    offsets = base + channel[:, None] * plane + pixel[None, :]
    x = tl.load(x_ptr + offsets).to(tl.float32)
    centered = x - tl.sum(x, axis=0)[None, :] / channels
    variance = tl.sum(centered * centered, axis=0) / channels
    result = centered * tl.rsqrt(variance + epsilon)[None, :]
    weight = tl.load(weight_ptr + channel)
    bias = tl.load(bias_ptr + channel)
    result = result * weight[:, None] + bias[:, None]
    tl.store(out_ptr + offsets, result.to(tl.float16))


def norm(inputs, pixels, warps):
    x = inputs["x"]
    images, channels, height, width = x.shape
    plane = height * width
    out = torch.empty_like(x)
    channel_norm[(plane // pixels, images)](
        x,
        inputs["weight"],
        inputs["bias"],
        out,
        plane,
        1e-6,
        channels=channels,
        pixels=pixels,
        num_warps=warps,
    )
    return out


def before(inputs):
    return norm(inputs, pixels=1, warps=2)


def after(inputs):
    return norm(inputs, pixels=64, warps=4)
