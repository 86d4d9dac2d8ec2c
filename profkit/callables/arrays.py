"""Arrays of any framework in arguments and results: where they are, copies, and comparisons.

A framework is known by the module of an array's type, so that none is imported that is not used.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from copy import copy
from typing import Any

import numpy as np

from profkit.capture.correctness import BOUNDS
from profkit.core.errors import UsageError

_FRAMEWORKS = {"torch": "torch", "cupy": "cupy", "jax": "jax", "jaxlib": "jax", "numpy": "numpy",
               "cuda": "cuda.core"}  # fmt: skip
_ON_GPU = {2, 13}  # kDLCUDA and kDLCUDAManaged of dlpack.h
_EXACT = 0.0  # the largest error of whole numbers
_WHOLE = ("bool", "int", "uint")
_PARTS = {"complex64": "float32", "complex128": "float64"}


def leaves(value: Any) -> Iterator[Any]:
    """The arrays in a value: itself, or those in its tuples, lists and mappings."""
    for _, array in keyed_leaves(value):
        yield array


def keyed_leaves(value: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The arrays with the keys of the mappings that they are in; those of one in order of keys, so
    that mappings that are equal have them in the same order."""
    if isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            yield from keyed_leaves(value[key], (*keys, repr(key)))
    elif isinstance(value, tuple | list):
        for part in value:
            yield from keyed_leaves(part, keys)
    elif framework(value) and hasattr(value, "__dlpack_device__"):
        yield keys, value


def framework(value: Any) -> str:
    """The framework of a value: torch, cupy, jax, cuda.core or numpy; "" for any other."""
    return _FRAMEWORKS.get(type(value).__module__.partition(".")[0], "")


def is_on_gpu(array: Any) -> bool:
    """Whether an array lies in a GPU's memory."""
    if framework(array) == "torch":
        return bool(array.is_cuda)
    if framework(array) == "jax":
        return any(device.platform == "gpu" for device in array.devices())
    with suppress(BufferError, RuntimeError, TypeError):
        return int(array.__dlpack_device__()[0]) in _ON_GPU
    return False


def gpu_number(array: Any) -> int | None:
    """The GPU that an array lies on, by CUDA's count; None for one that has none to tell."""
    with suppress(BufferError, RuntimeError, TypeError):
        return int(array.__dlpack_device__()[1])
    return None


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value with each of its arrays changed; what is no array stays the same object."""
    if isinstance(value, Mapping):
        return _with_values(value, {key: mapped(part, change) for key, part in value.items()})
    if isinstance(value, tuple | list):
        parts = [mapped(part, change) for part in value]
        if hasattr(value, "_fields"):  # a named tuple
            return type(value)(*parts)
        return type(value)(parts)
    return change(value) if framework(value) and hasattr(value, "__dlpack_device__") else value


def _with_values(mapping: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """A mapping of the same type with other values, so that what reads them as attributes can."""
    if not isinstance(mapping, MutableMapping):
        return type(mapping)(values)  # type: ignore[call-arg]
    other = copy(mapping)
    for key, value in values.items():
        other[key] = value
    return other


def copied(array: Any) -> Any:
    """An array of its own with the same values; those of `copies` have its strides too."""
    kind = framework(array)
    if kind == "torch":
        return array.detach().clone().requires_grad_(array.requires_grad)
    return array.copy() if kind in {"cupy", "jax", "numpy"} else array


def precise(array: Any) -> Any:
    """A copy, in float64 or complex128 where it holds such numbers; NumPy's of one of JAX's."""
    if framework(array) == "torch":
        torch = sys.modules["torch"]
        wide = torch.float64 if array.is_floating_point() else array.dtype
        wide = torch.complex128 if array.is_complex() else wide
        return array.detach().to(wide, copy=True).requires_grad_(array.requires_grad)
    if framework(array) == "jax":
        array = np.asarray(array)
    if framework(array) in {"cupy", "numpy"} and _bound(dtype_of(array)) is not None:
        return array.astype("complex128" if is_complex(array) else "float64")
    return copied(array)


def same_values(value: Any, other: Any) -> bool:
    """Whether a value and what was a copy of it (see `mapped`) still have the same containers, with
    equal arrays and the same other objects."""
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return value.keys() == other.keys() and all(same_values(value[k], other[k]) for k in value)
    if isinstance(value, tuple | list) and isinstance(other, tuple | list):
        return len(value) == len(other) and all(map(same_values, value, other))
    if not (framework(value) and framework(value) == framework(other)):
        return value is other
    alike = hasattr(value, "__dlpack_device__") and dtype_of(value) == dtype_of(other)
    if value is other or not alike or tuple(value.shape) != tuple(other.shape):
        return value is other
    return equal(value, other) and same_values(gradient(value), gradient(other))


def gradient(array: Any) -> Any:
    """What torch has accumulated for an array; None where it has nothing."""
    return array.grad if framework(array) == "torch" and array.is_leaf else None


def equal(array: Any, other: Any) -> bool:
    """Whether two arrays of one framework hold the same bits, NaN equal to NaN."""
    if framework(array) == "torch":
        return bool(sys.modules["torch"].equal(_bits(array), _bits(other)))
    if framework(array) in {"cupy", "numpy"}:
        return bool(host(array).tobytes() == host(other).tobytes())
    return True


def dense(tensor: Any) -> Any:
    """A tensor of torch without gradient, neither sparse nor a conjugate view of another."""
    tensor = tensor.detach()
    strided = tensor.layout is sys.modules["torch"].strided
    return (tensor if strided else tensor.to_dense()).resolve_conj().resolve_neg()


def host(array: Any) -> Any:
    """An array as NumPy's, in the host's memory; torch's in float64 where NumPy lacks its type."""
    kind = framework(array)
    if kind == "torch":
        array = dense(array).cpu()
        return (array.double() if dtype_of(array) == "bfloat16" else array).numpy()
    return array.get() if kind == "cupy" else np.asarray(array)


def error_bound(array: Any) -> float:
    """The largest relative error of a right result of this type; whole numbers have none.

    Raises UsageError for a type whose rounding is not known, as float8.
    """
    dtype = dtype_of(array)
    bound = _bound(dtype)
    if bound is None and not is_whole(array):
        raise UsageError(f"results of {dtype} can't be checked", "return them in float16 or wider")
    return bound or _EXACT


def is_whole(array: Any) -> bool:
    """Whether an array holds whole numbers or truth values."""
    return dtype_of(array).startswith(_WHOLE)


def is_complex(array: Any) -> bool:
    """Whether an array holds complex numbers."""
    return dtype_of(array) in _PARTS


def _bound(dtype: str) -> float | None:
    return BOUNDS.get(_PARTS.get(dtype, dtype))


def dtype_of(array: Any) -> str:
    """The name of an array's type: "float16", ..."""
    return str(getattr(array, "dtype", "")).removeprefix("torch.")


def _bits(array: Any) -> Any:
    """A tensor's bits as whole numbers of the same size, if there are such."""
    torch = sys.modules["torch"]
    sizes = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    flat = dense(array).contiguous().reshape(-1)
    return flat.view(sizes.get(flat.element_size(), torch.uint8))
