"""Sums over 24 blocks of neighbors, and for hubs over 96 relaxed blocks more."""

import torch

LENGTH, ROUNDS, VALUES, SCALE = 24, 4, 96, 2.0**-17


def reference(inputs):
    pool, block = inputs["pool"].long(), inputs["firsts"].long()
    out = torch.zeros(block.shape, dtype=torch.float64, device=pool.device)
    for _ in range(LENGTH):
        entries = pool[block]
        out += entries[:, :31].sum(1) * SCALE
        block = entries[:, 31]
    hubs = (inputs["flags"] == 0).nonzero().squeeze(1)
    following = torch.arange(VALUES, device=pool.device)
    values = pool[(block[hubs, None] + following) % len(pool)].double() * SCALE
    for _ in range(ROUNDS):
        values = values + 0.25 * (values.mean(1, keepdim=True) - values) * values
    out[hubs] += values.sum((1, 2))
    return out
