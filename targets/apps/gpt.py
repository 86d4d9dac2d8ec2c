"""A small GPT for the programs beside it."""

from __future__ import annotations

import argparse

import torch
from torch import nn
from torch.nn import functional


def add_sizes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=8192)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16")


def reduced(asked: argparse.Namespace) -> argparse.Namespace:
    """The options, with sizes that a CPU runs in milliseconds where `--toy` is given."""
    if asked.toy:
        asked.layers, asked.width, asked.heads = 2, 32, 2
        asked.batch, asked.length, asked.vocabulary = 2, 16, 64
    return asked


class Norm(nn.Module):
    """Layer norm, by torch's kernel or written out in elementwise operations and reductions."""

    def __init__(self, width: int, *, manual: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.manual = manual

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.manual:
            return functional.layer_norm(x, self.weight.shape, self.weight, eps=1e-5)
        wide = x.float()
        centered = wide - wide.mean(-1, keepdim=True)
        variance = centered.pow(2).mean(-1, keepdim=True)
        return (centered / (variance + 1e-5).sqrt()).to(x.dtype) * self.weight


class Block(nn.Module):
    def __init__(self, width: int, heads: int, *, manual_norm: bool) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = Norm(width, manual=manual_norm)
        self.norm_mlp = Norm(width, manual=manual_norm)
        self.inputs = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.inputs(self.norm_attention(x)).view(batch, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm_mlp(x))))


class Gpt(nn.Module):
    """Tokens and the tokens after them to the mean cross entropy."""

    def __init__(self, asked: argparse.Namespace, *, manual_norm: bool = False) -> None:
        super().__init__()
        self.tokens = nn.Embedding(asked.vocabulary, asked.width)
        self.positions = nn.Embedding(asked.length, asked.width)
        self.blocks = nn.ModuleList(
            Block(asked.width, asked.heads, manual_norm=manual_norm) for _ in range(asked.layers)
        )
        self.norm = Norm(asked.width, manual=manual_norm)
        self.head = nn.Linear(asked.width, asked.vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits.flatten(0, 1).float(), following.flatten())


def token_batches(asked: argparse.Namespace, number: int = 4) -> list[torch.Tensor]:
    """Random tokens on the device, one more than the length for what follows each."""
    shape = (asked.batch, asked.length + 1)
    generator = torch.Generator().manual_seed(asked.seed)
    return [
        torch.randint(asked.vocabulary, shape, generator=generator).to(asked.device)
        for _ in range(number)
    ]
