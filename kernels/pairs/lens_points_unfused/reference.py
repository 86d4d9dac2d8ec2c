"""Sixteen fixed-point iterations that remove radial and tangential distortion."""

import torch

K1, K2, K3, P1, P2 = -0.1, 0.02, -0.001, 0.001, -0.002
ITERATIONS = 16


def reference(inputs):
    seen_x, seen_y = inputs["points"].unbind(-1)
    x, y = seen_x, seen_y
    for _ in range(ITERATIONS):
        r2 = x * x + y * y
        radial = 1 + K1 * r2 + K2 * r2**2 + K3 * r2**3
        shift_x = 2 * P1 * x * y + P2 * (r2 + 2 * x * x)
        shift_y = 2 * P2 * x * y + P1 * (r2 + 2 * y * y)
        x, y = (seen_x - shift_x) / radial, (seen_y - shift_y) / radial
    return torch.stack((x, y), dim=-1)
