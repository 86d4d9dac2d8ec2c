"""BT.601 of the studio range, to RGB from 0 to 1; four pixels share a pair of chroma."""

import torch


def reference(inputs):
    y = 1.164384 * (inputs["luma"].double() - 16)
    chroma = inputs["chroma"].double() - 128
    wide = chroma.repeat_interleave(2, dim=1).repeat_interleave(2, dim=2)
    u, v = wide.unbind(dim=-1)
    planes = (y + 1.596027 * v, y - 0.391762 * u - 0.812968 * v, y + 2.017232 * u)
    return (torch.stack(planes, dim=1) / 255).clamp(0, 1)
