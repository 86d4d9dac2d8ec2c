"""Softmax attention whose scores lose slope * |i - j|."""

import torch


def reference(inputs):
    q, k, v = (inputs[name] for name in ("q", "k", "v"))
    position = torch.arange(q.shape[1], device=q.device)
    distance = (position[:, None] - position[None, :]).abs()
    out = torch.empty_like(q)
    for head, slope in enumerate(inputs["slope"]):
        score = q[head] @ k[head].T / q.shape[-1] ** 0.5 - slope * distance
        out[head] = score.softmax(dim=-1) @ v[head]
    return out
