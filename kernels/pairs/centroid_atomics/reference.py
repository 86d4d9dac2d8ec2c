"""The sum of the points of each cluster."""


def reference(inputs):
    x = inputs["x"]
    return x.new_zeros(16, x.shape[1]).index_add_(0, inputs["cluster"], x)
