"""The parameters after a step of Adam, whose bias correction is in the learning rate."""

RATE, BETA1, BETA2, EPSILON = 0.01, 0.9, 0.999, 1e-6


def reference(inputs):
    gradient = inputs["gradient"]
    first = BETA1 * inputs["first"] + (1 - BETA1) * gradient
    second = BETA2 * inputs["second"] + (1 - BETA2) * gradient.square()
    return inputs["parameter"] - RATE * first / (second.sqrt() + EPSILON)
