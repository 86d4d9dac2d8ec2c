"""The mean of the features of each node's neighbors."""


def reference(inputs):
    return inputs["features"][inputs["neighbors"].long()].mean(dim=1)
