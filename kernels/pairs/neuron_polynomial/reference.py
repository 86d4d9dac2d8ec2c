"""The mean over 4096 Euler steps of 0.05 of v' = current + drive - polynomial(v), from v = 0."""

import torch

COEFFICIENTS = [0.01, 0.005, 0.02, -0.01, 0.05, 0.015, 0.1, -0.02, 0.3, 0.05, 1.0, 0.125]


def reference(inputs):
    currents = inputs["currents"]
    first, *others = (torch.full_like(currents, one) for one in COEFFICIENTS)
    voltage, total = torch.zeros_like(currents), torch.zeros_like(currents)
    for drive in inputs["drive"].tolist():
        response = first
        for coefficient in others:
            response = torch.addcmul(coefficient, response, voltage)
        voltage = voltage + 0.05 * (currents + drive - response)
        total += voltage
    return total / len(inputs["drive"])
