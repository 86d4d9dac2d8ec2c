"""Cross sections of eight nuclides, interpolated on the grid and summed by density."""

import torch

SCALE = 65536.0


def reference(inputs):
    grid, table = inputs["grid"], inputs["table"]
    energies = inputs["energies"] * SCALE
    low = (torch.searchsorted(grid, energies, right=True) - 1).clamp(0, len(grid) - 2)
    part = (energies - grid[low]) / (grid[low + 1] - grid[low])
    of_material = torch.einsum("pnr,n->pr", table, inputs["densities"])
    below, above = of_material[low], of_material[low + 1]
    return below + part[:, None] * (above - below)
