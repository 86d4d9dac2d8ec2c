"""Means of 5 by 5 neighbors by distance and difference; the border is repeated outside."""

import torch
from torch.nn.functional import pad

DISTANCE, DIFFERENCE = -0.125, -8.0


def reference(inputs):
    image = inputs["image"]
    rows, columns = image.shape
    wide = pad(image[None, None], (2, 2, 2, 2), mode="replicate")[0, 0]
    total = torch.zeros_like(image)
    weights = torch.zeros_like(image)
    for y in range(5):
        for x in range(5):
            value = wide[y : y + rows, x : x + columns]
            far = (y - 2) ** 2 + (x - 2) ** 2
            weight = (DISTANCE * far + DIFFERENCE * (value - image) ** 2).exp()
            total += weight * value
            weights += weight
    return total / weights
