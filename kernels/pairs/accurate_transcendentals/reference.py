WAVES = 16


def reference(inputs):
    t = inputs["points"]
    return sum(t ** (0.25 * n) * (0.375 * n * t).cos() for n in range(1, WAVES + 1))
