"""The emulator runs right kernels rightly, and sees what is wrong with wrong ones."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.emulator import Fault, NotEmulated, emulate, missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


class Runner:
    """Runs the kernel `run` of a text."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self, text: str, *arguments: Any, grid: Any = 1, block: Any = 32, **options: Any
    ) -> None:
        path = self.folder / "kernel.cu"
        path.write_text(text, encoding="utf-8")
        emulate(path, "run", grid, block, arguments, **options)


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


SCALE = """
extern "C" __global__ void run(const float* x, float* out, int count, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = factor * x[i];
}
"""


def test_a_grid_writes_its_array_in_place(run: Runner) -> None:
    x, out = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    run(SCALE, x, out, 1000, 2.0, grid=4, block=256)
    np.testing.assert_array_equal(out, 2 * x)


def test_only_the_named_blocks_run(run: Runner) -> None:
    x, out = np.ones(1000, np.float32), np.zeros(1000, np.float32)
    run(SCALE, x, out, 1000, 2.0, grid=4, block=256, blocks=[3, 1])
    np.testing.assert_array_equal(np.unique(np.flatnonzero(out) // 256), [1, 3])


def test_wide_arguments(run: Runner) -> None:
    text = 'extern "C" __global__ void run(double* out, long long a, double b) { *out = a + b; }'
    out = np.zeros(1)
    run(text, out, ctypes.c_int64(2**40), np.float64(0.5), block=1)
    assert out[0] == 2**40 + 0.5
    with pytest.raises(Fault, match="argument 1 is i4 or u4, the parameter i8"):
        run(text, out, 1, ctypes.c_double(0.5))


def test_an_access_past_the_end_is_reported_with_its_line(run: Runner) -> None:
    x, out = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
    with pytest.raises(Fault, match=r"line 4, .*0 bytes past the end of argument 0"):
        run(SCALE, x, out, 1024, 2.0, grid=4, block=256)


def test_a_write_just_past_the_end_is_noticed(run: Runner) -> None:
    out = np.zeros(3, np.float32)
    with pytest.raises(Fault, match="argument 0: a write 0 bytes past its end"):
        run('extern "C" __global__ void run(float* out) { out[threadIdx.x] = 1; }', out, block=4)


def test_a_read_only_array_can_not_be_written(run: Runner) -> None:
    x = np.zeros(4, np.float32)
    x.flags.writeable = False
    with pytest.raises(Fault, match="argument 0, which is read-only"):
        run('extern "C" __global__ void run(float* x) { x[threadIdx.x] = 1; }', x, block=4)


def test_a_misaligned_vector_load_is_noticed(run: Runner) -> None:
    text = """
extern "C" __global__ void run(const float* x, float4* out) {
  *out = *reinterpret_cast<const float4*>(x + 1);
}
"""
    x, out = np.zeros(8, np.float32), np.zeros(4, np.float32)
    with pytest.raises(Fault, match=r"line 3: a misaligned access.*4 past a multiple of 16"):
        run(text, x, out, block=1)


def test_an_index_outside_of_shared_memory_is_noticed(run: Runner) -> None:
    text = """
extern "C" __global__ void run(float* out) {
  __shared__ float tile[4][8];
  tile[1][threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[1][0];
}
"""
    run(text, np.zeros(8, np.float32), block=8)
    with pytest.raises(Fault, match=r"line 4: index 8 is outside of 'float \[8\]'"):
        run(text, np.zeros(9, np.float32), block=9)


REVERSED = """
extern "C" __global__ void run(const int* x, int* out) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = x[threadIdx.x];
#ifndef WRONG
  __syncthreads();
#endif
  out[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
"""


def test_dynamic_shared_memory_and_a_barrier(run: Runner) -> None:
    x, out = np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
    run(REVERSED, x, out, block=256, shared_bytes=1024)
    np.testing.assert_array_equal(out, x[::-1])


def test_a_missing_barrier_is_noticed(run: Runner) -> None:
    x, out = np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
    with pytest.raises(Fault, match="argument 1 depends on the order"):
        run(REVERSED, x, out, block=256, shared_bytes=1024, defines={"WRONG": 1})


def test_too_little_dynamic_shared_memory_is_noticed(run: Runner) -> None:
    x, out = np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
    with pytest.raises(Fault, match="past the end of dynamic shared memory"):
        run(REVERSED, x, out, block=256, shared_bytes=1020)


def test_shared_memory_that_nobody_wrote_is_nan(run: Runner) -> None:
    text = """
extern "C" __global__ void run(float* out) {
  __shared__ float tile[32];
  if (blockIdx.x == 0) tile[threadIdx.x] = 1;
  out[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x];
}
"""
    out = np.zeros(64, np.float32)
    run(text, out, grid=2)
    np.testing.assert_array_equal(out, [1.0] * 32 + [np.nan] * 32)


def test_a_barrier_that_some_never_reach_is_a_deadlock(run: Runner) -> None:
    text = """
extern "C" __global__ void run(int* out) {
  if (threadIdx.x < 32) __syncthreads();
  __syncwarp();
  if (threadIdx.x >= 32) __shfl_sync(0xffffffffu, 1, 0);
  if (threadIdx.x == 63) return;
  __syncthreads();
  *out = 1;
}
"""
    with pytest.raises(Fault, match=r"line 7: __syncthreads here, while .* line 3"):
        run(text, np.zeros(1, np.int32), block=64)
    text = (
        'extern "C" __global__ void run(int* out) { if (threadIdx.x) __syncwarp(); *out = 1; '
        "__shfl_sync(~0u, 1, 0); }"
    )
    with pytest.raises(
        Fault,
        match=r"deadlock.*threads 0-0 wait at line 1 \(__shfl_sync\); "
        r"threads 1-31 wait at line 1 \(__syncwarp\)",
    ):
        run(text, np.zeros(1, np.int32))


def test_shuffles_and_votes(run: Runner) -> None:
    text = """
extern "C" __global__ void run(int* out, double* wide) {
  const int lane = threadIdx.x;
  out[lane] = __shfl_sync(~0u, lane, 5);
  out[32 + lane] = __shfl_up_sync(~0u, lane, 1, 8);
  out[64 + lane] = __shfl_down_sync(~0u, lane, 3);
  out[96 + lane] = __shfl_xor_sync(~0u, lane, 16);
  out[128 + lane] = __ballot_sync(~0u, lane & 1);
  out[160 + lane] = __reduce_add_sync(~0u, lane);
  out[192 + lane] = __any_sync(~0u, lane == 3) + 2 * __all_sync(~0u, lane < 31);
  if (lane < 16) out[224 + lane] = __shfl_xor_sync(0xffffu, lane, 1);
  else out[224 + lane] = __shfl_xor_sync(0xffff0000u, lane, 2);
  wide[lane] = __shfl_sync(~0u, 0.5 + lane, lane + 1, 16);
}
"""
    out, wide = np.zeros((8, 32), np.int32), np.zeros(32)
    run(text, out, wide)
    lane = np.arange(32)
    np.testing.assert_array_equal(out[0], 5)
    np.testing.assert_array_equal(out[1], np.where(lane % 8, lane - 1, lane))
    np.testing.assert_array_equal(out[2], np.where(lane < 29, lane + 3, lane))
    np.testing.assert_array_equal(out[3], lane ^ 16)
    np.testing.assert_array_equal(out[4].view(np.uint32), 0xAAAAAAAA)
    np.testing.assert_array_equal(out[5], 496)
    np.testing.assert_array_equal(out[6], 1)
    np.testing.assert_array_equal(out[7], np.where(lane < 16, lane ^ 1, lane ^ 2))
    np.testing.assert_array_equal(wide, 0.5 + lane // 16 * 16 + (lane + 1) % 16)


def test_atomics_on_global_and_shared_memory(run: Runner) -> None:
    text = """
extern "C" __global__ void run(float* sum, unsigned long long* count, int* largest) {
  __shared__ int shared;
  if (threadIdx.x == 0) shared = 0;
  __syncthreads();
  atomicAdd(&shared, 1);
  atomicMax(largest, blockIdx.x * blockDim.x + threadIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(sum, 0.5f * shared);
    atomicAdd(count, shared);
  }
}
"""
    total, count, largest = np.zeros(1, np.float32), np.zeros(1, np.uint64), np.zeros(1, np.int32)
    run(text, total, count, largest, grid=3, block=100)
    assert (total[0], count[0], largest[0]) == (150, 300, 299)


def test_atomics_may_depend_on_the_order_by_default(run: Runner) -> None:
    text = """
extern "C" __global__ void run(int* next, int* out) { out[threadIdx.x] = atomicAdd(next, 1); }
"""
    out = np.zeros(32, np.int32)
    run(text, np.zeros(1, np.int32), out)
    np.testing.assert_array_equal(out, np.arange(32))
    with pytest.raises(Fault, match="argument 1 depends on the order"):
        run(text, np.zeros(1, np.int32), out, exact=True)


def test_a_kernel_that_there_is_not(run: Runner) -> None:
    with pytest.raises(Fault, match="has no __global__ function run"):
        run('extern "C" __global__ void other() {}')


def test_arguments_must_fit_the_parameters(run: Runner) -> None:
    x, out = np.zeros(4, np.float32), np.zeros(4)
    with pytest.raises(Fault, match=r"argument 1 is \*f8 .*the parameter \*f4"):
        run(SCALE, x, out, 4, 2.0)
    with pytest.raises(Fault, match="3 arguments for 4 parameters"):
        run(SCALE, x, x, 4)


def test_a_kernel_that_does_not_compile_shows_the_compilers_message(run: Runner) -> None:
    with pytest.raises(Fault, match=r"kernel\.cu:1:.*nonsense"):
        run('extern "C" __global__ void run(float* out) { nonsense(); }', np.zeros(1, np.float32))


def test_inline_ptx_without_a_stand_in_is_named(run: Runner) -> None:
    text = """
__device__ void unheard_of(int x) { asm volatile("nop;"); }
extern "C" __global__ void run() { unheard_of(1); }
"""
    with pytest.raises(NotEmulated, match=r"kernel\.cu:2: unheard_of\(\) is inline PTX"):
        run(text)


def test_a_kernel_that_does_not_end_is_stopped(run: Runner) -> None:
    text = 'extern "C" __global__ void run(volatile int* flag) { while (!*flag) { } }'
    with pytest.raises(Fault, match=r"runs for more than 0\.2 s"):
        run(text, np.zeros(1, np.int32), seconds=0.2)
