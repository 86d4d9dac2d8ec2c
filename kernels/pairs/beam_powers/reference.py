"""Squared magnitudes of weighed sums over the antennas."""


def reference(inputs):
    v, w = inputs["voltages"], inputs["weights"]
    real = w[..., 0].T @ v[..., 0] - w[..., 1].T @ v[..., 1]
    imaginary = w[..., 0].T @ v[..., 1] + w[..., 1].T @ v[..., 0]
    return real.square() + imaginary.square()
