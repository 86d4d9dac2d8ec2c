"""0.75 x + y."""


def reference(inputs):
    return 0.75 * inputs["x"] + inputs["y"]
