"""A focal loss of logits and signed label weights: six eager operations, and one kernel."""

import torch
import triton
import triton.language as tl


def before(inputs):
    margin = -(inputs["logits"] * inputs["signs"])
    wrong = torch.sigmoid(margin)
    loss = torch.nn.functional.softplus(margin)
    return wrong.square() * loss


@triton.jit
def focal_loss(logits, signs, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    margin = -tl.load(logits + at, mask=inside) * tl.load(signs + at, mask=inside)
    small = tl.exp(-tl.abs(margin))
    wrong = tl.where(margin > 0, 1.0, small) / (1.0 + small)
    loss = tl.maximum(margin, 0.0) + tl.log(1.0 + small)
    tl.store(out + at, wrong * wrong * loss, mask=inside)


def after(inputs):
    logits = inputs["logits"]
    out = torch.empty_like(logits)
    n = logits.numel()
    focal_loss[(triton.cdiv(n, 1024),)](logits, inputs["signs"], out, n, BLOCK=1024, num_warps=4)
    return out
