"""The squared distance of each row of a and each row of b."""

import torch


def reference(inputs):
    direct = "donot_use_mm_for_euclid_dist"
    return torch.cdist(inputs["a"], inputs["b"], compute_mode=direct) ** 2
