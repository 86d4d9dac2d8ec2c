"""A training step of a graph network: messages along edges, summed at the nodes.

    python targets/apps/graph_step.py --steps 30

`--gather` is how the messages read their nodes: "index" is h[edges], whose gradient sorts the
edges, "select" is index_select, whose gradient adds atomically.
"""

from __future__ import annotations

import torch
from loop import Program, nothing, option_parser, run
from torch import nn
from torch.nn import functional

options = option_parser(__doc__)
options.add_argument("--gather", choices=("index", "select"), default="index")
options.add_argument("--nodes", type=int, default=50_000)
options.add_argument("--edges", type=int, default=800_000)
options.add_argument("--features", type=int, default=100)
options.add_argument("--width", type=int, default=128)
options.add_argument("--layers", type=int, default=3)
options.add_argument("--classes", type=int, default=40)


class Layer(nn.Module):
    def __init__(self, width, gather):
        super().__init__()
        self.gather = gather
        self.own, self.others = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.norm = nn.LayerNorm(width)

    def forward(self, x, sources, targets, shares):
        found = x[sources] if self.gather == "index" else x.index_select(0, sources)
        summed = torch.zeros_like(x).index_add_(0, targets, found) * shares
        return x + functional.relu(self.norm(self.own(x) + self.others(summed)))


class Network(nn.Module):
    def __init__(self, asked):
        super().__init__()
        self.first = nn.Linear(asked.features, asked.width)
        self.layers = nn.ModuleList(Layer(asked.width, asked.gather) for _ in range(asked.layers))
        self.last = nn.Linear(asked.width, asked.classes)

    def forward(self, features, *graph):
        x = self.first(features)
        for layer in self.layers:
            x = layer(x, *graph)
        return self.last(x)


def build(asked):
    if asked.toy:
        asked.nodes, asked.edges, asked.features, asked.width, asked.classes = 20, 60, 5, 8, 3
    generator = torch.Generator().manual_seed(asked.seed)
    torch.manual_seed(asked.seed)
    popular = torch.rand(asked.edges, generator=generator).square()  # some have many edges
    sources = (popular * asked.nodes).long().to(asked.device)
    targets = torch.randint(asked.nodes, (asked.edges,), generator=generator).to(asked.device)
    degrees = torch.bincount(targets, minlength=asked.nodes).clamp(min=1)
    shares = (1 / degrees.float()).unsqueeze(1)
    features = torch.randn(asked.nodes, asked.features, generator=generator).to(asked.device)
    classes = torch.randint(asked.classes, (asked.nodes,), generator=generator).to(asked.device)
    model = Network(asked).to(asked.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=asked.device == "cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(model(features, sources, targets, shares), classes).backward()
        optimizer.step()

    return Program(step, torch.cuda.synchronize if asked.device == "cuda" else nothing)


if __name__ == "__main__":
    run("graph_step", options, build, fix=("--gather", "select"))
