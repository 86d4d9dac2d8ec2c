"""x + 0.3 y."""


def reference(inputs):
    return inputs["x"] + 0.3 * inputs["y"]
