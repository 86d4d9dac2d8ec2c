"""The speed of sound by the equation of state of each cell's fluid: 0 is air, 1 is water."""

import torch


def reference(inputs):
    volume = 0.5 + inputs["volumes"]
    energy = 1 + inputs["energies"]
    exponent = 1.4 - 0.0625 * energy
    air = exponent * (exponent - 1) * energy
    room = volume - 0.125
    pressure = 0.25 * energy / room - 1.25 * 0.25
    water = volume**2 * 1.25 * (pressure + 0.25) / room
    return torch.where(inputs["fluids"] == 0, air, water).sqrt()
