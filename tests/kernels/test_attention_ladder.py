"""The attention ladder's CUDA kernels, with the host code that launches them, on the CPU."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from profkit import Unsupported
from profkit.capture.cuda_source import compile_kernel
from tests.capture.test_cuda_source import needs_nvrtc
from tests.conftest import NIGHTLY
from tests.emulator import missing
from tests.emulator.kernel import EmulatedKernel

torch = pytest.importorskip("torch", reason="the ladder needs torch")

from kernels.attention import hopper, ladder  # noqa: E402

MISSING = missing()
H200 = SimpleNamespace(major=9, minor=0, multi_processor_count=132)
BOUNDS = {torch.float16: 2e-3, torch.bfloat16: 8e-3}
CUDA_RUNGS = [rung for rung in ladder.RUNGS if rung.file.endswith(".cu")]
# Less than a tile, a tile, one and a bit, several; the other kernels have the same host code.
LENGTHS = (1, 4, 65, 127, 128, 200) if NIGHTLY else (1, 65, 128, 200)
SIZES = [
    (dtype, dim, length)
    for dtype in BOUNDS
    for dim in (64, 128)
    for length in LENGTHS
    if NIGHTLY
    or (dtype, dim) == (torch.float16, 64)
    or ((dtype, dim) == (torch.bfloat16, 128) and length in {65, 200})
]

BUILDS = [
    (arch, dim, dtype)
    for arch, by_day in (("sm_90a", 64), ("sm_80", 128))
    for dim, dtype in ((64, torch.float16), (128, torch.bfloat16))
    if NIGHTLY or dim == by_day
]


def right(
    rung: ladder.Rung,
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, ...],
    dtype: Any,
    causal: bool,
    sharpness: float = 1.0,
) -> bool:
    """Whether a rung's output is what float64 gives; `sharpness` multiplies the scores."""
    torch.manual_seed(size[2])
    q, k, v = (torch.randn(size).mul(factor).to(dtype) for factor in (sharpness, 1.0, 1.0))
    for module in (ladder, hopper):
        monkeypatch.setattr(
            module,
            "compile_kernel",
            lambda path, name, *, defines: EmulatedKernel(
                path, name, defines, read_only=(q, k, v), orders=("forward", 7)
            ),
        )
    monkeypatch.setattr(ladder, "_gpu", lambda _: H200)
    out = rung.run(q, k, v, causal).double()

    scores = q.double() @ k.double().transpose(2, 3) / math.sqrt(size[3])
    if causal:
        hidden = torch.ones(size[2], size[2], dtype=torch.bool).triu(1)
        scores.masked_fill_(hidden, -math.inf)
    reference = torch.softmax(scores, dim=-1) @ v.double()
    return bool((out - reference).norm() <= BOUNDS[dtype] * reference.norm())


@pytest.mark.skipif(bool(MISSING), reason=str(MISSING))
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize(("dtype", "dim", "length"), SIZES, ids=str)
@pytest.mark.parametrize("rung", CUDA_RUNGS, ids=lambda rung: rung.name)
def test_rungs_are_right(
    rung: ladder.Rung,
    dtype: Any,
    dim: int,
    causal: bool,
    length: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert right(rung, monkeypatch, (1, 2, length, dim), dtype, causal)


@pytest.mark.skipif(bool(MISSING), reason=str(MISSING))
@pytest.mark.parametrize("rung", CUDA_RUNGS, ids=lambda rung: rung.name)
def test_maxima_that_grow_by_much_and_by_little(
    rung: ladder.Rung, monkeypatch: pytest.MonkeyPatch
) -> None:
    for sharpness in (4.0, 30.0):
        assert right(rung, monkeypatch, (1, 1, 200, 64), torch.float16, False, sharpness)


@needs_nvrtc
@pytest.mark.parametrize(("arch", "dim", "dtype"), BUILDS)
@pytest.mark.parametrize("rung", CUDA_RUNGS, ids=lambda rung: rung.name)
def test_rungs_compile_for_every_architecture(
    rung: ladder.Rung, dim: int, dtype: Any, arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ladder.FOLDER / rung.file).read_text()
    (built_for,) = (line for line in text.splitlines() if line.startswith("// Architectures:"))
    if arch not in built_for:
        pytest.skip("not one of its architectures")
    found = []

    def compiled(path: Path, name: str, *, defines: Mapping[str, int]) -> Any:
        found.append(compile_kernel(path, name, arch=arch, defines=defines))
        return SimpleNamespace(launch=lambda *_, **__: None)

    for module in (ladder, hopper):
        monkeypatch.setattr(module, "compile_kernel", compiled)
    monkeypatch.setattr(ladder, "_gpu", lambda _: H200)
    tensor = torch.zeros(1, 1, 64, dim, dtype=dtype)
    rung.run(tensor, tensor, tensor, False)
    assert all(kernel.cubin.startswith(b"\x7fELF") for kernel in found)
    assert rung.name in {kernel.name for kernel in found}


def test_numbers_follow_the_order_and_files_exist() -> None:
    assert [rung.number for rung in ladder.RUNGS] == list(range(1, len(ladder.RUNGS) + 1))
    assert all((ladder.FOLDER / rung.file).is_file() for rung in ladder.RUNGS)


@pytest.mark.parametrize("rung", ladder.RUNGS, ids=lambda rung: rung.name)
def test_a_tensor_on_the_cpu_is_unsupported(rung: ladder.Rung) -> None:
    tensor = torch.zeros(1, 1, 4, 64, dtype=torch.float16)
    with pytest.raises(Unsupported, match="needs a CUDA device"):
        rung.run(tensor, tensor, tensor, False)


@pytest.mark.parametrize(
    ("length", "blocks", "keys"),
    [(4096, 64, 512), (512, 2048, 512), (65, 1, 64), (64, 1, 64), (1, 1, 64), (4096, 500, 4096)],
)
def test_splits_fill_the_chip_and_no_more(length: int, blocks: int, keys: int) -> None:
    assert ladder.keys_a_split(length, blocks, 132) == keys
