"""The loop around an application's step: options, warm-up, NVTX ranges, times without a profiler.

Options of a program are one side; `--against OPTIONS` is another that runs in the same process.
With `--time` their blocks of steps alternate, and the times are printed as one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

BLOCK_SECONDS = 0.15
"""Chosen: some hundred microseconds of starting and ending a block are below 1%."""
MOST_STEPS = 2000  # in a block, chosen: a microsecond step ends too


def itself(value: int) -> int:
    return value


def nothing() -> None:
    pass


@dataclass(frozen=True)
class Program:
    """A step of an application, ready to run.

    `synchronize` waits for the device. `agreed` gives rank 0's number to all ranks; only the
    `leader` prints.
    """

    step: Callable[[], object]
    synchronize: Callable[[], object] = nothing
    close: Callable[[], object] = nothing
    agreed: Callable[[int], int] = itself
    leader: bool = True


def option_parser(text: str | None) -> argparse.ArgumentParser:
    """The options that all programs have."""
    parser = argparse.ArgumentParser(description=text, allow_abbrev=False)
    parser.add_argument("--steps", type=int, default=30, help="steps, or the fewest of a block")
    parser.add_argument("--warmup", type=int, default=5, help="steps before them")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--toy", action="store_true", help="the smallest sizes, for tests")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--variant", choices=("before", "after"), help="after: the usual fix")
    parser.add_argument("--against", metavar="OPTIONS", help="another side, in the same process")
    parser.add_argument("--time", action="store_true", help="print step times as JSON")
    parser.add_argument("--blocks", type=int, default=9, help="of steps for each side")
    return parser


def run(
    name: str,
    parser: argparse.ArgumentParser,
    build: Callable[[argparse.Namespace], Program],
    *,
    fix: Sequence[str] = (),
    arguments: Sequence[str] | None = None,
) -> None:
    """Run or time the sides that the command line describes."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    first = parser.parse_args(words)
    if first.variant == "after":
        first = parser.parse_args([*words, *fix])
    sides = [first]
    if first.against is not None:
        sides.append(parser.parse_args([*words, *shlex.split(first.against)]))
    if first.time:
        programs = [build(side) for side in sides]
        times = measured(programs, first)
        if programs[0].leader:
            table = {"program": name, "device": device_name(first.device), **times}
            print(json.dumps(table), flush=True)
        for program in programs:
            program.close()
        return
    with nvtx("start", first.device):
        pass  # nsys may lose the first range of a process
    for index, side in enumerate(sides):
        program = build(side)
        with nvtx(f"side {index}" if len(sides) > 1 else "", side.device):
            steps(program, side.warmup, "", side.device)
            program.synchronize()
            steps(program, side.steps, "step", side.device)
            program.synchronize()
        program.close()


def steps(program: Program, number: int, name: str, device: str) -> None:
    for _ in range(number):
        with nvtx(name, device):
            program.step()


def measured(programs: Sequence[Program], asked: argparse.Namespace) -> dict[str, object]:
    """Milliseconds per step of each side, by block."""
    lengths = []
    for program in programs:
        block(program, asked.warmup)
        seconds = block(program, max(1, asked.steps // 4))
        wanted = math.ceil(BLOCK_SECONDS / max(seconds, 1e-9))
        lengths.append(program.agreed(min(max(asked.steps, wanted), max(MOST_STEPS, asked.steps))))
    blocks: list[list[float]] = [[] for _ in programs]
    for _ in range(asked.blocks):
        for values, program, length in zip(blocks, programs, lengths, strict=True):
            values.append(1e3 * block(program, length))
    return {
        "steps_per_block": lengths,
        "ms": [[round(value, 6) for value in values] for values in blocks],
        "median_ms": [round(statistics.median(values), 6) for values in blocks],
    }


def block(program: Program, number: int) -> float:
    """Seconds per step of `number` steps, the device idle before and after."""
    program.synchronize()
    started = time.perf_counter()
    for _ in range(number):
        program.step()
    program.synchronize()
    return (time.perf_counter() - started) / max(number, 1)


@contextmanager
def nvtx(name: str, device: str) -> Iterator[None]:
    """An NVTX range, by whichever package there is; none on the CPU."""
    if not name or device == "cpu":
        yield
        return
    marks = markers()
    marks.push(name)
    try:
        yield
    finally:
        marks.pop()


def markers() -> SimpleNamespace:
    if "torch" not in sys.modules:  # importing torch only for marks takes seconds
        try:
            from cupy.cuda import nvtx as ranges

            return SimpleNamespace(push=ranges.RangePush, pop=ranges.RangePop)
        except (ImportError, OSError, AttributeError):  # absent, or for other libraries
            pass
    from torch.cuda import nvtx as ranges

    return SimpleNamespace(push=ranges.range_push, pop=ranges.range_pop)


def device_name(device: str) -> str:
    if device == "cpu":
        return "CPU"
    if "torch" in sys.modules:
        import torch

        return torch.cuda.get_device_name()
    if "jax" in sys.modules:
        import jax

        return jax.devices()[0].device_kind
    import cupy

    return cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
