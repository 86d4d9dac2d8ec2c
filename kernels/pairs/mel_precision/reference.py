"""log(max(power filters, 1e-10))."""


def reference(inputs):
    return (inputs["power"] @ inputs["filters"]).clamp_min(1e-10).log()
