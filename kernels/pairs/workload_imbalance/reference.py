"""Sums of windows whose lengths follow a power law."""

import torch

LONGEST = 262144


def reference(inputs):
    sums = torch.nn.functional.pad(inputs["x"].cumsum(0), (1, 0))
    starts = inputs["starts"].long()
    ends = starts + LONGEST // (1 + inputs["draws"].long())
    return sums[ends] - sums[starts]
