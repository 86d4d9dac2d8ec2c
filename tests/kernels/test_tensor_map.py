"""Tensor maps of TMA, against a stand-in of the driver's encoder."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from kernels.attention import tensor_map
from kernels.attention.tensor_map import TensorMap
from profkit.core.errors import UsageError


class OnDevice:
    """A tensor that claims to be on a GPU."""

    is_cuda = True

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tensor, name)


@pytest.fixture
def encode(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Stands in for the driver's encoder, which takes boxes of at most 256 rows; what it got."""
    pytest.importorskip("torch")  # which loads libraries itself
    pytest.importorskip("cuda.bindings.driver")
    seen: list[list[int]] = []

    def encoder(*arguments: Any) -> int:
        shape, strides, box = (list(arguments[at]) for at in (4, 5, 6))
        seen.append([*shape, *strides, *box])
        return 1 if max(box) > 256 else 0

    driver = SimpleNamespace(cuTensorMapEncodeTiled=encoder)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: driver)
    tensor_map._encoded.cache_clear()
    return seen


def test_a_tensor_map_has_its_innermost_dimension_first(encode: list[list[int]]) -> None:
    torch = pytest.importorskip("torch")
    tensor = OnDevice(torch.zeros(8, 512, 64, dtype=torch.float16))
    encoded = TensorMap(tensor, (1, 128, 64)).as_argument()
    assert ctypes.sizeof(encoded) == 128
    assert ctypes.addressof(encoded) % 64 == 0
    assert TensorMap(tensor, (1, 128, 64)).as_argument() is encoded
    assert encode == [[64, 512, 8, *(128, 128 * 512), 64, 128, 1]]


def test_what_no_tensor_map_can_be_of_is_refused(encode: list[list[int]]) -> None:
    torch = pytest.importorskip("torch")
    half = torch.zeros(8, 512, 64, dtype=torch.float16)
    refused = [
        (half, (1, 64, 64), "a tensor on cpu"),
        (OnDevice(half.float()), (1, 64, 64), "no tensor map for torch.float32"),
        (OnDevice(half.mT), (1, 64, 64), r"strides \(32768, 1, 64\)"),
        (OnDevice(half), (64, 64), "a box of 2 dimensions for a tensor of 3"),
    ]
    for tensor, box, why in refused:
        with pytest.raises(UsageError, match=why):
            TensorMap(tensor, box).as_argument()
    assert not encode
    with pytest.raises(UsageError, match=r"in boxes of \(1, 512, 64\)"):
        TensorMap(OnDevice(half), (1, 512, 64)).as_argument()
