"""A step of Triton kernels on two streams: a chain over rows, and a slow scan beside it.

python targets/apps/triton_step.py --steps 30
"""

from __future__ import annotations

import torch
from loop import Program, option_parser, run

try:
    import triton
    import triton.language as tl
except ImportError:  # torch for the CPU comes without it
    triton = None

options = option_parser(__doc__)
options.add_argument("--scan", type=int, default=128, help="elements at once")
options.add_argument("--chain", type=int, default=4, help="layers of the chain")
options.add_argument("--rows", type=int, default=8192)
options.add_argument("--width", type=int, default=8192)
options.add_argument("--sequences", type=int, default=8, help="that are scanned")
options.add_argument("--length", type=int, default=32768, help="of a sequence")

if triton:

    @triton.jit
    def row_norm(x, y, weight, width, block: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        columns = tl.arange(0, block)
        inside = columns < width
        values = tl.load(x + row * width + columns, mask=inside, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(values * values, 0) / width + 1e-6)
        weights = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + row * width + columns, (values * scale * weights).to(tl.bfloat16), mask=inside)

    @triton.jit
    def row_softmax(x, y, width, block: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        columns = tl.arange(0, block)
        inside = columns < width
        loaded = tl.load(x + row * width + columns, mask=inside, other=-float("inf"))
        values = loaded.to(tl.float32)
        powers = tl.exp(values - tl.max(values, 0))
        tl.store(
            y + row * width + columns, (powers / tl.sum(powers, 0)).to(tl.bfloat16), mask=inside
        )

    @triton.jit
    def gated_sum(x, y, result, size, block: tl.constexpr):
        places = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
        inside = places < size
        first = tl.load(x + places, mask=inside, other=0.0).to(tl.float32)
        second = tl.load(y + places, mask=inside, other=0.0).to(tl.float32)
        gated = first + second * tl.sigmoid(first)
        tl.store(result + places, gated.to(tl.bfloat16), mask=inside)

    @triton.jit
    def decay_scan(x, result, length, block: tl.constexpr):
        """The decayed sum of a sequence at each block, one block after the other."""
        row = tl.program_id(0).to(tl.int64)
        columns = tl.arange(0, block)
        total = 0.0
        for start in range(0, length, block):
            values = tl.load(x + row * length + start + columns)
            total = 0.5 * total + tl.sum(values, 0)
            tl.store(result + row * length + start + columns, values - total)


def build(asked):
    on_gpu = asked.device == "cuda"
    if asked.toy:
        asked.rows, asked.width, asked.sequences, asked.length, asked.chain = 4, 32, 2, 256, 1
    torch.manual_seed(asked.seed)
    shape = (asked.rows, asked.width)
    dtype = torch.bfloat16 if on_gpu else torch.float32
    x = torch.randn(shape, dtype=dtype, device=asked.device)
    first, second, result = (torch.empty_like(x) for _ in range(3))
    weight = torch.ones(asked.width, dtype=dtype, device=asked.device)
    sequences = torch.randn(asked.sequences, asked.length, device=asked.device)
    scanned = torch.empty_like(sequences)
    if not on_gpu:
        return Program(lambda: in_torch(x, weight, sequences, asked))
    block = triton.next_power_of_2(asked.width)
    aside = torch.cuda.Stream()

    def chain():
        given = x
        for _ in range(asked.chain):
            row_norm[(asked.rows,)](given, first, weight, asked.width, block, num_warps=8)
            row_softmax[(asked.rows,)](first, second, asked.width, block, num_warps=8)
            grid = (triton.cdiv(x.numel(), 2048),)
            gated_sum[grid](first, second, result, x.numel(), 2048, num_warps=8)
            given = result

    def step():
        main = torch.cuda.current_stream()
        aside.wait_stream(main)
        with torch.cuda.stream(aside):
            decay_scan[(asked.sequences,)](
                sequences, scanned, asked.length, asked.scan, num_warps=4
            )
        chain()
        main.wait_stream(aside)

    return Program(step, torch.cuda.synchronize)


def in_torch(x, weight, sequences, asked):
    """The same without Triton."""
    total = torch.zeros(asked.sequences)
    for values in sequences.split(asked.scan, 1):
        total = 0.5 * total + values.sum(1)
    for _ in range(asked.chain):
        normal = x * x.square().mean(1, keepdim=True).add(1e-6).rsqrt() * weight
        x = normal + normal.softmax(1) * normal.sigmoid()
    return x, total


if __name__ == "__main__":
    run("triton_step", options, build, fix=("--scan", "2048"))
