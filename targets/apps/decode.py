"""A decode loop with a KV cache: a step is one token of each sequence.

    python targets/apps/decode.py --steps 100 --variant before

`--text` is work in Python on each new token (a search for stop words): "inline" before the next
token is asked for, "behind" while the GPU computes it.
"""

from __future__ import annotations

import torch
from gpt import Norm
from loop import Program, nothing, option_parser, run
from torch import nn
from torch.nn import functional

options = option_parser(__doc__)
options.add_argument("--mode", choices=("eager", "graphs"), default="eager")
options.add_argument("--layers", type=int, default=12)
options.add_argument("--width", type=int, default=1024)
options.add_argument("--heads", type=int, default=16)
options.add_argument("--batch", type=int, default=8)
options.add_argument("--length", type=int, default=512, help="of the cache")
options.add_argument("--vocabulary", type=int, default=8192)
options.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16")
options.add_argument("--stop", choices=("none", "item"), default="none", help="asked every token")
options.add_argument("--text", choices=("none", "inline", "behind"), default="none")
options.add_argument("--words", type=int, default=150, help="of the text's search, per sequence")


class Layer(nn.Module):
    def __init__(self, asked):
        super().__init__()
        width = asked.width
        self.heads = asked.heads
        self.norm_attention, self.norm_mlp = (Norm(width, manual=False) for _ in range(2))
        self.inputs = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        shape = (2, asked.batch, asked.heads, asked.length, width // asked.heads)
        self.register_buffer("cache", torch.zeros(shape))

    def forward(self, x, position, mask):
        batch = x.shape[0]
        parts = self.inputs(self.norm_attention(x)).view(batch, 1, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        self.cache[0].index_copy_(2, position, key)
        self.cache[1].index_copy_(2, position, value)
        seen = functional.scaled_dot_product_attention(query, *self.cache, attn_mask=mask)
        x = x + self.output(seen.transpose(1, 2).reshape(batch, 1, -1))
        return x + self.down(functional.gelu(self.up(self.norm_mlp(x))))


class Decoder(nn.Module):
    """One token of each sequence to the next, at a position that it moves on."""

    def __init__(self, asked):
        super().__init__()
        self.length = asked.length
        self.tokens = nn.Embedding(asked.vocabulary, asked.width)
        self.layers = nn.ModuleList(Layer(asked) for _ in range(asked.layers))
        self.norm = Norm(asked.width, manual=False)
        self.head = nn.Linear(asked.width, asked.vocabulary, bias=False)
        self.register_buffer("position", torch.zeros(1, dtype=torch.long))
        self.register_buffer("places", torch.arange(asked.length))

    def forward(self, token):
        x = self.tokens(token)
        mask = (self.places <= self.position).view(1, 1, 1, -1)
        for layer in self.layers:
            x = layer(x, self.position, mask)
        token.copy_(self.head(self.norm(x)).argmax(-1))
        self.position.add_(1).remainder_(self.length)


def build(asked):
    if asked.toy:
        asked.layers, asked.width, asked.heads, asked.batch = 2, 32, 2, 2
        asked.length, asked.vocabulary, asked.words = 16, 64, 5
    torch.manual_seed(asked.seed)
    on_gpu = asked.device == "cuda"
    model = Decoder(asked).to(asked.device).to(getattr(torch, asked.dtype)).requires_grad_(False)
    token = torch.zeros(asked.batch, 1, dtype=torch.long, device=asked.device)
    advance = captured(model, token) if asked.mode == "graphs" and on_gpu else lambda: model(token)
    seen = torch.zeros(asked.batch, 1, dtype=torch.long, pin_memory=on_gpu)
    copied = torch.cuda.Event() if on_gpu else None

    def step():
        advance()
        if asked.stop == "item":
            step.stopped = (token == 0).all().item()
        if asked.text == "inline":
            searched(token.cpu().flatten().tolist(), asked.words)

    def behind():
        """Ask for a token, then search in the one before."""
        if copied:
            copied.synchronize()
        before = seen.flatten().tolist()
        advance()
        seen.copy_(token, non_blocking=True)
        if copied:
            copied.record()
        searched(before, asked.words)

    synchronize = torch.cuda.synchronize if on_gpu else nothing
    return Program(behind if asked.text == "behind" else step, synchronize)


def captured(model, token):
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            model(token)
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(token)

    def replay():
        graph.replay()

    replay.memory = model, token  # which the graph reads, but does not keep
    return replay


def searched(tokens, words):
    """The sequences whose text contains a stop word."""
    return [
        any(f"<stop {word}>" in f"{token} and what was before" for word in range(words))
        for token in tokens
    ]


if __name__ == "__main__":
    run("decode", options, build, fix=("--mode", "graphs"))
