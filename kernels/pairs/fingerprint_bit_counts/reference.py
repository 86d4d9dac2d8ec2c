"""Common bits of two fingerprints over the bits that either has."""

import torch


def bits(words):
    places = torch.arange(32, device=words.device)
    return ((words.long()[..., None] >> places) & 1).double()


def reference(inputs):
    both = 0.0
    of_molecule = 0.0
    for word, molecules in enumerate(inputs["fingerprints"]):
        ours = bits(molecules)
        both = both + bits(inputs["queries"][:, word]) @ ours.T
        of_molecule = of_molecule + ours.sum(1)
    of_query = bits(inputs["queries"]).sum((1, 2))
    return both / (of_molecule + of_query[:, None] - both)
