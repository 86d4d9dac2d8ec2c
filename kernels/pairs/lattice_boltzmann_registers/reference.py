"""f + 0.6 (equilibrium - f) for the 19 velocities of D3Q19."""

VELOCITIES = [
    *[(0, 0, 0), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)],
    *[(1, 1, 0), (-1, -1, 0), (1, -1, 0), (-1, 1, 0), (1, 0, 1), (-1, 0, -1)],
    *[(1, 0, -1), (-1, 0, 1), (0, 1, 1), (0, -1, -1), (0, 1, -1), (0, -1, 1)],
]
WEIGHTS = [1 / 3, *[1 / 18] * 6, *[1 / 36] * 12]


def reference(inputs):
    f = inputs["f"]
    velocities = f.new_tensor(VELOCITIES)
    weights = f.new_tensor(WEIGHTS)[:, None]
    density = f.sum(dim=0)
    flow = velocities.T @ f / density
    along = velocities @ flow
    square = (flow * flow).sum(dim=0)
    equilibrium = weights * density * (1 + 3 * along + 4.5 * along**2 - 1.5 * square)
    return f + 0.6 * (equilibrium - f)
