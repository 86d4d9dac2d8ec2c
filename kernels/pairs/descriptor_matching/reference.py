"""The largest dot product of each query with a known descriptor; bytes are below 128."""

import torch


def reference(inputs):
    known = inputs["known"].double().T
    parts = [part.double() @ known for part in inputs["queries"].split(4096)]
    return torch.cat([part.amax(1) for part in parts])
