"""1 - exp(-0.01 c), where c is the sum of the clearances that a ray meets in 64 steps."""

import torch

ROWS, COLUMNS, STEPS, DX, DY, CELLS = 1024, 2048, 64, 1397, 1811, 1024


def reference(inputs):
    clearances = inputs["clearances"].long().flatten()
    device = clearances.device
    x = (torch.arange(COLUMNS, device=device) * 256).repeat(ROWS, 1)
    y = (torch.arange(ROWS, device=device) * 256)[:, None].repeat(1, COLUMNS)
    clear = torch.zeros_like(x)
    for _ in range(STEPS):
        clearance = clearances[y // 2048 % CELLS * CELLS + x // 2048 % CELLS]
        clear += clearance
        x += DX * clearance
        y += DY * clearance
    return 1.0 - (-0.01 * clear.double()).exp()
