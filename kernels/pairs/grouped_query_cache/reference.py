"""Softmax attention of the queries of each KV head."""


def reference(inputs):
    q, k, v = (inputs[name] for name in ("q", "k", "v"))
    score = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
    return score.softmax(dim=-1) @ v
