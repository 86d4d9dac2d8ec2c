"""Pixel shuffle by two, plus a bias per channel."""

from torch.nn.functional import pixel_shuffle


def reference(inputs):
    return pixel_shuffle(inputs["x"], 2) + inputs["bias"][:, None, None]
