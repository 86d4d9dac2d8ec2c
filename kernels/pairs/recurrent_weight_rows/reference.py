"""The state after the last step of h = tanh(W h + x)."""

import torch


def reference(inputs):
    x = inputs["x"]
    h = torch.zeros_like(x[:, 0])
    for step in range(x.shape[1]):
        h = torch.tanh(h @ inputs["weights"].T + x[:, step])
    return h
