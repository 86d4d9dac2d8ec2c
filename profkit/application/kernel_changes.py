"""What changes of a program make of its kernels, each in its best case, in a replay of its steps.

What a kernel does is told by its name, so that these are bounds by kind: arithmetic changes as the
rates of two data types differ, a pass over memory as the bytes that remain.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from profkit.application import sequences
from profkit.application.kernel_kinds import (
    ALIGNED,
    ATTENTION,
    CONVOLUTION,
    GEMV,
    OPTIMIZER,
    PRODUCTS,
    KernelTraits,
)
from profkit.application.replay import LONG_GAP, Replay, Work
from profkit.application.sequences import merge
from profkit.core.grouping import grouped
from profkit.timeline.intervals import length, union

LEAST_KERNEL = 2e3
"""ns that a kernel takes, however little it does: the shortest of libraries in timelines of an H200
take 1.2 to 2.5 µs."""
UPDATE_LEFT = 0.4
"""Of the time of an optimizer's passes that one kernel takes: Adam reads and writes 7 values of a
parameter once instead of 18 in passes of their own."""
GATHER_LEFT = 0.5
"""Of the time of gathered rows that their sparse product takes: it reads them, and writes none."""
PLANAR_LEFT = 0.6
"""Of the time of convolutions and pooling of images whose channels are apart, chosen: between the
rates of cuDNN's kernels of both layouts in the same arithmetic."""
COMPILED_HOST = 0.8
"""Of the host time of an eager framework for each launch that compiled code takes: 0.85 and 0.87 in
recorded steps of a GPT on an H200."""
OLDER = 0.6
"""Of the rate of tensor cores that instructions of Ampere reach on later GPUs (mma.sync, not wgmma,
in FP16 products on an H200)."""
_AMPERE = 1024  # FLOP of TF32 in a cycle of an SM, `hardware.gpus`
RATES = {
    "FP64": "tensor_fp64",
    "FP32": "fp32",
    "3xTF32": "tensor_tf32",
    "TF32": "tensor_tf32",
    "BF16": "tensor_bf16",
    "FP16": "tensor_fp16",
}
"""The rates in `hardware.gpus` of the arithmetic that names say."""
_TIMES = {"3xTF32": 3}  # products for each
_FIXED = {"TF32": {"FP64", "3xTF32"}, "BF16": {"FP64"}, "FP16": {"FP64"}}
IMAGES = frozenset({CONVOLUTION, "pooling", "norm"})
"""Kinds that have kernels for either order of channels and pixels."""
_HALVES = {"BF16", "FP16"}
MULTIPLYING = {*PRODUCTS, ATTENTION}
_SHARES: Mapping[str, Callable[[KernelTraits], bool]] = {
    "double_share": lambda each: each.double,
    "fp32_product_share": lambda each: each.kind in MULTIPLYING and each.arithmetic == "FP32",
    "tf32_product_share": lambda each: each.kind in MULTIPLYING and "TF32" in each.arithmetic,
    "layout_share": lambda each: each.layout,
    "planar_share": lambda each: each.planar and each.kind in IMAGES,
    "unaligned_share": lambda each: each.aligned < ALIGNED,
}
"""Of which kernels each share is."""


def convert(replay: Replay, arithmetic: str) -> None:
    """Matrix products, convolutions and attention in another data type, and of 16 bits also what
    passes over their data. Where a convolution is in TF32, the library has chosen FP32 for others.
    """
    convolutions = (each for each in replay.traits if each.kind == CONVOLUTION)
    is_chosen = arithmetic == "TF32" in {each.arithmetic for each in convolutions}
    for work in replay.works:
        if work.role == "kernel":
            traits = replay.traits[work.group[0]]
            if is_chosen and traits.kind == CONVOLUTION:
                continue
            share = converted(traits, arithmetic, replay.rates)
            work.duration = max(min(work.duration, LEAST_KERNEL), work.duration * share)


def converted(traits: KernelTraits, arithmetic: str, rates: Mapping[str, float]) -> float:
    """The share of a kernel's time that remains at best."""
    if traits.arithmetic in _FIXED.get(arithmetic, ()):
        return 1.0  # which no switch changes
    if traits.kind in MULTIPLYING:
        now, then = (
            rates.get(RATES.get(each, ""), 0.0) for each in (traits.arithmetic, arithmetic)
        )
        share = now / then / _TIMES.get(traits.arithmetic, 1) if now and then else 1.0
        is_slower = traits.older and traits.arithmetic == "TF32" and now > _AMPERE
        return min(1.0, share * (OLDER if is_slower and share < 1 else 1.0))
    if arithmetic == "FP32":
        return 0.5 if traits.double else 1.0
    is_single = traits.single or traits.compiled  # compilers' names don't say the type
    is_pass = is_single and traits.kind != OPTIMIZER and not traits.update
    is_pass = is_pass and traits.message != "scatter"  # as many atomics, whatever their type
    halved = is_pass or (traits.kind == GEMV and traits.arithmetic == "FP32")
    return 0.5 if arithmetic in _HALVES and halved else 1.0


def store_channels_last(replay: Replay) -> None:
    """No conversions of layout, and kernels of images whose channels are together."""
    for index, work in enumerate(replay.works):
        if work.role != "kernel":
            continue
        traits = replay.traits[work.group[0]]
        if traits.layout:
            merge(replay, [index], 0.0, calls=0)
        elif traits.planar and traits.kind in IMAGES:
            work.duration *= PLANAR_LEFT


def pad(replay: Replay) -> None:
    """Operands of matrix products aligned to 16 bytes: they take the time of as many loads."""
    for work in replay.works:
        if work.role == "kernel":
            work.duration *= replay.traits[work.group[0]].aligned / ALIGNED


def fuse_chains(replay: Replay) -> None:
    """Chains of passes as one kernel each, as long as its longest."""
    for row in sequences.chains(replay):
        merge(replay, row, max(replay.works[index].duration for index in row))


def compile_chains(replay: Replay) -> None:
    """Chains fused; aligned matrix products, as compilers pad them; compiled host code."""
    pad(replay)
    fuse_chains(replay)
    for call in replay.calls:
        if call.role in {"launch", "other"} and call.gap < LONG_GAP:
            call.gap *= COMPILED_HOST


def fuse_updates(replay: Replay) -> None:
    """All updates of parameters by one kernel."""
    for row in sequences.updates(replay):
        merge(replay, row, UPDATE_LEFT * _time(replay, row))


def fuse_attention(replay: Replay) -> None:
    """Attention as one kernel, with the time of its matrix products alone."""
    for row in sequences.attention(replay):
        merge(replay, row, _time(replay, (row[0], row[-1])))


def multiply_sparse(replay: Replay) -> None:
    """Messages gathered, multiplied and added in one sparse product."""
    for row in sequences.messages(replay):
        merge(replay, row, GATHER_LEFT * replay.works[row[0]].duration)


def batch_products(replay: Replay) -> None:
    """Equal small matrix products of a step as one."""
    for row in sequences.small_products(replay):
        merge(replay, row, max(replay.works[index].duration for index in row))


def _time(replay: Replay, row: sequences.Row | tuple[int, ...]) -> float:
    return sum(replay.works[index].duration for index in row)


def _running(works: Iterable[Work]) -> float:
    """ns in which some of these ran, on each GPU by itself: streams overlap."""
    rows = grouped(((work.rank, work.device), work) for work in works).values()
    total = 0.0
    for row in rows:
        spans = np.array(sorted((work.start, work.end) for work in row))
        total += length(union(*spans.T))
    return total


def kernel_quantities(replay: Replay, step: float) -> dict[str, float]:
    """What rules about kernels read: counts and shares of a step's time, by rank; shares of the
    host's time are of a step of `step` ns, replayed without the profiler's overhead."""
    kernels = [work for work in replay.works if work.role == "kernel"]
    quantities = {
        name: _running(work for work in kernels if belongs(replay.traits[work.group[0]]))
        for name, belongs in _SHARES.items()
    }
    for name, rows in (
        ("chained", sequences.chains(replay)),
        ("update", sequences.updates(replay)),
        ("attention", sequences.attention(replay)),
        ("message", sequences.messages(replay)),
    ):
        indices = {index for row in rows for index in row}
        quantities[f"{name}_share"] = _running(replay.works[index] for index in indices)
        quantities[f"{name}_kernels"] = len(indices)
        calls = {replay.works[index].call for index in indices} - {-1}
        issued = [each for call in calls for each in sequences.issue(replay, call)]
        launching = sum(call.gap + call.own for call in issued)
        quantities[f"{name}_launch_share"] = launching * replay.recorded / step
    small = [index for row in sequences.small_products(replay) for index in row]
    quantities["small_products"] = len(small)
    quantities["small_product_share"] = _running(replay.works[index] for index in small)
    whole = replay.steps * replay.ranks
    return {
        name: value / whole / (replay.recorded if name.endswith("_share") else 1)
        for name, value in quantities.items()
    }
