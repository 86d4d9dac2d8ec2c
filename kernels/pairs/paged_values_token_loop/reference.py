"""The weighted sum of a sequence's values, its pages being those of the table."""

import torch


def reference(inputs):
    weights = inputs["weights"]
    sums = []
    for pages, of_head in zip(inputs["table"].long(), weights, strict=True):
        values = inputs["pool"][pages].transpose(0, 1)  # head, page, token, width
        values = values.reshape(values.shape[0], -1, values.shape[-1])
        sums.append(torch.einsum("ht,htw->hw", of_head, values))
    return torch.stack(sums)
