"""The polynomial at each point modulo 2^31 - 1; the highest power's coefficient comes first."""

import torch

MODULUS = 2**31 - 1


def reference(inputs):
    points = inputs["points"].long()
    value = torch.zeros_like(points)
    for coefficient in inputs["coefficients"].tolist():
        value = value * points + coefficient
        for _ in range(2):  # 2^31 is 1 modulo 2^31 - 1; faster than a remainder
            value = (value & MODULUS) + (value >> 31)
    return (value % MODULUS).double()
