"""A training loop over images that come from the host: prepared, copied, trained on, read back.

python targets/apps/loader.py --steps 30 --variant before
"""

from __future__ import annotations

import itertools
import queue
import threading

import numpy as np
import torch
from loop import Program, nothing, option_parser, run
from torch import nn
from torch.nn import functional

options = option_parser(__doc__)
options.add_argument(
    "--source", choices=("ready", "inline", "threads"), default="inline",
    help="of batches: in memory, prepared in the loop, or by threads ahead of it",
)  # fmt: skip
options.add_argument("--passes", type=int, default=2, help="over a batch, to prepare it")
options.add_argument("--threads", type=int, default=8)
options.add_argument(
    "--copies", choices=("pageable", "pinned", "own_stream"), default="pageable",
    help="to the device; own_stream: of pinned memory, one batch ahead",
)  # fmt: skip
options.add_argument("--payload", type=int, default=1, help="times the bytes that are copied")
options.add_argument(
    "--results", choices=("none", "blocking", "own_stream"), default="none",
    help="the predictions, copied to the host every step",
)  # fmt: skip
options.add_argument("--batch", type=int, default=64)
options.add_argument("--size", type=int, default=128, help="of an image, in pixels")
options.add_argument("--depth", type=int, default=6, help="of the network, in layers")
options.add_argument("--width", type=int, default=128, help="of the network, in channels")

BUFFERS = 12  # in flight, chosen: more than the threads


class Network(nn.Module):
    """Images to a prediction for each pixel of a quarter of their size."""

    def __init__(self, width, depth):
        super().__init__()
        self.first = nn.Conv2d(3, width, 7, stride=4, padding=3)
        self.layers = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(depth))
        self.last = nn.Conv2d(width, 64, 1)

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = x + functional.relu(layer(x))
        return self.last(x)


class Preparation:
    """Images in the memory of the process, and batches made of them: rows, flips, normalization."""

    def __init__(self, asked, dtype=np.float32):
        shape = (256 if not asked.toy else 8, 3, asked.size, asked.size)
        self.images = np.random.default_rng(asked.seed).integers(0, 255, shape, dtype=np.uint8)
        self.asked, self.dtype = asked, dtype

    def fill(self, number, target):
        """Write batch `number` to `target`, an array."""
        count = self.asked.batch
        rows = (np.arange(count) * 7 + number * count) % len(self.images)
        for _ in range(self.asked.passes):
            chosen = self.images[rows]
            chosen = chosen[..., ::-1] if number % 2 else chosen
            np.subtract(chosen, 127.0, out=target[:count], dtype=np.float32, casting="unsafe")
            np.multiply(target[:count], 1 / 64, out=target[:count])


class Buffers:
    """Batches in host memory that are filled again once they were copied."""

    def __init__(self, asked, number):
        shape = (asked.batch * asked.payload, 3, asked.size, asked.size)
        pinned = asked.copies != "pageable" and asked.device == "cuda"
        self.tensors = [torch.zeros(shape, pin_memory=pinned) for _ in range(number)]
        self.arrays = [tensor.numpy() for tensor in self.tensors]
        self.events = [torch.cuda.Event() if pinned else None for _ in range(number)]

    def copied(self, index):
        """The copy of buffer `index` was queued on the current stream."""
        if self.events[index]:
            self.events[index].record()

    def wait(self, index):
        if self.events[index]:
            self.events[index].synchronize()


def host_batches(asked):
    """A function that gives the next buffer's number, the buffers, and a function that ends it."""
    prepared = Preparation(asked)
    buffers = Buffers(asked, BUFFERS)
    following = {"ready": ready, "inline": inline, "threads": threads}[asked.source]
    return buffers, *following(asked, prepared, buffers)


def ready(_asked, prepared, buffers):
    prepared.fill(0, buffers.arrays[0])
    for tensor in buffers.tensors[1:]:
        tensor.copy_(buffers.tensors[0])
    numbers = itertools.cycle(range(BUFFERS))
    return lambda: next(numbers), nothing


def inline(_asked, prepared, buffers):
    numbers = itertools.count()

    def following():
        number = next(numbers)
        index = number % BUFFERS
        buffers.wait(index)
        prepared.fill(number, buffers.arrays[index])
        return index

    return following, nothing


def threads(asked, prepared, buffers):
    """Buffers are filled by threads, and are theirs again two batches after they were used."""
    numbers, used = itertools.count(), []
    free, full = queue.Queue(), queue.Queue()
    for index in range(BUFFERS):
        free.put(index)

    def work():
        while (index := free.get()) is not None:
            buffers.wait(index)
            prepared.fill(next(numbers), buffers.arrays[index])
            full.put(index)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(asked.threads)]
    for worker in workers:
        worker.start()

    def following():
        used.append(full.get())
        if len(used) > 2:  # the last two may not be copied yet
            free.put(used.pop(0))
        return used[-1]

    def close():
        for _ in workers:
            free.put(None)
        for worker in workers:
            worker.join()

    return following, close


def device_batches(asked):
    """A function that gives the next batch on the device, and one that ends it."""
    buffers, following, close = host_batches(asked)

    def batch_in_line():
        index = following()
        batch = buffers.tensors[index].to(asked.device, non_blocking=asked.copies != "pageable")
        buffers.copied(index)
        return batch

    if asked.copies != "own_stream" or asked.device == "cpu":
        return batch_in_line, close
    aside = torch.cuda.Stream()
    waiting = []

    def upload():
        with torch.cuda.stream(aside):
            batch = batch_in_line()
            done = torch.cuda.Event()
            done.record()
        waiting.append((batch, done))

    upload()

    def ahead():
        batch, done = waiting.pop()
        torch.cuda.current_stream().wait_event(done)
        batch.record_stream(torch.cuda.current_stream())
        upload()
        return batch

    return ahead, close


class Readback:
    """Predictions to the host: in line, or on an own stream and read a step later."""

    def __init__(self, asked):
        self.asked = asked
        self.stream = torch.cuda.Stream() if asked.device == "cuda" else None
        self.waiting = []
        self.sum = 0.0

    def read(self, predictions):
        if self.asked.results == "none":
            return
        predictions = predictions.detach()
        if self.asked.results == "blocking" or self.stream is None:
            self.sum = float(predictions.cpu()[0, 0].float().sum())
            return
        if not self.waiting:
            self.waiting = [
                (torch.empty_like(predictions, device="cpu").pin_memory(), torch.cuda.Event())
                for _ in range(2)
            ]
        buffer, done = self.waiting.pop(0)
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            buffer.copy_(predictions, non_blocking=True)
            done.record()
        predictions.record_stream(self.stream)
        self.waiting.append((buffer, done))
        last, ready = self.waiting[0]
        ready.synchronize()
        self.sum = float(last[0, 0].float().sum())


def build(asked):
    if asked.toy:
        asked.batch, asked.size, asked.depth, asked.width, asked.threads = 4, 16, 2, 8, 2
    torch.manual_seed(asked.seed)
    on_gpu = asked.device == "cuda"
    dtype = torch.bfloat16 if on_gpu else torch.float32
    model = Network(asked.width, asked.depth).to(asked.device, dtype)
    model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, foreach=True)
    following, close = device_batches(asked)
    readback = Readback(asked)

    def step():
        images = following()[: asked.batch].to(dtype, memory_format=torch.channels_last)
        predictions = model(images)
        loss = predictions.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        readback.read(predictions)

    return Program(step, torch.cuda.synchronize if on_gpu else nothing, close)


if __name__ == "__main__":
    run("loader", options, build, fix=("--source", "threads", "--copies", "own_stream"))
