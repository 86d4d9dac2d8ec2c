"""The mean of Magnus's formula, in hPa, over the points of each latitude."""

import torch


def reference(inputs):
    celsius = 15 + 10 * inputs["temperatures"]
    pressure = 6.1078 * (17.27 * celsius / (celsius + 237.3)).exp()
    means = []
    first, points = 0, 20
    while first < len(pressure):
        means.append(pressure[first : first + points].mean())
        first, points = first + points, points + 4
    return torch.stack(means)
