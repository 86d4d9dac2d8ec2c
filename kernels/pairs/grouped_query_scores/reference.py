"""The product of each query with each key of its batch entry."""


def reference(inputs):
    return inputs["queries"] @ inputs["keys"].transpose(1, 2)
