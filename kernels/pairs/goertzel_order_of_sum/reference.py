"""The squared modulus of each frame's sum with exp(-i angle n); a coefficient is 2 cos(angle)."""

import torch


def reference(inputs):
    signal = inputs["signal"]
    angles = (inputs["coefficients"] / 2).acos()
    n = torch.arange(signal.shape[-1], dtype=signal.dtype, device=signal.device)
    phases = n[:, None] * angles
    return (signal @ phases.cos()) ** 2 + (signal @ phases.sin()) ** 2
