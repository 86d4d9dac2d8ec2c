"""Scaled dot-product attention as a target: what the attention targets have in common."""

from __future__ import annotations

import argparse
import math
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from profkit import Target, Unsupported, Variant, Work, asked, normal_inputs
from profkit.capture.backends import Backend, backends
from profkit.capture.correctness import WrongResult

# Of this checkout, whatever is installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from kernels.attention import ladder

ELEMENT_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4}
DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
_SCORES_AT_ONCE = 2**26
_SCORES_CHECKED = 2**31
_ROWS_CHECKED = 512

Kernel = Callable[[Any, Any, Any, bool], Any]
"""Attention over q, k, v, causal or not."""


@dataclass(frozen=True)
class Shape:
    """Attention over tensors of (batch, heads, length, dim); K and V may have fewer heads.

    `backward` stands for the gradients of Q, K and V alone, the forward pass done before.
    """

    batch: int
    heads: int
    length: int
    dim: int
    dtype: str = "float16"
    causal: bool = False
    kv_heads: int | None = None
    backward: bool = False

    @property
    def shared_heads(self) -> int:
        """Heads of K and V."""
        return self.heads if self.kv_heads is None else self.kv_heads

    def told(self) -> dict[str, Any]:
        """The sizes, with what is out of the ordinary where it is."""
        sizes = {key: value for key, value in asdict(self).items() if key != "dtype"}
        usual = {"kv_heads": None, "backward": False}
        return {key: value for key, value in sizes.items() if usual.get(key, ...) != value}


def asked_shape(default: Shape) -> tuple[argparse.ArgumentParser, Shape]:
    """The options --batch, --heads, ... and the shape that the command line asks for."""
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    sizes = {"batch": "B", "heads": "H", "length": "S", "dim": "D"}
    for size, short in sizes.items():
        options.add_argument(f"--{size}", type=int, default=getattr(default, size), metavar=short)
    options.add_argument("--kv-heads", type=int, default=default.kv_heads, metavar="H")
    options.add_argument(
        "--dtype",
        choices=tuple(ELEMENT_BYTES),
        type=lambda name: DTYPES.get(name, name),
        default=default.dtype,
    )
    options.add_argument("--causal", action="store_true", default=default.causal)
    options.add_argument("--backward", action="store_true", default=default.backward)
    shape = Shape(**vars(asked(options)))
    for size in (*sizes, "kv_heads"):
        value = getattr(shape, size)
        if value is not None and value < 1:
            options.error(f"--{size.replace('_', '-')} must be at least 1, not {value}")
    if shape.heads % shape.shared_heads:
        options.error(f"--heads {shape.heads} is no multiple of --kv-heads {shape.kv_heads}")
    return options, shape


def attention(name: str, shape: Shape, ours: Mapping[str, Kernel] | None = None) -> Target:
    """SDPA by each of torch's backends, and kernels of ours by the names of their variants.

    Without `ours` there is one of them, `custom`: the fastest of the ladder.
    """
    known = backends()
    torchs = {"sdpa": known["default"]}
    torchs |= {name: known[name] for name in ("flash", "cudnn", "efficient", "math")}
    variants = [_variant(key, backend, shape) for key, backend in torchs.items()]
    for key, kernel in (ours or {"custom": ladder.fastest}).items():
        variants.append(Variant(key, _run(kernel, shape)))
    return _target(name, shape, variants)


def attention_by_backends(name: str, shape: Shape) -> Target:
    """Attention by every backend that there is: `profkit.capture.backends`."""
    return _target(name, shape, [_variant(key, one, shape) for key, one in backends().items()])


def _target(name: str, shape: Shape, variants: list[Variant]) -> Target:
    of_q = (shape.batch, shape.heads, shape.length, shape.dim)
    of_k = (shape.batch, shape.shared_heads, shape.length, shape.dim)
    tensors = {"q": of_q, "k": of_k, "v": of_k} | ({"d_out": of_q} if shape.backward else {})
    return Target(
        name=name,
        shapes=shape.told(),
        dtype=shape.dtype,
        work=Work.attention(
            *of_q,
            element_bytes=ELEMENT_BYTES[shape.dtype],
            causal=shape.causal,
            backward=shape.backward,
            kv_heads=shape.kv_heads,
        ),
        inputs=lambda device, seed: normal_inputs(device, seed, shape.dtype, **tensors),
        reference=partial(gradients if shape.backward else reference, shape),
        compared=partial(_checked_gradients if shape.backward else _checked_part, shape),
        variants=variants,
    )


def _variant(name: str, backend: Backend, shape: Shape) -> Variant:
    chooses = backend.chooses
    return Variant(
        name,
        _run(backend.attention, shape),
        setting=backend.setting,
        version=backend.version,
        chooses=None
        if chooses is None
        else lambda inputs: chooses(inputs["q"], inputs["k"], inputs["v"], shape.causal),
        around=backend.around,
    )


def _run(kernel: Kernel, shape: Shape) -> Callable[[Mapping[str, Any]], Any]:
    return _Backward(kernel, shape.causal) if shape.backward else partial(by_kernel, kernel, shape)


def by_kernel(kernel: Kernel, shape: Shape, inputs: Mapping[str, Any]) -> Any:
    """A kernel's forward pass."""
    return kernel(inputs["q"], inputs["k"], inputs["v"], shape.causal)


class _Backward:
    """The backward pass of a kernel alone; the forward pass is done once for the same inputs."""

    def __init__(self, kernel: Kernel, causal: bool) -> None:
        self._kernel = kernel
        self._causal = causal
        self._of: weakref.ref[Any] | None = None
        self._graph: tuple[Any, tuple[Any, ...]] | None = None

    def __call__(self, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
        import torch

        if self._graph is None or self._of is None or self._of() is not inputs["q"]:
            self._graph = None
            self._graph = self._forward(inputs)
            self._of = weakref.ref(inputs["q"])
        out, leaves = self._graph
        gradients: tuple[Any, ...] = torch.autograd.grad(
            out, leaves, inputs["d_out"], retain_graph=True
        )
        return gradients

    def _forward(self, inputs: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
        leaves = tuple(inputs[name].detach().requires_grad_() for name in ("q", "k", "v"))
        out = self._kernel(*leaves, self._causal)
        if not out.requires_grad:
            raise Unsupported("the kernel has no backward pass")
        return out, leaves


def reference(shape: Shape, inputs: Mapping[str, Any]) -> Any:
    """softmax(Q K^T / sqrt(D)) V by its definition, of all rows or of those that are checked."""
    import torch

    q, k, v = inputs["q"].flatten(0, 1), inputs["k"].flatten(0, 1), inputs["v"].flatten(0, 1)
    heads, rows = _checked(shape)
    parts = [
        torch.cat([_rows_of(q[head], k[of], v[of], some, shape) for some in _pieces(rows, shape)])
        for head, of in ((head, _kv_head(head, shape)) for head in heads)
    ]
    out = torch.stack(parts)
    return out.view(inputs["q"].shape) if _is_whole(shape) else out


def gradients(shape: Shape, inputs: Mapping[str, Any]) -> Any:
    """Of sum(O dO) by Q, K and V, by autograd over the definition; of the heads that are checked.

    One row of numbers: dQ, dK, dV of a head of K and V, then those of the next.
    """
    import torch

    q, d_out = (inputs[name].flatten(0, 1) for name in ("q", "d_out"))
    k, v = inputs["k"].flatten(0, 1), inputs["v"].flatten(0, 1)
    every = list(range(shape.length))
    found = []
    for head in _checked_kv_heads(shape):
        keys, values = (tensor[head].clone().requires_grad_() for tensor in (k, v))
        d_q, d_k, d_v = [], torch.zeros_like(keys), torch.zeros_like(values)
        for of in _q_heads(head, shape):
            queries = q[of].clone().requires_grad_()
            d_q.append(torch.zeros_like(queries))
            for some in _pieces(every, shape):
                rows = _rows_of(queries, keys, values, some, shape)
                parts = torch.autograd.grad((rows * d_out[of][some]).sum(), (queries, keys, values))
                for total, part in zip((d_q[-1], d_k, d_v), parts, strict=True):
                    total += part
        found += [part.flatten() for part in (*d_q, d_k, d_v)]
    return torch.cat(found)


def _rows_of(q: Any, k: Any, v: Any, rows: list[int], shape: Shape) -> Any:
    """Rows of one head's attention."""
    import torch

    at = torch.tensor(rows, device=q.device)
    scores = q[at] @ k.T / math.sqrt(shape.dim)
    if shape.causal:
        keys = torch.arange(shape.length, device=q.device)
        scores = scores.masked_fill(keys > at[:, None], -math.inf)
    return torch.softmax(scores, dim=-1) @ v


def _checked_part(shape: Shape, result: Any) -> Any:
    """Of a forward pass what `reference` gives of it; raises WrongResult for what is none."""
    import torch

    if not isinstance(result, torch.Tensor) or _is_whole(shape):
        return result
    wanted = (shape.batch, shape.heads, shape.length, shape.dim)
    _refuse(result, wanted)
    heads, rows = _checked(shape)
    return result.flatten(0, 1)[heads][:, rows]


def _checked_gradients(shape: Shape, result: Any) -> Any:
    """Of a backward pass what `gradients` gives of it; raises WrongResult for what is none."""
    import torch

    for gradient, heads in zip(result, (shape.heads, *[shape.shared_heads] * 2), strict=True):
        _refuse(gradient, (shape.batch, heads, shape.length, shape.dim))
    d_q, d_k, d_v = (gradient.flatten(0, 1) for gradient in result)
    found = []
    for head in _checked_kv_heads(shape):
        found += [d_q[of].flatten() for of in _q_heads(head, shape)]
        found += [d_k[head].flatten(), d_v[head].flatten()]
    return torch.cat(found)


def _refuse(tensor: Any, shape: tuple[int, ...]) -> None:
    import torch

    if tuple(tensor.shape) != shape:
        raise WrongResult(f"shape {tuple(tensor.shape)}, not {shape}")
    if not torch.isfinite(tensor).all():
        raise WrongResult("some values are not finite")


def _is_whole(shape: Shape) -> bool:
    return shape.batch * shape.heads * shape.length**2 <= _SCORES_CHECKED


def _checked(shape: Shape) -> tuple[list[int], list[int]]:
    """Heads (over the batch) and query rows that are checked: all, or some from end to end.

    Of long sequences the first and last rows, where masks and tiles go wrong, and some between.
    """
    heads, length = shape.batch * shape.heads, shape.length
    if _is_whole(shape):
        return list(range(heads)), list(range(length))
    edge = min(_ROWS_CHECKED // 4, length)
    rows = {*range(edge), *range(length - edge, length), *_spread(length, _ROWS_CHECKED // 2)}
    return _spread(heads, max(1, _SCORES_CHECKED // (len(rows) * length))), sorted(rows)


def _checked_kv_heads(shape: Shape) -> list[int]:
    """Heads of K and V (over the batch) whose gradients are checked."""
    heads = shape.batch * shape.shared_heads
    scores = shape.heads // shape.shared_heads * shape.length**2
    return _spread(heads, max(1, _SCORES_CHECKED // scores))


def _spread(count: int, some: int) -> list[int]:
    """At most `some` of the numbers below `count`, the first and the last among them."""
    if some >= count:
        return list(range(count))
    if some == 1:
        return [0]
    return sorted({at * (count - 1) // (some - 1) for at in range(some)})


def _pieces(rows: list[int], shape: Shape) -> Iterator[list[int]]:
    """Rows in pieces whose scores fit into memory."""
    at_once = max(1, _SCORES_AT_ONCE // shape.length)
    for first in range(0, len(rows), at_once):
        yield rows[first : first + at_once]


def _kv_head(head: int, shape: Shape) -> int:
    """The head of K and V, over the batch, that a head of Q over the batch reads."""
    batch, of_q = divmod(head, shape.heads)
    return batch * shape.shared_heads + of_q * shape.shared_heads // shape.heads


def _q_heads(kv_head: int, shape: Shape) -> range:
    """The heads of Q, over the batch, that read a head of K and V over the batch."""
    group = shape.heads // shape.shared_heads
    return range(kv_head * group, (kv_head + 1) * group)
