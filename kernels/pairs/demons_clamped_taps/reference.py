"""A binomial filter of 17 taps along the rows; a row continues with its first and last element."""

import math

import torch

RADIUS = 8


def reference(inputs):
    field = inputs["field"]
    rows, columns = field.shape
    left = field[:, :1].expand(rows, RADIUS)
    right = field[:, -1:].expand(rows, RADIUS)
    padded = torch.cat((left, field, right), dim=1)
    out = torch.zeros_like(field)
    for k in range(2 * RADIUS + 1):
        out += math.comb(2 * RADIUS, k) / 4**RADIUS * padded[:, k : k + columns]
    return out
