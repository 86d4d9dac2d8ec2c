"""A polynomial of degree 255, by Horner's rule; the highest coefficient comes first."""

import torch


def reference(inputs):
    x = inputs["x"]
    out = torch.zeros_like(x)
    for coefficient in inputs["coefficients"]:
        out = torch.addcmul(coefficient, out, x)
    return out
