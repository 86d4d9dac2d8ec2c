"""Scaled dot-product attention as a target: what sdpa_s512.py and sdpa_sweep.py have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from profkit import Target, Unsupported, Variant, Work, normal_inputs

SERIAL_KV = Path(__file__).parent.parent / "kernels" / "attention" / "serial_kv.cu"
ELEMENT_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4}
_TILE = 64
_THREADS = 256
_LARGEST_DIM = 128
_SCORES_AT_ONCE = 2**26


@dataclass(frozen=True)
class Shape:
    """Attention over tensors of (batch, heads, length, dim)."""

    batch: int
    heads: int
    length: int
    dim: int
    dtype: str = "float16"
    causal: bool = False


def attention(name: str, shape: Shape) -> Target:
    """SDPA by each of torch's backends, and the kernel serial_kv.cu, on one shape."""
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
    runs["custom"] = partial(serial_kv, shape.causal)
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


def serial_kv(causal: bool, inputs: Mapping[str, Any]) -> Any:
    """The kernel kernels/attention/serial_kv.cu."""
    import torch

    from profkit.capture.cuda_source import compile_kernel

    q, k, v = (inputs[name].contiguous() for name in ("q", "k", "v"))
    batch, heads, length, dim = q.shape
    if not q.is_cuda:
        raise Unsupported("the kernel needs a CUDA device")
    if q.dtype not in {torch.float16, torch.bfloat16} or dim > _LARGEST_DIM:
        raise Unsupported(f"the kernel takes float16 and bfloat16, dim up to {_LARGEST_DIM}")
    defines = {"DIM": dim} | ({"BF16": 1} if q.dtype == torch.bfloat16 else {})
    kernel = compile_kernel(SERIAL_KV, "serial_kv", defines=defines)
    out = torch.empty_like(q)
    grid = (math.ceil(length / _TILE), heads, batch)
    kernel.launch(grid, (_THREADS, 1, 1), q, k, v, out, length, 1 / math.sqrt(dim), causal)
    return out


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
