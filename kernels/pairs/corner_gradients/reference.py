"""Determinant less 0.04 squared trace of the products of gradients, summed around a pixel."""

INDENT = 16


def reference(inputs):
    image = inputs["image"]
    rows, columns = image.shape[0] - 4, image.shape[1] - 2 * INDENT
    left = INDENT - 1
    middle = slice(left, left + columns + 2)
    rightmost, leftmost = slice(left + 1, left + columns + 3), slice(left - 1, left + columns + 1)
    dx = 0.5 * (image[1:-1, rightmost] - image[1:-1, leftmost])
    dy = 0.5 * (image[2:, middle] - image[:-2, middle])

    def window(values):
        return sum(values[i : i + rows, j : j + columns] for i in range(3) for j in range(3))

    xx, xy, yy = window(dx * dx), window(dx * dy), window(dy * dy)
    return xx * yy - xy**2 - 0.04 * (xx + yy) ** 2
