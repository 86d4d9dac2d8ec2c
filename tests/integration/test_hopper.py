"""Attention for Hopper, with the host code that launches it, on the CPU."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.emulator import missing
from tests.emulator.kernel import EmulatedKernel

torch = pytest.importorskip("torch", reason="the kernel's host code needs torch")

from kernels.attention import hopper  # noqa: E402

MISSING = missing()
BOUNDS = {torch.float16: 2e-3, torch.bfloat16: 8e-3}
SMALL = replace(hopper.TILES[64], block_n=64, stages=2, q_stages=1)

pytestmark = pytest.mark.skipif(bool(MISSING), reason=str(MISSING))


def right(
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, ...],
    dtype: Any,
    causal: bool,
    tiles: hopper.Tiles | None = None,
    sms: int = 3,
    sharpness: float = 1.0,
) -> bool:
    """Whether the output is what float64 gives; `sharpness` multiplies the scores."""
    torch.manual_seed(size[2])
    q, k, v = (torch.randn(size).mul(factor).to(dtype) for factor in (sharpness, 1.0, 1.0))
    monkeypatch.setattr(
        hopper,
        "compile_kernel",
        lambda path, name, *, defines: EmulatedKernel(path, name, defines, read_only=(q, k, v)),
    )
    chip = SimpleNamespace(multi_processor_count=sms)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: chip)
    out = hopper.hopper(q, k, v, causal, tiles).double()

    scores = q.double() @ k.double().transpose(2, 3) / math.sqrt(size[3])
    if causal:
        hidden = torch.ones(size[2], size[2], dtype=torch.bool).triu(1)
        scores.masked_fill_(hidden, -math.inf)
    reference = torch.softmax(scores, dim=-1) @ v.double()
    return bool((out - reference).norm() <= BOUNDS[dtype] * reference.norm())


@pytest.mark.parametrize("length", [1, 4, 65, 127, 128, 300])
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_attention_is_right(
    dtype: Any, dim: int, causal: bool, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert right(monkeypatch, (1, 2, length, dim), dtype, causal)


@pytest.mark.parametrize(
    "tiles",
    [
        SMALL,
        replace(SMALL, pingpong=0, q_stages=2),
        replace(SMALL, consumers=3, stages=3),
        replace(SMALL, polynomial=4, rescale_above="0.0f"),
    ],
    ids=["small", "no turns", "three consumers", "polynomial"],
)
def test_every_cut_is_right(tiles: hopper.Tiles, monkeypatch: pytest.MonkeyPatch) -> None:
    assert right(monkeypatch, (1, 3, 400, 64), torch.float16, True, tiles, sms=2)


def test_a_block_takes_many_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    assert right(monkeypatch, (2, 2, 300, 64), torch.float16, False, SMALL, sms=1)


@pytest.mark.parametrize("sharpness", [4.0, 30.0])
def test_maxima_that_grow(sharpness: float, monkeypatch: pytest.MonkeyPatch) -> None:
    assert right(monkeypatch, (1, 1, 400, 64), torch.float16, False, SMALL, sharpness=sharpness)
