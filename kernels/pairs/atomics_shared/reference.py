"""The sum of the four lowest bits of the values in each of 16 bins."""

import torch


def reference(inputs):
    values = inputs["values"]
    bins = (values - 49152).clamp(min=0) // 1024
    out = torch.zeros(16, dtype=torch.int64, device=values.device)
    for bin_ in range(16):
        out[bin_] = (values % 16)[bins == bin_].sum()
    return out.double()
