STEPS = 256
KEEP = 0.5


def reference(inputs):
    return inputs["samples"] * (1 - KEEP**STEPS) / (1 - KEEP)
