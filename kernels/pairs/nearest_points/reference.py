"""The squares of the 16 smallest distances of each point to the known ones, in order."""

import torch


def reference(inputs):
    known = inputs["known"][:, :3]
    out = []
    for points in inputs["points"].split(4096):
        distances = (points[:, None] - known).square().sum(-1)
        out.append(distances.topk(16, dim=1, largest=False, sorted=True).values)
    return torch.cat(out).T
