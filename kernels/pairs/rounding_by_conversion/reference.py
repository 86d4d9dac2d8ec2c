GRIDS = 64


def reference(inputs):
    value = inputs["values"]
    total = value * 0
    for grid in range(GRIDS):
        scaled = value * (1.5 + 0.25 * grid)
        total += (scaled - scaled.round()) ** 2
    return total
