"""log of the sum over the components of weight times exp(-scale times the squared distance)."""


def reference(inputs):
    total = 0
    for mean, scale, weight in zip(
        inputs["means"], inputs["scales"], inputs["weights"], strict=True
    ):
        squares = ((inputs["points"] - mean[:, None]) ** 2).sum(dim=0)
        total = total + weight * (-scale * squares).exp()
    return total.log()
