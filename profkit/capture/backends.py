"""Implementations of attention by name: torch's, other libraries', and this checkout's own.

A distribution adds one by an entry point of the group `profkit.backends`, whose name is the
backend's and whose object is a `Backend`.
"""

import hashlib
import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from msgspec import Struct

from profkit.capture.target import Unsupported
from profkit.capture.tools import installed_version
from profkit.core.text_files import error_words

GROUP = "profkit.backends"
_OWN_KERNELS = "kernels.attention.ladder"
_SDPA_CALL = "scaled_dot_product_attention(...)"


class Backend(Struct, frozen=True):
    """A way to compute attention.

    `attention(q, k, v, causal)` takes tensors of (batch, heads, length, dim), of which k and v may
    have fewer heads, and gives one like q; it raises Unsupported for what it can't do. `version`
    returns that of its library, and raises Unsupported where that is not installed. `setting` is
    the code that selects it. `chooses` returns the backend that it dispatches to. Calls are made,
    and timed, inside of `around()`.
    """

    name: str
    attention: Callable[[Any, Any, Any, bool], Any]
    version: Callable[[], str]
    setting: str
    chooses: Callable[[Any, Any, Any, bool], str | None] | None = None
    around: Callable[[], AbstractContextManager[object]] = nullcontext


def backends() -> Mapping[str, Backend]:
    """Every backend by name, the shipped ones first; Unsupported is raised only when one is used.

    One whose entry point can't be loaded is listed too, and raises Unsupported when it is used.
    """
    known = {backend.name: backend for backend in SHIPPED}
    for entry in entry_points(group=GROUP):
        if entry.name not in known:
            known[entry.name] = _loaded(entry)
    return known


def _loaded(entry: Any) -> Backend:
    problem = f"{entry.value} is not a Backend named {entry.name}"
    try:
        backend = entry.load()
        if isinstance(backend, Backend) and backend.name == entry.name:
            return backend
    except Exception as error:
        problem = f"{entry.value} can't be loaded ({error_words(error)})"

    def refuse(*_: Any) -> Any:
        raise Unsupported(problem)

    return Backend(entry.name, refuse, refuse, "")


def _grouped(q: Any, k: Any) -> dict[str, bool]:
    """What torch must be told of tensors of which k has fewer heads."""
    return {} if q.shape[1] == k.shape[1] else {"enable_gqa": True}


def _sdpa(q: Any, k: Any, v: Any, causal: bool) -> Any:
    from torch.nn.functional import scaled_dot_product_attention

    return scaled_dot_product_attention(q, k, v, is_causal=causal, **_grouped(q, k))


def _restricted(backend: str) -> AbstractContextManager[object]:
    """Where scaled_dot_product_attention takes this backend of torch and no other."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    context: AbstractContextManager[object] = sdpa_kernel(getattr(SDPBackend, backend))
    return context


_TORCH_BACKENDS: Mapping[str, str] = {
    "flash": "FLASH_ATTENTION",
    "cudnn": "CUDNN_ATTENTION",
    "efficient": "EFFICIENT_ATTENTION",
    "math": "MATH",
}


def _torch_choice(q: Any, k: Any, v: Any, causal: bool) -> str | None:
    """The backend that torch dispatches to; None where unknown."""
    import torch
    from torch.nn.attention import SDPBackend

    try:
        number = int(torch._fused_sdp_choice(q, k, v, None, 0.0, causal, **_grouped(q, k)))
    except (AttributeError, RuntimeError, TypeError):
        return None
    names = {int(getattr(SDPBackend, name)): short for short, name in _TORCH_BACKENDS.items()}
    return names.get(number)


def _torch_version() -> str:
    import torch

    return f"torch {torch.__version__}"


def _cudnn_version() -> str:
    import torch

    version = torch.backends.cudnn.version()
    if version is None:
        raise Unsupported("torch was built without cuDNN")
    return f"{_torch_version()}, cuDNN {version}"


def _xformers(q: Any, k: Any, v: Any, causal: bool) -> Any:
    ops = _module("xformers.ops")
    mask = ops.LowerTriangularMask() if causal else None
    q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
    heads, groups = q.shape[2], k.shape[2]
    if heads != groups:
        q = q.unflatten(2, (groups, heads // groups))
        k, v = (tensor.unsqueeze(3).expand(q.shape) for tensor in (k, v))
    try:
        out = ops.memory_efficient_attention(q, k, v, attn_bias=mask)
    except NotImplementedError as error:
        raise Unsupported(error_words(error)) from error
    return (out.flatten(2, 3) if heads != groups else out).transpose(1, 2)


def _flash_attn(module: str, q: Any, k: Any, v: Any, causal: bool) -> Any:
    function = _flash_attn_func(module)
    if not q.is_cuda:
        raise Unsupported("the kernel needs a CUDA device")
    q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
    out = function(q, k, v, causal=causal)
    return (out[0] if isinstance(out, tuple) else out).transpose(1, 2)


def _flash_attn_func(module: str) -> Any:
    """Its function; a folder that another distribution left can be imported, and has none."""
    function = getattr(_module(module), "flash_attn_func", None)
    if function is None:
        raise Unsupported(f"{module} is not installed")
    return function


def _flash_attn_version(module: str, *distributions: str) -> str:
    _flash_attn_func(module)
    return _versions(module, *distributions)


def _own_attention(q: Any, k: Any, v: Any, causal: bool) -> Any:
    return _module(_OWN_KERNELS).fastest(q, k, v, causal)


def _own_version() -> str:
    """The kernels have no version: a digest of their sources tells them apart."""
    folder = Path(_module(_OWN_KERNELS).__file__).parent
    sources = sorted(file for file in folder.iterdir() if file.suffix in {".cu", ".py"})
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()
    return f"sources {digest[:12]}"


def _versions(module: str, *distributions: str) -> str:
    """The versions of distributions of which a module can be imported; raises Unsupported."""
    _module(module)
    versions = ((name, installed_version(name)) for name in distributions)
    return ", ".join(f"{name} {version}" for name, version in versions if version) or module


def _module(name: str) -> Any:
    module = _imported(name)
    if isinstance(module, str):
        raise Unsupported(module)
    return module


@cache
def _imported(name: str) -> Any:
    """A module, or the reason for its absence: a failed import takes seconds each time."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        return f"{error.name} is not installed"
    except Exception as error:  # built for another torch or CUDA, or for none
        return f"{name} can't be imported ({error_words(error)})"


def _torch_backend(name: str) -> Backend:
    backend = _TORCH_BACKENDS[name]
    context = f"with torch.nn.attention.sdpa_kernel(SDPBackend.{backend}): "
    return Backend(
        name,
        _sdpa,
        _cudnn_version if name == "cudnn" else _torch_version,
        f"{context}{_SDPA_CALL}",
        around=partial(_restricted, backend),
    )


_CUTE = ("flash_attn.cute", "flash-attn-cute", "flash-attn-4", "nvidia-cutlass-dsl")
_OWN_CALL = "kernels.attention.ladder.fastest(q, k, v, causal)"

default = Backend("default", _sdpa, _torch_version, _SDPA_CALL, _torch_choice)
flash, cudnn, efficient, math = map(_torch_backend, _TORCH_BACKENDS)
xformers = Backend(
    "xformers",
    _xformers,
    partial(_versions, "xformers.ops", "xformers"),
    "xformers.ops.memory_efficient_attention(...)",
)
flash_attn = Backend(
    "flash_attn",
    partial(_flash_attn, "flash_attn"),
    partial(_flash_attn_version, "flash_attn", "flash-attn"),
    "flash_attn.flash_attn_func(...)",
)
cutlass = Backend(  # the DSL itself has no attention; this one is written in it
    "cutlass",
    partial(_flash_attn, "flash_attn.cute"),
    partial(_flash_attn_version, *_CUTE),
    "flash_attn.cute.flash_attn_func(...)",
)
custom = Backend("custom", _own_attention, _own_version, _OWN_CALL)

SHIPPED = (default, flash, cudnn, efficient, math, xformers, flash_attn, cutlass, custom)
