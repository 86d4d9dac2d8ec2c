"""The diffusion coefficient of each pixel, from its relative gradient and Laplacian."""

import torch

SPECKLE = 0.05


def reference(inputs):
    image = inputs["image"]
    north = torch.cat((image[:1], image[:-1])) - image
    south = torch.cat((image[1:], image[-1:])) - image
    west = torch.cat((image[:, :1], image[:, :-1]), dim=1) - image
    east = torch.cat((image[:, 1:], image[:, -1:]), dim=1) - image
    gradient = (north**2 + south**2 + west**2 + east**2) / image**2
    laplacian = (north + south + west + east) / image
    variation = (gradient / 2 - laplacian**2 / 16) / (1 + laplacian / 4) ** 2
    return (1 / (1 + (variation - SPECKLE) / (SPECKLE * (1 + SPECKLE)))).clamp(0, 1)
