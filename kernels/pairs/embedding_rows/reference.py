"""The rows of the table that the indices name."""


def reference(inputs):
    return inputs["table"][inputs["index"]]
