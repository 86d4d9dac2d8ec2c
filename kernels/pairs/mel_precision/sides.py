"""Log-mel features of power spectra: the product in float32 on the FMA pipe, and in TF32."""

import torch
import triton
import triton.language as tl


@triton.jit
def log_mel(
    power_ptr,
    filters_ptr,
    out_ptr,
    bins,
    precision: tl.constexpr,
    mels: tl.constexpr,
    block_m: tl.constexpr,
    block_k: tl.constexpr,
):
    frames = tl.program_id(0) * block_m + tl.arange(0, block_m)
    mel = tl.arange(0, mels)
    inner = tl.arange(0, block_k)
    power = power_ptr + frames[:, None] * bins + inner[None, :]
    filters = filters_ptr + inner[:, None] * mels + mel[None, :]
    total = tl.zeros((block_m, mels), tl.float32)
    for _ in range(0, bins, block_k):
        total = tl.dot(tl.load(power), tl.load(filters), total, input_precision=precision)
        power += block_k
        filters += block_k * mels
    result = tl.log(tl.maximum(total, 1e-10))
    tl.store(out_ptr + frames[:, None] * mels + mel[None, :], result.to(tl.float16))


def features(inputs, precision):
    power, filters = inputs["power"], inputs["filters"]
    (frames, bins), mels = power.shape, filters.shape[1]
    out = torch.empty((frames, mels), dtype=torch.float16, device=power.device)
    tile = {"mels": mels, "block_m": 64, "block_k": 32}
    log_mel[(triton.cdiv(frames, 64),)](
        power, filters, out, bins, precision=precision, **tile, num_warps=4, num_stages=3
    )
    return out


def before(inputs):
    return features(inputs, precision="ieee")


def after(inputs):
    return features(inputs, precision="tf32")
