"""The median of each pixel's 3 by 3 neighborhood; the image's border is repeated outside of it."""

import torch
from torch.nn.functional import pad


def reference(inputs):
    image = inputs["image"]
    rows, columns = image.shape
    wide = pad(image[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
    shifted = [wide[y : y + rows, x : x + columns] for y in range(3) for x in range(3)]
    return torch.stack(shifted, dim=-1).median(dim=-1).values
