"""1.25 x up to 0.5; above, 0.625 + d / (1 + 3 d) with d = x - 0.5."""

import torch


def reference(inputs):
    x = inputs["image"]
    above = x - 0.5
    return torch.where(x <= 0.5, 1.25 * x, 0.625 + above / (1 + 3 * above))
