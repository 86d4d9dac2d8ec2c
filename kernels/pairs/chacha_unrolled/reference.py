"""The upper 24 bits of the first word after 640 double rounds of ChaCha."""

import torch

MASK = 0xFFFFFFFF


def rotated(x, bits):
    return ((x << bits) & MASK) | (x >> (32 - bits))


def quarter_rounds(a, b, c, d):
    a = (a + b) & MASK
    d = rotated(d ^ a, 16)
    c = (c + d) & MASK
    b = rotated(b ^ c, 12)
    a = (a + b) & MASK
    d = rotated(d ^ a, 8)
    c = (c + d) & MASK
    b = rotated(b ^ c, 7)
    return a, b, c, d


def reference(inputs):
    seeds = inputs["seeds"].long()
    word = torch.arange(16, device=seeds.device)[:, None]
    state = (seeds * (2 * word + 1) + 0x9E3779B9 * word) & MASK
    a, b, c, d = state.reshape(4, 4, -1)
    for _ in range(640):
        a, b, c, d = quarter_rounds(a, b, c, d)
        b, c, d = b.roll(-1, 0), c.roll(-2, 0), d.roll(-3, 0)
        a, b, c, d = quarter_rounds(a, b, c, d)
        b, c, d = b.roll(1, 0), c.roll(2, 0), d.roll(3, 0)
    return (a[0] >> 8).double()
