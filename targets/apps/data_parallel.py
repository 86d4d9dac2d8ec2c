"""A data-parallel training step of a small GPT on two GPUs, gradients averaged by NCCL.

    python targets/apps/data_parallel.py --steps 30 --variant before
    torchrun --nproc-per-node 2 targets/apps/data_parallel.py --steps 30

NVLink multicast stays off (NCCL_NVLS_ENABLE=0), as on machines that share their GPUs' host.
"""

from __future__ import annotations

import itertools
import os
import socket
import sys
from datetime import timedelta
from functools import partial

import torch
from gpt import Gpt, add_sizes, reduced, token_batches
from loop import Program, nothing, option_parser, run
from torch import distributed

options = option_parser(__doc__)
add_sizes(options)
options.set_defaults(width=2048, batch=4, layers=6, dtype="float32")
options.add_argument("--ranks", type=int, default=2, help="without torchrun")
options.add_argument(
    "--reduce", choices=("after", "overlapped"), default="after",
    help="gradients after the backward pass, or in buckets during it (DistributedDataParallel)",
)  # fmt: skip
options.add_argument(
    "--uneven", type=int, default=0, help="sequences that rank 1 has more, and rank 0 fewer"
)
LIMIT = timedelta(seconds=60)  # chosen: a rank that waits so long waits in vain


def build(asked):
    asked = reduced(asked)
    rank = distributed.get_rank()
    on_gpu = asked.device == "cuda"
    mean = distributed.ReduceOp.AVG if on_gpu else distributed.ReduceOp.SUM  # gloo has no mean
    asked.batch += asked.uneven if rank else -asked.uneven
    torch.manual_seed(asked.seed)
    model = Gpt(asked).to(asked.device, getattr(torch, asked.dtype))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    trained = model
    if asked.reduce == "overlapped":
        trained = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    order = itertools.cycle(token_batches(asked))
    mixed = partial(torch.autocast, asked.device, torch.bfloat16, enabled=on_gpu)

    def step():
        batch = next(order)
        optimizer.zero_grad(set_to_none=True)
        with mixed():
            loss = trained(batch[:, :-1], batch[:, 1:])
        loss.backward()
        if asked.reduce == "after":
            for parameter in model.parameters():
                distributed.all_reduce(parameter.grad, mean)
        optimizer.step()

    def synchronize():
        if on_gpu:
            torch.cuda.synchronize()
        distributed.barrier()
        if on_gpu:
            torch.cuda.synchronize()

    def agreed(number):
        shared = torch.tensor([number], device=asked.device)
        distributed.broadcast(shared, 0)
        return int(shared.item())

    return Program(step, synchronize, nothing, agreed, rank == 0)


def work(rank, ranks, port, arguments):
    """One rank of those that this program starts itself."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    member(rank, ranks, arguments)


def member(rank, ranks, arguments):
    asked = options.parse_args(arguments)
    on_gpu = asked.device == "cuda"
    device = torch.device("cuda", rank) if on_gpu else None
    if device:
        torch.cuda.set_device(device)
    distributed.init_process_group(
        "nccl" if on_gpu else "gloo", rank=rank, world_size=ranks, timeout=LIMIT, device_id=device
    )
    try:
        run("data_parallel", options, build, fix=("--reduce", "overlapped"), arguments=arguments)
    finally:
        distributed.destroy_process_group()


def main(arguments):
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    asked = options.parse_args(arguments)
    if "RANK" in os.environ:
        member(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), arguments)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if asked.ranks == 1:
        work(0, 1, port, arguments)
    else:
        torch.multiprocessing.spawn(work, (asked.ranks, port, arguments), asked.ranks)


if __name__ == "__main__":
    main(sys.argv[1:])
