"""The sum of the waves, amplitude w and phase x times column plus y times row plus z, in turns."""

import math

import torch

ROWS, COLUMNS = 2048, 4096


def reference(inputs):
    waves = inputs["waves"]
    x = (torch.arange(COLUMNS, dtype=waves.dtype, device=waves.device) - COLUMNS // 2) / 4096
    y = (torch.arange(ROWS, dtype=waves.dtype, device=waves.device) - ROWS // 2) / 4096
    out = torch.zeros(ROWS, COLUMNS, 2, dtype=waves.dtype, device=waves.device)
    for fx, fy, phase, amplitude in waves.tolist():
        angle = 2 * math.pi * (fx * x + fy * y[:, None] + phase)
        out += amplitude * torch.stack((angle.cos(), angle.sin()), dim=-1)
    return out
