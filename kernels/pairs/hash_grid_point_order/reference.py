"""Trilinear interpolation of the features at the hashed corners of a point's cell, by level."""

import itertools

import torch

COARSEST = 16
FACTORS = (1, 2654435761, 805459861)
MASK_32 = 0xFFFFFFFF


def reference(inputs):
    points, table = inputs["points"], inputs["table"]
    levels, entries, _ = table.shape
    encoded = []
    for level in range(levels):
        scaled = points * (COARSEST << level)
        cell = scaled.floor()
        part = scaled - cell
        total = torch.zeros_like(table[0, :1]).expand(len(points), 2).clone()
        for corner in itertools.product((0, 1), repeat=3):
            index = torch.zeros(len(points), dtype=torch.int64, device=points.device)
            weight = torch.ones_like(points[:, 0])
            for axis in range(3):
                coordinate = cell[:, axis].long() + corner[axis]
                index ^= coordinate * FACTORS[axis] & MASK_32
                weight = weight * (part[:, axis] if corner[axis] else 1 - part[:, axis])
            total += weight[:, None] * table[level][index % entries]
        encoded.append(total)
    return torch.stack(encoded)
