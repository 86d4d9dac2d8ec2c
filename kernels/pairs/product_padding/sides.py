"""A matrix product whose inner dimension is a multiple of 8: as it is, and padded to 128."""

import torch
from torch.nn.functional import pad


def before(inputs):
    return torch.matmul(inputs["a"], inputs["b"])


def after(inputs):
    a, b = inputs["a"], inputs["b"]
    extra = -a.shape[1] % 128
    return torch.matmul(pad(a, (0, extra)), pad(b, (0, 0, 0, extra)))
