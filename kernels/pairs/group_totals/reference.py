"""The sum of the quantities of each group."""

import torch


def reference(inputs):
    totals = torch.zeros(32, dtype=torch.float64, device=inputs["groups"].device)
    return totals.index_add(0, inputs["groups"].long(), inputs["quantities"].double())
