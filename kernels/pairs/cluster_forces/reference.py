"""Softened Coulomb forces between an atom and the atoms of its cluster's neighbors."""

import torch

SOFTENING, CLUSTER = 0.01, 128


def reference(inputs):
    clusters = inputs["atoms"].reshape(-1, CLUSTER, 4)
    out = []
    for atoms, neighbors in zip(clusters, inputs["neighbors"].long(), strict=True):
        others = clusters[neighbors].reshape(-1, 4)
        apart = atoms[:, None, :3] - others[None, :, :3]
        pull = others[:, 3] * (apart.square().sum(-1) + SOFTENING) ** -1.5
        out.append(atoms[:, 3:] * (pull[..., None] * apart).sum(1))
    return torch.cat(out)
