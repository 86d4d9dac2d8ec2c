"""Polynomials of 64 terms, one for each reaction, in each cell's state."""

import torch


def reference(inputs):
    x = 2.0 * inputs["states"] - 1.0
    reaction = torch.arange(64, device=x.device)[:, None]
    y = torch.zeros(64, x.numel(), dtype=x.dtype, device=x.device)
    for term in range(64):
        y = y * x + ((reaction * 37 + term * 11 + 5) % 67 - 33).to(x.dtype) / 64.0
    return y
