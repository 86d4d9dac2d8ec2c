"""The convolution with a border of one zero."""

from torch.nn.functional import conv2d


def reference(inputs):
    return conv2d(inputs["x"], inputs["weight"], padding=1)
