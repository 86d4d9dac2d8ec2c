import torch


def reference(inputs):
    return torch.cdist(inputs["a"].mT.contiguous(), inputs["b"].mT.contiguous(), p=1)
