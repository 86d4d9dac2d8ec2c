"""x itself."""


def reference(inputs):
    return inputs["x"]
