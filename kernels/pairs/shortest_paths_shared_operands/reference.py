"""The minimum of each distance and all sums of two distances by way of one node."""

import torch


def reference(inputs):
    distances = inputs["distances"]
    out = distances.clone()
    for k in range(len(distances)):
        torch.minimum(out, distances[:, k, None] + distances[None, k], out=out)
    return out
