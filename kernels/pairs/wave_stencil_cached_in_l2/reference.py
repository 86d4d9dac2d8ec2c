"""The weighted sum of a point and its neighbors up to four away along each axis."""

WEIGHTS = [1.6, -0.2, 0.025396825, -0.0017857143]
CENTER = -8.5416667
RADIUS, INDENT = 4, 16


def reference(inputs):
    field = inputs["field"]
    starts = (RADIUS, RADIUS, INDENT)
    sizes = [length - 2 * start for length, start in zip(field.shape, starts, strict=True)]

    def moved(axis, distance):
        part = field
        for dim, (start, size) in enumerate(zip(starts, sizes, strict=True)):
            part = part.narrow(dim, start + (distance if dim == axis else 0), size)
        return part

    total = CENTER * moved(0, 0)
    for distance, weight in enumerate(WEIGHTS, start=1):
        for axis in range(3):
            total += weight * (moved(axis, distance) + moved(axis, -distance))
    return total
