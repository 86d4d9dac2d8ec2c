"""A filter with the weights 1, 2, 3, 4, 5, 4, 3, 2, 1."""

import torch


def reference(inputs):
    x = inputs["x"]
    weights = torch.tensor([1, 2, 3, 4, 5, 4, 3, 2, 1], dtype=x.dtype, device=x.device)
    padded = torch.nn.functional.pad(x, (4, 4))
    out = torch.zeros_like(x)
    for j, weight in enumerate(weights):
        out += weight * padded[j : j + len(x)]
    return out
