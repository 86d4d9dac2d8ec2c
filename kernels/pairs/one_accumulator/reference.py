TERMS = 64
STEPS = 1024
WIDTH = 0.001953125


def reference(inputs):
    y = 0.875 * inputs["start"]
    for _ in range(STEPS):
        total = y * 0
        for k in range(TERMS, 0, -1):
            total = total * y - 1 / k
        y = y + WIDTH * y * total
    return y
