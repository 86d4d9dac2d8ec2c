"""The product of x and the vectors."""


def reference(inputs):
    return inputs["x"] @ inputs["vectors"].T
