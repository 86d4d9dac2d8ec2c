"""The product of x and weight, scaled per output channel."""


def reference(inputs):
    return (inputs["x"] @ inputs["weight"]) * inputs["scale"]
