"""Copies of arguments lie in memory as the arguments do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import profkit
from profkit.callables.copies import copies

torch = pytest.importorskip("torch", reason="tensors need torch")

QUICK: dict[str, Any] = {"warmup_ms": 1, "samples": 8, "blocks": 4, "device": "cpu"}


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFKIT_LOCK_DIR", str(tmp_path))


def strides_of_torch(x: Any) -> Any:
    """A kernel that takes its input for contiguous."""
    return torch.as_strided(x, x.shape, (x.shape[1], 1), x.storage_offset()) * 2


def strides_of_numpy(x: Any) -> Any:
    return np.lib.stride_tricks.as_strided(x, strides=(x.shape[1] * x.itemsize, x.itemsize)) * 2


@pytest.mark.parametrize(
    ("kernel", "x"),
    [
        (strides_of_torch, torch.arange(24.0).reshape(4, 6)[:, :3]),
        (strides_of_numpy, np.arange(24.0).reshape(6, 4).T),
        (strides_of_numpy, np.arange(24.0).reshape(4, 6)[:, :3]),
    ],
)
def test_a_kernel_that_ignores_strides_is_wrong(kernel: Callable[[Any], Any], x: Any) -> None:
    assert profkit.profile(kernel, x, reference=lambda x: x * 2, **QUICK).verdict == "WRONG"


def add_to_first(a: Any, b: Any) -> Any:
    a += 1
    return b * 2


def both(x: Any) -> tuple[Any, Any]:
    return x, x


def halves_that_share(x: Any) -> tuple[Any, Any]:
    return x[:3], x[1:]


@pytest.mark.parametrize("pair", [both, halves_that_share])
@pytest.mark.parametrize("kind", [torch.tensor, np.array])
def test_a_write_through_another_argument_is_seen(
    kind: Callable[[Any], Any], pair: Callable[[Any], tuple[Any, Any]]
) -> None:
    a, b = pair(kind([1.0, 2.0, 3.0, 4.0]))
    right = b * 2
    assert profkit.profile(add_to_first, a, b, reference=right, **QUICK).verdict == "WRONG"
    assert b[0] == right[0] / 2


slices = st.builds(slice, st.integers(0, 3), st.integers(4, 9), st.integers(1, 3))


@given(rows=slices, columns=slices, turned=st.booleans(), backward=st.booleans())
def test_copies_have_values_strides_and_memory_of_their_own(
    rows: slice, columns: slice, turned: bool, backward: bool
) -> None:
    whole = np.arange(90.0).reshape(9, 10)
    part = whole[rows, columns]
    part = part.T if turned else part
    array = part[::-1] if backward else part
    tensor = torch.from_numpy(whole)[rows, columns]
    tensor = tensor.T if turned else tensor
    for original, strides in ((array, array.strides), (tensor, tensor.stride())):
        (copy,) = copies([original])
        assert bool((copy == original).all())
        assert (copy.strides if original is array else copy.stride()) == strides
        copy += 1
        assert (whole == np.arange(90.0).reshape(9, 10)).all()
