"""Each value to the power of 1804289383, 128 times, modulo 2147483629."""

import torch

MODULUS, EXPONENT, ROUNDS = 2147483629, 1804289383, 128


def reference(inputs):
    x = inputs["values"].long()
    for _ in range(ROUNDS):
        result = torch.ones_like(x)
        for bit in f"{EXPONENT:b}":
            result = result * result % MODULUS
            if bit == "1":
                result = result * x % MODULUS
        x = result
    return x.double()
