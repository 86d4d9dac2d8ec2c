"""The logarithm of the sum of exponentials of the first 16 << level scores of each row."""

import torch


def reference(inputs):
    rows = zip(inputs["scores"], inputs["levels"].tolist(), strict=True)
    return torch.stack([torch.logsumexp(row[: 16 << level], dim=0) for row, level in rows])
