"""The softmax of each row."""


def reference(inputs):
    return inputs["x"].softmax(dim=1)
