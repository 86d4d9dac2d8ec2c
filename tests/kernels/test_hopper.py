"""How hopper.cu's blocks walk over their tiles, on the CPU; the ladder's tests have the rest."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.conftest import NIGHTLY
from tests.emulator import missing
from tests.emulator.kernel import EmulatedKernel

torch = pytest.importorskip("torch", reason="the kernel's host code needs torch")

from kernels.attention import hopper  # noqa: E402

MISSING = missing()
CUTS = [
    hopper.Tiles(consumers=2, block_n=64, stages=2, q_stages=1),
    hopper.Tiles(consumers=2, block_n=128, stages=3, q_stages=2),
    hopper.Tiles(consumers=3, block_n=64, stages=2, q_stages=2),
    hopper.Tiles(consumers=4, block_n=64, stages=4, q_stages=1),
]


@pytest.mark.skipif(bool(MISSING), reason=str(MISSING))
@pytest.mark.parametrize("sms", [1, 2, 5] if NIGHTLY else [1, 5])
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("tiles", CUTS, ids=repr)
def test_blocks_take_tile_after_tile(
    tiles: hopper.Tiles, causal: bool, sms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compile_kernel(path: Any, name: str, *, defines: Any) -> EmulatedKernel:
        return EmulatedKernel(path, name, defines, (q, k, v), orders)

    orders = ("forward", "reverse", 3) if NIGHTLY else ("forward", 3)
    torch.manual_seed(sms)
    q, k, v = (torch.randn(2, 2, 300, 64).to(torch.float16) for _ in range(3))
    monkeypatch.setattr(hopper, "compile_kernel", compile_kernel)
    out = hopper.hopper(q, k, v, causal, sms, tiles).double()

    scores = q.double() @ k.double().transpose(2, 3) / math.sqrt(64)
    if causal:
        hidden = torch.ones(300, 300, dtype=torch.bool).triu(1)
        scores.masked_fill_(hidden, -math.inf)
    reference = torch.softmax(scores, dim=-1) @ v.double()
    assert (out - reference).norm() <= 2e-3 * reference.norm()
