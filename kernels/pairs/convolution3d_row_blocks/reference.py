"""A 27-point convolution whose weights depend on the distance; the boundary is copied."""

import itertools

WEIGHTS = (0.5, 0.0625, 0.03125, 0.015625)


def reference(inputs):
    volume = inputs["volume"]
    nz, ny, nx = volume.shape
    out = volume.clone()
    inner = out[1:-1, 1:-1, 1:-1]
    inner.zero_()
    for dz, dy, dx in itertools.product((-1, 0, 1), repeat=3):
        weight = WEIGHTS[abs(dz) + abs(dy) + abs(dx)]
        inner += weight * volume[1 + dz : nz - 1 + dz, 1 + dy : ny - 1 + dy, 1 + dx : nx - 1 + dx]
    return out
