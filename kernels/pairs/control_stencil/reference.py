"""A quarter of both neighbors in the row and half the pixel, the edges repeated."""

import torch


def reference(inputs):
    x = inputs["x"]
    left = torch.cat([x[:, :1], x[:, :-1]], dim=1)
    right = torch.cat([x[:, 1:], x[:, -1:]], dim=1)
    return 0.25 * left + 0.5 * x + 0.25 * right
