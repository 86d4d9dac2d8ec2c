"""Switched electrostatic energies of atoms with the 1024 atoms from the start of their block."""

import torch

BLOCK = 128
NEIGHBORHOOD = 1024
INNER = 0.25
OUTER = 0.5
SOFTENING = 0.01


def reference(inputs):
    atoms = inputs["atoms"]
    count = len(atoms)
    columns = torch.arange(NEIGHBORHOOD, device=atoms.device)
    energies = []
    for first in range(0, count, BLOCK):
        own = atoms[first : first + BLOCK]
        other = atoms[(first + columns) % count]
        r2 = (own[:, None, :3] - other[None, :, :3]).square().sum(-1)
        between = (OUTER - r2) ** 2 * (OUTER + 2 * r2 - 3 * INNER) / (OUTER - INNER) ** 3
        switch = torch.where(r2 < INNER, 1.0, torch.where(r2 < OUTER, between, 0.0))
        energies.append(own[:, 3] * (other[:, 3] * (r2 + SOFTENING).rsqrt() * switch).sum(1))
    return torch.cat(energies)
