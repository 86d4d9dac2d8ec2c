import torch

ROUNDS = 4096
LOW = 0xFFFFFFFF


def times(x, constant):
    """The product's low 32 bits, without a product past 63 bits."""
    upper, lower = constant >> 16, constant & 0xFFFF
    return (((x * upper & 0xFFFF) << 16) + x * lower) & LOW


def reference(inputs):
    x = inputs["seeds"].to(torch.int64) & LOW
    for _ in range(ROUNDS):
        x = x ^ (x >> 16)
        x = times(x, 0x85EBCA6B)
        x = x ^ (x >> 13)
        x = times(x, 0xC2B2AE35)
    return (x >> 8).double() / 2**24
