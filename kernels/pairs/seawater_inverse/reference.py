"""Roots of the scaled density polynomial, by Newton's method."""

import torch


def reference(inputs):
    wanted, salinity = inputs["densities"], inputs["salinities"]
    high = [0.001, -0.004, 0.01, -0.02, 0.03, -0.05, 0.2]
    coefficients = [*high, 0.8 + 0.1 * salinity, 0.05 * salinity.square() - wanted]
    x = torch.full_like(wanted, 0.5)
    for _ in range(12):
        value, slope = torch.zeros_like(x), torch.zeros_like(x)
        for coefficient in coefficients:
            slope = slope * x + value
            value = value * x + coefficient
        x = x - value / slope
    return x
