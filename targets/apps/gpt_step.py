"""A training step of a small GPT: attention, matrix products, norms, elementwise, AdamW.

python targets/apps/gpt_step.py --steps 30
python targets/apps/gpt_step.py --mode graphs --time
"""

from __future__ import annotations

import itertools
import math

import torch
from gpt import Gpt, add_sizes, reduced, token_batches
from loop import Program, nothing, option_parser, run

options = option_parser(__doc__)
add_sizes(options)
options.add_argument("--mode", choices=("eager", "compile", "graphs"), default="eager")
options.add_argument("--optimizer", choices=("loop", "foreach", "fused"), default="fused")
options.add_argument("--norm", choices=("manual", "fused"), default="fused")
options.add_argument(
    "--clip", choices=("none", "item", "tensor"), default="none",
    help="gradients by their norms, one by one; item: each is checked on the host",
)  # fmt: skip
options.add_argument("--log", choices=("none", "item"), default="none", help="the loss, every step")


def build(asked):
    asked = reduced(asked)
    torch.manual_seed(asked.seed)
    model = Gpt(asked, manual_norm=asked.norm == "manual")
    model = model.to(asked.device, getattr(torch, asked.dtype))
    graphs = asked.mode == "graphs" and asked.device == "cuda"
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=1e-4,
        foreach=asked.optimizer == "foreach",
        fused=asked.optimizer == "fused",
        capturable=graphs,
    )
    compiled = torch.compile(model) if asked.mode == "compile" and not asked.toy else model
    batches = token_batches(asked)

    def train(batch):
        optimizer.zero_grad(set_to_none=True)
        loss = compiled(batch[:, :-1], batch[:, 1:])
        loss.backward()
        clip(model, asked.clip)
        optimizer.step()
        return loss

    order = itertools.cycle(batches)
    step = captured(train, batches[0], order) if graphs else lambda: train(next(order))

    def logged():
        loss = step()
        if asked.log == "item":
            logged.loss = loss.item()

    synchronize = torch.cuda.synchronize if asked.device == "cuda" else nothing
    return Program(logged, synchronize)


def clip(model, mode, most=1.0):
    if mode == "none":
        return
    for parameter in model.parameters():
        norm = parameter.grad.norm()
        if mode == "item" and math.isnan(norm.item()):
            raise ArithmeticError("a gradient is not a number")
        parameter.grad.mul_((most / (norm + 1e-6)).clamp(max=1.0))


def captured(train, batch, order):
    """The step as one CUDA graph that reads a batch from where it was captured."""
    place = batch.clone()
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            train(place)
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = train(place)

    def replay():
        place.copy_(next(order))
        graph.replay()
        return loss

    replay.memory = train  # what the graph reads and writes, but does not keep
    return replay


if __name__ == "__main__":
    run("gpt_step", options, build, fix=("--mode", "graphs"))
