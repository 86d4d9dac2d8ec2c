"""A depthwise convolution with a kernel of 3 by 3 and zero padding."""

from torch.nn.functional import pad


def reference(inputs):
    x = inputs["x"]
    height, width = x.shape[-2:]
    padded = pad(x, (1, 1, 1, 1))
    weights = inputs["weights"].view(1, -1, 3, 3, 1, 1)
    return sum(
        weights[:, :, dy, dx] * padded[:, :, dy : dy + height, dx : dx + width]
        for dy in range(3)
        for dx in range(3)
    )
