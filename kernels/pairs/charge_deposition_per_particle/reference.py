"""Bilinear shares of the charges of each cell, summed at the grid points."""

import torch

CHARGE = 0.5
PER_CELL = 64


def reference(inputs):
    x, y = inputs["offsets"].unbind(1)
    side = round((x.numel() / PER_CELL) ** 0.5)
    grid = torch.zeros(side + 1, side + 1, dtype=x.dtype, device=x.device)
    for row, weight_y in enumerate((1 - y, y)):
        for column, weight_x in enumerate((1 - x, x)):
            parts = (weight_x * weight_y).view(side, side, PER_CELL).sum(-1)
            grid[row : row + side, column : column + side] += CHARGE * parts
    return grid
