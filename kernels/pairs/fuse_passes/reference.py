"""A leaky ReLU of 0.75 x + y."""

from torch.nn.functional import leaky_relu


def reference(inputs):
    return leaky_relu(0.75 * inputs["x"] + inputs["y"], negative_slope=0.125)
