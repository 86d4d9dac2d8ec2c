"""Column sums of windows whose lengths follow a power law, smoothed over the 32 columns in a ring."""

import torch

LONGEST = 64


def reference(inputs):
    sums = torch.nn.functional.pad(inputs["x"].cumsum(0), (0, 0, 1, 0))
    starts = inputs["starts"].long()
    ends = starts + LONGEST // (1 + inputs["draws"].long())
    out = sums[ends] - sums[starts]
    return 0.5 * out + 0.25 * (out.roll(1, dims=1) + out.roll(-1, dims=1))
