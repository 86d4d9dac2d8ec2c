"""The upper 24 bits of 768-bit numbers after eight multiplications, in words of 16 bits."""

import torch

ITERATIONS, WORDS = 8, 48


def words(numbers):
    numbers = numbers.long()
    halves = torch.stack([numbers & 0xFFFF, numbers >> 16 & 0xFFFF], dim=1)
    return halves.reshape(WORDS, -1)


def reference(inputs):
    x, factor = words(inputs["starts"]), words(inputs["factors"])
    for _ in range(ITERATIONS):
        product = torch.zeros_like(x)
        for i in range(WORDS):
            product[i:] += factor[i] * x[: WORDS - i]
        for i in range(WORDS - 1):
            product[i + 1] += product[i] >> 16
        x = product & 0xFFFF
    return ((x[-1] << 16 | x[-2]) >> 8).double()
