"""Channels scaled to mean 0 and deviation 1: statistics in two operations, and in one."""

import torch


def before(inputs):
    x = inputs["x"]
    mean = x.mean(dim=1, keepdim=True)
    scale = x.var(dim=1, keepdim=True, correction=0).rsqrt()
    return torch.addcmul(-mean * scale, x, scale)


def after(inputs):
    x = inputs["x"]
    variance, mean = torch.var_mean(x, dim=1, keepdim=True, correction=0)
    scale = variance.rsqrt()
    return torch.addcmul(-mean * scale, x, scale)
