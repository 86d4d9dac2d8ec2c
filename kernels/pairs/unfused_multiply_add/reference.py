STEPS = 512
KEEP = 0.984375


def reference(inputs):
    return inputs["samples"] * (1 - KEEP**STEPS) / (1 - KEEP)
