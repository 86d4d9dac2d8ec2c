"""The norm of Sobel's two derivatives; the image's border is repeated outside of it."""

from torch.nn.functional import pad


def reference(inputs):
    image = inputs["image"]
    wide = pad(image[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
    across = wide[:-2] + 2 * wide[1:-1] + wide[2:]
    down = wide[:, :-2] + 2 * wide[:, 1:-1] + wide[:, 2:]
    return ((across[:, 2:] - across[:, :-2]) ** 2 + (down[2:] - down[:-2]) ** 2).sqrt()
