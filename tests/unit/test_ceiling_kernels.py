"""The kernels behind measured roofs do what they are counted for: emulated, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.emulator import emulate, missing

KERNELS = Path(__file__).parents[2] / "profkit" / "capture" / "ceilings"
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
def test_multiply_adds_are_as_many_as_is_counted(real: type) -> None:
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
