"""The tip of an arm: its links' transforms one after the other, each after its joint's turn."""

import torch


def reference(inputs):
    angles, links = inputs["angles"], inputs["links"].reshape(7, 3, 4)
    tip = torch.zeros(3, angles.shape[1], dtype=angles.dtype, device=angles.device)
    for angle, link in zip(angles.flip(0), links.flip(0), strict=True):
        x, y, z = link[:, :3] @ tip + link[:, 3:]
        sine, cosine = angle.sin(), angle.cos()
        tip = torch.stack([cosine * x - sine * y, sine * x + cosine * y, z])
    return tip
