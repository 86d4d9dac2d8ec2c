"""Scaled dot-product attention as a target: what the attention targets have in common."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from profkit import Target, Variant, Work, normal_inputs

# Of this checkout, whatever is installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from kernels.attention import ladder

ELEMENT_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4}
_SCORES_AT_ONCE = 2**26

Kernel = Callable[[Any, Any, Any, bool], Any]
"""Attention over q, k, v, causal or not."""


@dataclass(frozen=True)
class Shape:
    """Attention over tensors of (batch, heads, length, dim)."""

    batch: int
    heads: int
    length: int
    dim: int
    dtype: str = "float16"
    causal: bool = False


def asked_shape(default: Shape) -> tuple[argparse.ArgumentParser, Shape]:
    """The options --batch, --heads, ... and the shape that the command line asks for."""
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    sizes = {"batch": "B", "heads": "H", "length": "S", "dim": "D"}
    for size, short in sizes.items():
        options.add_argument(f"--{size}", type=int, default=getattr(default, size), metavar=short)
    options.add_argument("--dtype", choices=tuple(ELEMENT_BYTES), default=default.dtype)
    options.add_argument("--causal", action="store_true", default=default.causal)
    asked = Shape(**vars(options.parse_known_args()[0]))
    for size in sizes:
        if getattr(asked, size) < 1:
            options.error(f"--{size} must be at least 1, not {getattr(asked, size)}")
    return options, asked


def attention(name: str, shape: Shape, ours: Mapping[str, Kernel] | None = None) -> Target:
    """SDPA by each of torch's backends, and kernels of ours by the names of their variants.

    Without `ours` there is one of them, `custom`: the fastest of the ladder.
    """
    sizes = (shape.batch, shape.heads, shape.length, shape.dim)
    backends = {
        "flash": "FLASH_ATTENTION",
        "cudnn": "CUDNN_ATTENTION",
        "efficient": "EFFICIENT_ATTENTION",
        "math": "MATH",
    }
    runs: dict[str, Callable[[Mapping[str, Any]], Any]] = {"sdpa": partial(sdpa, shape.causal)}
    for short, backend in backends.items():
        runs[short] = partial(sdpa_by, backend, shape.causal)
    for variant, kernel in (ours or {"custom": ladder.fastest}).items():
        runs[variant] = partial(by_kernel, kernel, shape.causal)
    return Target(
        name=name,
        shapes={key: value for key, value in asdict(shape).items() if key != "dtype"},
        dtype=shape.dtype,
        work=Work.attention(*sizes, element_bytes=ELEMENT_BYTES[shape.dtype], causal=shape.causal),
        inputs=lambda device, seed: normal_inputs(
            device, seed, shape.dtype, q=sizes, k=sizes, v=sizes
        ),
        reference=partial(reference, shape.causal),
        variants=[Variant(key, run) for key, run in runs.items()],
    )


def sdpa(causal: bool, inputs: Mapping[str, Any]) -> Any:
    """torch's attention with the backend that torch chooses."""
    from torch.nn.functional import scaled_dot_product_attention

    return scaled_dot_product_attention(inputs["q"], inputs["k"], inputs["v"], is_causal=causal)


def sdpa_by(backend: str, causal: bool, inputs: Mapping[str, Any]) -> Any:
    """torch's attention with one backend and no other."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(getattr(SDPBackend, backend)):
        return sdpa(causal, inputs)


def by_kernel(kernel: Kernel, causal: bool, inputs: Mapping[str, Any]) -> Any:
    """A kernel of the attention ladder."""
    return kernel(inputs["q"], inputs["k"], inputs["v"], causal)


def reference(causal: bool, inputs: Mapping[str, Any]) -> Any:
    """softmax(Q K^T / sqrt(D)) V by its definition, some query rows at a time for memory's sake."""
    import torch

    q, k, v = (inputs[name].flatten(0, 1) for name in ("q", "k", "v"))
    out = torch.empty_like(q)
    heads, length, dim = q.shape
    rows = max(1, min(length, _SCORES_AT_ONCE // length))
    heads_at_once = max(1, _SCORES_AT_ONCE // (rows * length))
    keys = torch.arange(length, device=q.device)
    for first in range(0, heads, heads_at_once):
        some = slice(first, first + heads_at_once)
        for row in range(0, length, rows):
            queries = slice(row, row + rows)
            scores = q[some, queries] @ k[some].transpose(1, 2) / math.sqrt(dim)
            if causal:
                scores.masked_fill_(keys > keys[queries, None], -math.inf)
            out[some, queries] = torch.softmax(scores, dim=-1) @ v[some]
    return out.view(inputs["q"].shape)
