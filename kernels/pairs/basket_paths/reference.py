"""Asian payoffs of a basket whose assets' logarithms follow mixed uniform shocks."""

import torch

STEPS, MASK = 384, 0xFFFFFFFF


def reference(inputs):
    state, mixing = inputs["seeds"].long(), inputs["mixing"].double()
    logs = torch.zeros(5, state.numel(), dtype=torch.float64, device=state.device)
    mean = torch.zeros_like(logs[0])
    for _ in range(STEPS):
        shocks = []
        for _ in range(5):
            state = (state * 1664525 + 1013904223) & MASK
            shocks.append((state >> 8).double() * 2.0**-23 - 1.0)
        logs = logs + mixing @ torch.stack(shocks)
        mean += logs.exp().sum(0)
    return (mean / (5 * STEPS) - 0.5).clamp(min=0.0)
