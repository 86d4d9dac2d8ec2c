"""y[row] = 0.9 y[row - 1] + x[row] along each column."""

import torch

DECAY = 0.9


def reference(inputs):
    x = inputs["x"]
    out = torch.empty_like(x)
    y = torch.zeros_like(x[0])
    for row, values in enumerate(x):
        y = DECAY * y + values
        out[row] = y
    return out
