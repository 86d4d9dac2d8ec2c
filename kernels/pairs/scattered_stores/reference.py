"""The bits of each word, the lowest first, as 1 and -1."""

import torch


def reference(inputs):
    words = inputs["words"]
    bits = torch.arange(32, dtype=words.dtype, device=words.device)
    return ((words[:, None] >> bits) & 1).double() * 2 - 1
