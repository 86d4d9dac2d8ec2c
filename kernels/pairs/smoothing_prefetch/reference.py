"""Weights 0.0625, 0.25, 0.375, 0.25, 0.0625; x has four more samples at both ends."""

MARGIN = 4


def reference(inputs):
    x = inputs["x"]
    n = len(x) - 2 * MARGIN

    def moved(by):
        return x[MARGIN + by : MARGIN + by + n]

    near, far = moved(-1) + moved(1), moved(-2) + moved(2)
    return 0.375 * moved(0) + 0.25 * near + 0.0625 * far
