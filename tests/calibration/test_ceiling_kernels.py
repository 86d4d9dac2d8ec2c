"""The kernels behind measured roofs do what they are counted for: emulated, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from profkit.calibration.loads import loads
from profkit.calibration.loads.counts import Machine
from profkit.capture.target import Unsupported
from tests.emulator import emulate, missing
from tests.emulator.kernel import EmulatedKernel

KERNELS = Path(__file__).parents[2] / "profkit" / "calibration" / "loads"
pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.mark.parametrize(("grid", "count"), [(1, 1024), (3, 5000), (2, 7), (4, 4096)])
def test_the_copy_copies_all_and_nothing_else(grid: int, count: int) -> None:
    source = np.random.default_rng(1).standard_normal((count, 4)).astype(np.float32)
    source.flags.writeable = False
    copied = np.zeros_like(source)
    emulate(KERNELS / "copy.cu", "copy", grid, 256, [source, copied, count])
    np.testing.assert_array_equal(copied, source)


@pytest.mark.parametrize(("tiles", "repeats"), [(1, 1), (1, 3), (2, 2)])
def test_each_word_of_a_slice_is_read_as_often_as_is_counted(tiles: int, repeats: int) -> None:
    grid, slice_ = 2, tiles * 2048
    words = np.random.default_rng(2).integers(0, 2**32, (grid * slice_, 4), dtype=np.uint32)
    words.flags.writeable = False
    sums = np.zeros((grid, 512), np.uint32)
    emulate(KERNELS / "read.cu", "read", grid, 512, [words, sums, slice_, repeats])
    a_thread = words.reshape(grid, -1, 512, 4).sum(axis=(1, 3), dtype=np.uint64)
    np.testing.assert_array_equal(sums, (a_thread * repeats % 2**32).astype(np.uint32))


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_multiply_adds_are_as_many_as_is_counted(real: type[np.floating]) -> None:
    grid, steps = 2, 11
    start = np.random.default_rng(3).standard_normal(grid * 256 * 16).astype(real)
    end = np.zeros_like(start)
    a, b, c, d = 1.25, 0.5, 0.75, -0.25
    emulate(
        KERNELS / "multiply_add.cu", "multiply_add", grid, 256,
        [start, end, steps, *map(real, (a, b, c, d))],
        defines={"REAL": "float" if real is np.float32 else "double"},
    )  # fmt: skip
    # v -> c (a v + b) + d, which is k v + m: after n steps k^n v + m (k^n - 1) / (k - 1).
    k, m = a * c, b * c + d
    closed = k**steps * start.astype(float) + m * (k**steps - 1) / (k - 1)
    tolerance = 1e-5 if real is np.float32 else 1e-13
    np.testing.assert_allclose(end, closed, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("bf16", [False, True])
def test_mma_sync_multiplies_as_often_as_is_counted(bf16: bool) -> None:
    grid, steps = 1, 5
    generator = np.random.default_rng(4)
    a = generator.integers(-3, 4, (8, 64, 16)).astype(np.float32)
    b = generator.integers(-3, 4, (8, 32, 16)).astype(np.float32)
    out = np.zeros((grid, 8, 32), np.float32)
    emulate(
        KERNELS / "mma_sync.cu", "mma_sync", grid, 256,
        [bits(a, bf16=bf16), bits(b, bf16=bf16), out, steps], defines={"BF16": 1} if bf16 else {},
    )  # fmt: skip
    products = steps * np.einsum("wik,wjk->wij", a, b)
    # Lane l has rows l / 4 of each 8, and columns 2 (l % 4) and the next of each 8.
    lanes = products.reshape(8, 8, 8, 4, 4, 2).sum(axis=(1, 3, 5)).reshape(8, 32)
    np.testing.assert_array_equal(out[0], lanes)


def bits(values: np.ndarray, *, bf16: bool) -> np.ndarray:
    if bf16:
        return np.ascontiguousarray(values.view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(np.float16).view(np.uint16)


# The host's side of each load, on a made machine that is small enough to be emulated.
SMALL = Machine((9, 0), sm_count=1, l2_bytes=1 << 17, memory_bytes=1 << 22, device="cpu")


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        loads,
        "compile_kernel",
        lambda path, name, defines=None: EmulatedKernel(path, name, defines or {}),
    )
    for name, value in {"_FMA_STEPS": 160, "_MMA_STEPS": 3, "_L2_READ": 200_000}.items():
        monkeypatch.setattr(loads, name, value)


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize(
    ("name", "amounts"),
    [
        # 4 MiB / 8 = 512 KiB, read and written: three ways.
        ("dram", [2 * 512 * 1024] * 3),
        # Four slices of 128 KiB.
        ("dram_read", [512 * 1024]),
        # Two blocks of 32 KiB are half of 128 KiB of L2; 200000 / 65536 = 3 times.
        ("l2", [3 * 65536]),
        # 4 blocks of 256 threads of 16 values, two FMA of 2 FLOP each a step.
        ("fp32", [4 * 256 * 16 * 4 * 160]),
        ("fp64", [4 * 256 * 16 * 4 * 160]),
        # 2 blocks of 8 warps, 16 products of 16 by 8 by 16 each a step.
        ("tensor_fp16_mma_sync", [2 * 8 * 16 * 2 * 16 * 8 * 16 * 3]),
        ("tensor_bf16_mma_sync", [2 * 8 * 16 * 2 * 16 * 8 * 16 * 3]),
    ],
)
def test_a_load_launches_what_it_counts(name: str, amounts: list[float]) -> None:
    pytest.importorskip("torch", reason="loads are launched on torch's tensors")
    made = loads.loads(name, SMALL, 42)
    assert [load.amount for load in made] == amounts
    for load in made:
        assert not load.right()
        load.call()
        assert load.right(), load.method


@pytest.mark.parametrize(
    "name", ["tensor_fp64", "tensor_tf32", "tensor_bf16", "tensor_fp16", "tensor_int8"]
)
def test_a_product_is_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="products are torch's")
    monkeypatch.setattr(loads, "_SIZE", 128)
    monkeypatch.setattr(loads, "_FP64_SIZE", 128)
    (load,) = loads.loads(name, SMALL, 42)
    assert not load.right()
    load.call()
    assert load.right()
    assert load.amount == 2 * 128 * 128 * 128
    assert not torch.backends.cuda.matmul.allow_tf32


@pytest.mark.parametrize(
    ("name", "cc", "why"),
    [
        ("tensor_fp8", (8, 0), "needs CC 8.9"),
        ("tensor_bf16", (7, 5), "needs CC 8.0"),
        ("tensor_fp64", (8, 9), "no FP64 tensor cores"),
        ("tensor_fp16_mma_sync", (8, 0), "the same ceiling"),
    ],
)
def test_what_a_gpu_can_not_do_is_left_out(name: str, cc: tuple[int, int], why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        loads.loads(name, replace(SMALL, cc=cc), 42)
    with pytest.raises(Unsupported, match="four times its L2"):
        loads.loads("dram", replace(SMALL, l2_bytes=1 << 18), 42)
