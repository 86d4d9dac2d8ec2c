"""The sum of charge over distance at each point of the lattice."""

import torch

SIDE, HEIGHT = 512, -0.25


def reference(inputs):
    atoms = inputs["atoms"]
    lattice = torch.arange(SIDE, dtype=atoms.dtype, device=atoms.device) / SIDE
    out = torch.zeros(SIDE, SIDE, dtype=atoms.dtype, device=atoms.device)
    for x, y, z, charge in atoms.tolist():
        squares = (lattice - x) ** 2 + ((lattice - y) ** 2)[:, None] + (HEIGHT - z) ** 2
        out += charge * squares.rsqrt()
    return out
