"""x + 0.125 v + 0.125^2 a / 2."""


def reference(inputs):
    return inputs["x"] + 0.125 * inputs["v"] + 0.5 * 0.125**2 * inputs["a"]
