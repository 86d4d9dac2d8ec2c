"""Images prepared on the GPU: resized, cropped, normalized, and reduced to features.

python targets/apps/images.py --steps 30
"""

from __future__ import annotations

import itertools

import torch
from loop import Program, nothing, option_parser, run
from torch import nn
from torch.nn import functional

options = option_parser(__doc__)
options.add_argument("--memory", choices=("returned", "kept"), default="returned", help="each step")
options.add_argument("--batch", type=int, default=32)
options.add_argument("--size", type=int, default=512, help="of an image, in pixels")
options.add_argument("--target", type=int, default=384, help="its size once it is prepared")

MEANS, DEVIATIONS = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of the colors of photographs: those of ImageNet, usual in image models."""


def build(asked):
    if asked.toy:
        asked.batch, asked.size, asked.target = 2, 16, 8
    torch.manual_seed(asked.seed)
    on_gpu = asked.device == "cuda"
    shape = (asked.batch, 3, asked.size, asked.size)
    files = [torch.randint(256, shape, dtype=torch.uint8) for _ in range(2)]
    files = itertools.cycle([file.pin_memory() if on_gpu else file for file in files])
    means, deviations = (
        torch.tensor(values, device=asked.device).view(1, 3, 1, 1) for values in (MEANS, DEVIATIONS)
    )
    features = nn.Conv2d(3, 32, 7, stride=4).to(asked.device).requires_grad_(False)
    larger = asked.target * 8 // 7
    totals = torch.zeros(32, device=asked.device)

    def step():
        images = next(files).to(asked.device, non_blocking=True).float() / 255
        images = functional.interpolate(images, size=(larger, larger), mode="bilinear")
        edge = (larger - asked.target) // 2
        images = images[..., edge : edge + asked.target, edge : edge + asked.target]
        gray = images.mean(1, keepdim=True)
        images = torch.lerp(gray.expand_as(images), images, 1.2).clamp(0, 1)
        images = (images - means) / deviations
        totals.add_(functional.relu(features(images.flip(-1))).mean((0, 2, 3)))
        if asked.memory == "returned" and on_gpu:
            del images, gray
            torch.cuda.empty_cache()

    return Program(step, torch.cuda.synchronize if on_gpu else nothing)


if __name__ == "__main__":
    run("images", options, build, fix=("--memory", "kept"))
