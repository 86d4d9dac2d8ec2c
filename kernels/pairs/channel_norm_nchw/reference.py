"""Layer norm over the channels of each pixel."""

from torch.nn.functional import layer_norm


def reference(inputs):
    x = inputs["x"].permute(0, 2, 3, 1)
    result = layer_norm(x, x.shape[-1:], inputs["weight"], inputs["bias"], eps=1e-6)
    return result.permute(0, 3, 1, 2)
