"""Convolutions by the filters of Malvar, He and Cutler, each at the pixels of its color."""

import torch
from torch.nn.functional import conv2d, pad

GREEN = [[0, 0, -2, 0, 0], [0, 0, 4, 0, 0], [-2, 4, 8, 4, -2], [0, 0, 4, 0, 0], [0, 0, -2, 0, 0]]
ALONG = [[0, 0, 1, 0, 0], [0, -2, 0, -2, 0], [-2, 8, 10, 8, -2], [0, -2, 0, -2, 0], [0, 0, 1, 0, 0]]
OTHER = [[0, 0, -3, 0, 0], [0, 4, 0, 4, 0], [-3, 0, 12, 0, -3], [0, 4, 0, 4, 0], [0, 0, -3, 0, 0]]


def reference(inputs):
    raw = inputs["raw"]
    wide = pad(raw[None, None], (2, 2, 2, 2), mode="reflect")
    filters = torch.tensor([GREEN, ALONG, OTHER], dtype=raw.dtype, device=raw.device)
    filters = torch.cat((filters, filters[1:2].mT))[:, None] / 16
    green, along, other, across = conv2d(wide, filters)[0]
    red = raw.clone()
    red[0::2, 1::2] = along[0::2, 1::2]
    red[1::2, 0::2] = across[1::2, 0::2]
    red[1::2, 1::2] = other[1::2, 1::2]
    blue = raw.clone()
    blue[0::2, 0::2] = other[0::2, 0::2]
    blue[0::2, 1::2] = across[0::2, 1::2]
    blue[1::2, 0::2] = along[1::2, 0::2]
    middle = raw.clone()
    middle[0::2, 0::2] = green[0::2, 0::2]
    middle[1::2, 1::2] = green[1::2, 1::2]
    return torch.stack((red, middle, blue))
