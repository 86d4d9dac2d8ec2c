"""Sines and cosines of coordinates at ten frequencies, in torch."""

import torch


def features(x, frequencies):
    angles = x[:, None, :] * frequencies[:, None]
    return torch.cat((angles.sin(), angles.cos()), dim=-1)


def before(inputs):
    """The frequencies are float64, as NumPy makes them, and so is all that follows."""
    frequencies = 2.0 ** inputs["exponents"]
    return features(inputs["x"], frequencies).float()


def after(inputs):
    frequencies = (2.0 ** inputs["exponents"]).float()
    return features(inputs["x"], frequencies)
