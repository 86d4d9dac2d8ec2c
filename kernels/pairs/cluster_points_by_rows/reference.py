"""The least squared distance of each point to a center."""

import torch


def reference(inputs):
    least = None
    for center in inputs["centers"]:
        squares = ((inputs["points"] - center) ** 2).sum(dim=1)
        least = squares if least is None else torch.minimum(least, squares)
    return least
