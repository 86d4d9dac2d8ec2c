"""The products of the transposed matrix and r, then of the matrix and p."""

import torch


def reference(inputs):
    a = inputs["a"]
    return torch.cat((a.T @ inputs["r"], a @ inputs["p"]))
