"""T + 0.25 (advection + diffusion - 0.125 T)."""


def reference(inputs):
    temperature = inputs["temperature"]
    return temperature + 0.25 * (inputs["advection"] + inputs["diffusion"] - 0.125 * temperature)
