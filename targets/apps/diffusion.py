"""A sampling step of a small diffusion model: a U-Net with and without the condition.

    python targets/apps/diffusion.py --steps 30

`--guidance` is how both run: "separate" calls of the network, or one "together".
"""

from __future__ import annotations

import itertools
import math

import torch
from loop import Program, nothing, option_parser, run
from torch import nn
from torch.nn import functional

options = option_parser(__doc__)
options.add_argument("--guidance", choices=("separate", "together"), default="separate")
options.add_argument("--batch", type=int, default=1)
options.add_argument("--size", type=int, default=32, help="of an image, in pixels")
options.add_argument("--width", type=int, default=64, help="of the first level, in channels")
options.add_argument("--levels", type=int, default=3)
options.add_argument("--scale", type=float, default=4.0, help="of the condition")

TIMES = 50  # chosen: usual of samplers


class Residual(nn.Module):
    def __init__(self, given, width, condition):
        super().__init__()
        self.norms = nn.ModuleList(nn.GroupNorm(8, channels) for channels in (given, width))
        self.first = nn.Conv2d(given, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        self.condition = nn.Linear(condition, width)
        self.skip = nn.Conv2d(given, width, 1) if given != width else nn.Identity()

    def forward(self, x, condition):
        y = self.first(functional.silu(self.norms[0](x)))
        y = y + self.condition(condition)[:, :, None, None]
        return self.skip(x) + self.second(functional.silu(self.norms[1](y)))


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.GroupNorm(8, width)
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        rows = self.norm(x).flatten(2).transpose(1, 2)
        query, key, value = self.inputs(rows).unsqueeze(1).chunk(3, -1)
        seen = functional.scaled_dot_product_attention(query, key, value).squeeze(1)
        return x + self.output(seen).transpose(1, 2).reshape(x.shape)


class Unet(nn.Module):
    def __init__(self, width, levels):
        super().__init__()
        self.width = width
        widths = [width * 2**level for level in range(levels)]
        condition = 4 * width
        self.embedding = nn.Sequential(
            nn.Linear(width, condition), nn.SiLU(), nn.Linear(condition, condition), nn.SiLU()
        )
        self.first, self.last = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 3, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for given, channels in itertools.pairwise([width, *widths]):
            self.down.append(Residual(given, channels, condition))
            self.up.insert(0, Residual(2 * channels, given, condition))
        self.attention = Attention(widths[-1])
        self.middle = Residual(widths[-1], widths[-1], condition)

    def forward(self, x, time, label):
        steps = torch.arange(self.width // 2, device=x.device)
        angles = time[:, None] * torch.exp(-math.log(1e4) * steps / (self.width // 2))
        waves = torch.cat([angles.sin(), angles.cos()], 1).to(x.dtype)
        condition = self.embedding(waves + label)
        x, kept = self.first(x), []
        for block in self.down:
            x = block(x, condition)
            kept.append(x)
            x = functional.avg_pool2d(x, 2)
        x = self.middle(self.attention(x), condition)
        for block in self.up:
            x = functional.interpolate(x, scale_factor=2.0)
            x = block(torch.cat([x, kept.pop()], 1), condition)
        return self.last(functional.silu(x))


def build(asked):
    if asked.toy:
        asked.size, asked.width, asked.levels = 8, 8, 2
    torch.manual_seed(asked.seed)
    dtype = torch.bfloat16 if asked.device == "cuda" else torch.float32
    model = Unet(asked.width, asked.levels).to(asked.device, dtype).requires_grad_(False)
    model = model.to(memory_format=torch.channels_last)
    shape = (asked.batch, 3, asked.size, asked.size)
    state = {"image": torch.randn(shape, dtype=dtype).to(asked.device)}
    label = torch.randn(asked.batch, asked.width, dtype=dtype).to(asked.device)
    none = torch.zeros_like(label)
    kept = [math.cos(0.5 * math.pi * number / (TIMES + 1)) ** 2 for number in range(TIMES + 1)]
    order = itertools.cycle(range(TIMES, 0, -1))

    def step():
        number, image = next(order), state["image"]
        time = torch.full((asked.batch,), float(number), device=asked.device)
        if asked.guidance == "separate":
            with_label, without = model(image, time, label), model(image, time, none)
        else:
            both = torch.cat([image, image]), torch.cat([time, time]), torch.cat([label, none])
            with_label, without = model(*both).chunk(2)
        noise = torch.lerp(without, with_label, asked.scale)
        clean = (image - (1 - kept[number]) ** 0.5 * noise) / kept[number] ** 0.5
        clean = clean.clamp(-1, 1)
        state["image"] = kept[number - 1] ** 0.5 * clean + (1 - kept[number - 1]) ** 0.5 * noise

    return Program(step, torch.cuda.synchronize if asked.device == "cuda" else nothing)


if __name__ == "__main__":
    run("diffusion", options, build, fix=("--guidance", "together"))
