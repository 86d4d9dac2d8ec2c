"""The entries of all matrices, an array for each entry."""


def reference(inputs):
    return inputs["matrices"].T.contiguous()
