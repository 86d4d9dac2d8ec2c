"""Each pair of a vector's halves rotated by the angle of its position."""

import torch


def reference(inputs):
    first, second = inputs["x"].chunk(2, dim=-1)
    cosine, sine = inputs["cosine"], inputs["sine"]
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)
