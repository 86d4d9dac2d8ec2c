"""The vertical field of dipoles, (3 (m r) r / r^2 - m) / r^3, at stations on the ground."""

import torch

AT_ONCE = 4096


def reference(inputs):
    places, moments = inputs["places"], inputs["moments"]
    depth = 1.0 + places[:, 2].abs()
    parts = []
    for stations in inputs["stations"].split(AT_ONCE):
        x = stations[:, :1] - places[:, 0]
        y = stations[:, 1:] - places[:, 1]
        squared = x**2 + y**2 + depth**2
        product = moments[:, 0] * x + moments[:, 1] * y + moments[:, 2] * depth
        field = (3 * product * depth / squared - moments[:, 2]) / squared**1.5
        parts.append(field.sum(1))
    return torch.cat(parts)
