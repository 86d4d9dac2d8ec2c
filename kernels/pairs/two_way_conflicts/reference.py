"""The values under a sliding window of weights, times the gain of the window's first sample."""

import torch


def reference(inputs):
    values, gains = inputs["x"].unbind(dim=1)
    weights = inputs["weights"]
    n = len(values) - len(weights) + 1
    filtered = torch.zeros_like(values[:n])
    for k, weight in enumerate(weights):
        filtered += weight * values[k : k + n]
    return filtered * gains[:n]
