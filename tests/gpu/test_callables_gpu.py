"""Calls from Python on a real GPU: copies of tensors and CuPy arrays lie in memory as they do."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import profkit
from profkit.callables.copies import copies

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch", reason="tensors need torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

QUICK: dict[str, Any] = {"warmup_ms": 1, "samples": 8, "blocks": 4}


def tensor(rows: int, columns: int) -> Any:
    return torch.arange(float(rows * columns), device="cuda").reshape(rows, columns)


def cupy_array(rows: int, columns: int) -> Any:
    cupy = pytest.importorskip("cupy", reason="its arrays are copied too")
    return cupy.arange(float(rows * columns)).reshape(rows, columns)


KINDS = [tensor, cupy_array]


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFKIT_LOCK_DIR", str(tmp_path))


def strides_of(array: Any) -> tuple[int, ...]:
    return tuple(array.stride() if hasattr(array, "stride") else array.strides)


slices = st.builds(slice, st.integers(0, 3), st.integers(4, 9), st.integers(1, 3))


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(rows=slices, columns=slices, turned=st.booleans(), backward=st.booleans())
def test_copies_have_values_strides_and_memory_of_their_own(
    kind: Callable[[int, int], Any], rows: slice, columns: slice, turned: bool, backward: bool
) -> None:
    whole = kind(9, 10)
    part = whole[rows, columns]
    part = part.T if turned else part
    part = part[::-1] if backward and kind is cupy_array else part
    (copy,) = copies([part])
    assert bool((copy == part).all())
    assert strides_of(copy) == strides_of(part)
    copy += 1
    assert bool((whole == kind(9, 10)).all())


def takes_rows_for_dense(x: Any) -> Any:
    dense = (x.shape[1], 1)
    if hasattr(x, "as_strided"):
        return x.as_strided(x.shape, dense, x.storage_offset()) * 2
    module = importlib.import_module("cupy.lib.stride_tricks")
    return module.as_strided(x, strides=[n * x.itemsize for n in dense]) * 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_kernel_that_ignores_strides_is_wrong(kind: Callable[[int, int], Any]) -> None:
    x = kind(64, 96)[:, :48]
    run = profkit.profile(takes_rows_for_dense, x, reference=lambda x: x * 2, **QUICK)
    assert run.verdict == "WRONG"


def add_to_first(a: Any, b: Any) -> Any:
    a += 1
    return b * 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_through_another_argument_is_seen(kind: Callable[[int, int], Any]) -> None:
    whole = kind(8, 8)
    right = whole[1:] * 2
    run = profkit.profile(add_to_first, whole[:-1], whole[1:], reference=right, **QUICK)
    assert run.verdict == "WRONG"
    assert bool((whole == kind(8, 8)).all())


def test_a_tensor_keeps_its_alignment() -> None:
    whole = torch.zeros(4096, device="cuda", dtype=torch.float16)
    for first in (0, 1, 8, 33):
        (copy,) = copies([whole[first : first + 64]])
        assert copy.data_ptr() % 64 == whole[first:].data_ptr() % 64
