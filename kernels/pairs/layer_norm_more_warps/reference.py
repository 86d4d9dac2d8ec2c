"""Layer norm of x + residual along each row."""

from torch.nn.functional import layer_norm


def reference(inputs):
    x = inputs["x"] + inputs["residual"]
    return layer_norm(x, x.shape[-1:], eps=1e-5)
