"""The transpose."""


def reference(inputs):
    return inputs["x"].T
