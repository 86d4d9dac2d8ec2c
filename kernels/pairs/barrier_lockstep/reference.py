"""Column sums of windows whose lengths follow a power law, smoothed over a ring of 32 columns."""

import torch

LONGEST = 64


def reference(inputs):
    sums = torch.nn.functional.pad(inputs["x"].T.cumsum(1), (1, 0)).T
    starts = inputs["starts"].long()
    ends = starts + LONGEST // (1 + inputs["draws"].long())
    out = sums[ends] - sums[starts]
    return 0.5 * out + 0.25 * (out.roll(1, dims=1) + out.roll(-1, dims=1))
