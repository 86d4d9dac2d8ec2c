"""The fewest mismatching bases of a read with its window at 32 shifts."""

import torch

SHIFTS, LENGTH = 32, 128


def bases(words):
    parts = [(words >> 2 * base & 3).to(torch.uint8) for base in range(16)]
    return torch.stack(parts, dim=1).reshape(-1, words.shape[1])


def reference(inputs):
    reads, windows = bases(inputs["reads"]), bases(inputs["windows"])
    fewest = torch.full_like(reads[0], LENGTH, dtype=torch.int64)
    for shift in range(SHIFTS):
        mismatches = (reads != windows[shift : shift + LENGTH]).sum(0)
        fewest = torch.minimum(fewest, mismatches)
    return fewest.double()
