"""Row by row: the energy plus the least of the three costs above."""

import torch


def reference(inputs):
    cost = inputs["above"]
    far = torch.full_like(cost[:1], torch.inf)
    for energy in inputs["energy"]:
        left = torch.cat([far, cost[:-1]])
        right = torch.cat([cost[1:], far])
        cost = energy + torch.minimum(cost, torch.minimum(left, right))
    return cost
