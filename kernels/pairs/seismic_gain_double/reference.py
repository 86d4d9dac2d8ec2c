"""1.0375 times the traces plus 0.2625 times the references."""


def reference(inputs):
    return 1.0375 * inputs["traces"] + 0.2625 * inputs["references"]
