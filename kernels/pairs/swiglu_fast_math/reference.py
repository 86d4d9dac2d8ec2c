"""silu(gate) * up."""

from torch.nn.functional import silu


def reference(inputs):
    return silu(inputs["gate"]) * inputs["up"]
