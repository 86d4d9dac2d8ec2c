"""The stand-ins for inline PTX do what the instructions do, and see their misuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.emulator import Fault, NotEmulated, TensorMap, emulate, missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

Run = Callable[..., None]

FUNCTIONS = {
    "cp_async_16": ("(unsigned to, const void* from)", "cp.async.cg.shared.global"),
    "cp_async_16_zfill": (
        "(unsigned to, const void* from, bool real)",
        "cp.async.cg.shared.global",
    ),
    "cp_async_commit": ("()", "cp.async.commit_group"),
    "ldmatrix_x2": (
        "(unsigned (&r)[2], unsigned address)",
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16",
    ),
    "ldmatrix_x2_trans": (
        "(unsigned (&r)[2], unsigned address)",
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16",
    ),
    "ldmatrix_x4": (
        "(unsigned (&r)[4], unsigned address)",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
    ),
    "ldmatrix_x4_trans": (
        "(unsigned (&r)[4], unsigned address)",
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
    ),
    "mma_16816": (
        "(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2])",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    ),
    "mbarrier_init": ("(unsigned barrier, unsigned arrivals)", "mbarrier.init.shared::cta.b64"),
    "mbarrier_arrive": ("(unsigned barrier)", "mbarrier.arrive.shared::cta.b64"),
    "mbarrier_arrive_expect": (
        "(unsigned barrier, unsigned bytes)",
        "mbarrier.arrive.expect_tx.shared::cta.b64",
    ),
    "tma_load_3d": (
        "(unsigned to, const TensorMap* map, int x, int y, int z, unsigned barrier)",
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
    ),
    "tma_store_3d": (
        "(const TensorMap* map, int x, int y, int z, unsigned from)",
        "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group",
    ),
    "tma_store_commit": ("()", "cp.async.bulk.commit_group"),
    "tma_store_wait_read": ("()", "cp.async.bulk.wait_group.read 0"),
    "fence_proxy_async": ("()", "fence.proxy.async.shared::cta"),
    "named_barrier_sync": ("(int barrier, int threads)", "bar.sync"),
    "named_barrier_arrive": ("(int barrier, int threads)", "bar.arrive"),
    "wgmma_fence": ("()", "wgmma.fence.sync.aligned"),
    "wgmma_commit": ("()", "wgmma.commit_group.sync.aligned"),
}
WGMMA = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
PRELUDE = f"""
#include <cuda_fp16.h>
struct alignas(64) TensorMap {{ unsigned long long opaque[16]; }};
__device__ unsigned shared_address(const void* p) {{ return __cvta_generic_to_shared(p); }}
__device__ bool mbarrier_passed(unsigned barrier, unsigned parity) {{
  asm("mbarrier.try_wait.parity.shared::cta.b64");
}}
template <int N>
__device__ void cp_async_wait() {{ asm("cp.async.wait_group %0;" ::"n"(N)); }}
template <int N>
__device__ void wgmma_wait() {{ asm("wgmma.wait_group.sync.aligned %0;" ::"n"(N)); }}
__device__ void wgmma_ss(float (&d)[32], unsigned long long a, unsigned long long b, bool add) {{
  asm("{WGMMA}");
}}
__device__ void wgmma_rs(float (&d)[32], const unsigned (&a)[4], unsigned long long b, bool add) {{
  asm("{WGMMA}");
}}
""" + "\n".join(
    f'__device__ void {name}{parameters} {{ asm volatile("{ptx}"); }}'
    for name, (parameters, ptx) in FUNCTIONS.items()
)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the kernel `run` of a text that uses the functions above."""

    def run(text: str, *arguments: Any, block: int = 32, **options: Any) -> None:
        path = tmp_path / "kernel.cu"
        path.write_text(PRELUDE + '\n#line 1\nextern "C" __global__ void run' + text)
        emulate(path, "run", 1, block, arguments, **options)

    return run


def halves(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float16)


def bits(array: np.ndarray) -> np.ndarray:
    return array.view(np.uint16)


# ---- Ampere

MULTIPLY = """(const short* a, const short* b, float* c) {
  __shared__ __align__(16) short ta[16][16], tb[16][8];
  const int lane = threadIdx.x;
  cp_async_16(shared_address(&ta[lane / 2][lane % 2 * 8]), a + lane * 8);
  if (lane < 16) cp_async_16(shared_address(&tb[lane][0]), b + lane * 8);
  cp_async_commit();
  WAIT
  unsigned fa[4], fb[2];
  float d[4] = {c[0], c[0], c[0], c[0]};
  ldmatrix_x4(fa, shared_address(&ta[lane % 16][lane / 16 * 8]));
  ldmatrix_x2_trans(fb, shared_address(&tb[lane % 16][0]));
  mma_16816(d, fa, fb);
  for (int i = 0; i < 4; ++i) c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
}"""


def test_mma_multiplies_what_ldmatrix_brings(run: Run) -> None:
    a, b, c = halves(16, 16), halves(16, 8), np.full((16, 8), 3.0, np.float32)
    run(MULTIPLY.replace("WAIT", "cp_async_wait<0>(); __syncwarp();"), bits(a), bits(b), c)
    np.testing.assert_allclose(c, 3 + a.astype(float) @ b.astype(float), atol=1e-5)


def test_a_copy_that_nobody_waits_for_is_nan(run: Run) -> None:
    a, b, c = halves(16, 16), halves(16, 8), np.zeros((16, 8), np.float32)
    run(MULTIPLY.replace("WAIT", "__syncwarp();"), bits(a), bits(b), c)
    assert np.isnan(c).all()


def test_a_barrier_missing_after_the_wait_is_noticed(run: Run) -> None:
    text = """(const int* x, int* out) {
  __shared__ __align__(16) int tile[256];
  cp_async_16(shared_address(tile + 4 * threadIdx.x), x + 4 * threadIdx.x);
  cp_async_commit();
  cp_async_wait<0>();
  out[threadIdx.x] = tile[255 - threadIdx.x];
}"""
    x, out = np.arange(256, dtype=np.int32), np.zeros(64, np.int32)
    with pytest.raises(Fault, match="argument 1 depends on the order"):
        run(text, x, out, block=64)
    run(text.replace("<0>();", "<0>(); __syncthreads();"), x, out, block=64)
    np.testing.assert_array_equal(out, 255 - np.arange(64))


def test_copy_groups_arrive_in_turn_and_zfill_fills_with_zeros(run: Run) -> None:
    text = """(const int* x, int* out) {
  __shared__ __align__(16) int tile[3][4];
  for (int i = 0; i < 3; ++i) {
    cp_async_16_zfill(shared_address(tile[i]), x + 4 * i, i != 1);
    cp_async_commit();
  }
  cp_async_wait<1>();
  for (int i = 0; i < 12; ++i) out[i] = tile[i / 4][i % 4];
}"""
    x, out = np.arange(12, dtype=np.int32), np.zeros(12, np.int32)
    run(text, x, out, block=1)
    np.testing.assert_array_equal(out, [0, 1, 2, 3, 0, 0, 0, 0, -1, -1, -1, -1])


def test_ldmatrix_fragments(run: Run) -> None:
    text = """(const short* x, unsigned* out) {
  __shared__ __align__(16) short tile[32][8];
  for (int i = 0; i < 8; ++i) tile[threadIdx.x][i] = x[threadIdx.x * 8 + i];
  __syncwarp();
  unsigned r[12];
  const unsigned row = shared_address(tile[threadIdx.x]);
  ldmatrix_x4(reinterpret_cast<unsigned (&)[4]>(r[0]), row);
  ldmatrix_x4_trans(reinterpret_cast<unsigned (&)[4]>(r[4]), row);
  ldmatrix_x2(reinterpret_cast<unsigned (&)[2]>(r[8]), row);
  ldmatrix_x2_trans(reinterpret_cast<unsigned (&)[2]>(r[10]), row);
  for (int i = 0; i < 12; ++i) out[i * 32 + threadIdx.x] = r[i];
}"""
    x, out = np.arange(256, dtype=np.uint16).reshape(4, 8, 8), np.zeros((12, 32), np.uint32)
    run(text, x, out)
    pairs = out.view(np.uint16).reshape(12, 8, 8)  # lane l has elements 2 l and 2 l + 1
    np.testing.assert_array_equal(pairs[0:4], x)
    np.testing.assert_array_equal(pairs[4:8], x.transpose(0, 2, 1))
    np.testing.assert_array_equal(pairs[8:10], x[:2])
    np.testing.assert_array_equal(pairs[10:12], x[:2].transpose(0, 2, 1))


def test_a_row_that_is_not_aligned_is_noticed(run: Run) -> None:
    text = """(int* out) {
  __shared__ __align__(16) short tile[256];
  unsigned r[4];
  ldmatrix_x4(r, shared_address(tile + 4));
}"""
    with pytest.raises(Fault, match=r"line 4: ldmatrix: shared address .* not a multiple of 16"):
        run(text, np.zeros(1, np.int32))


def test_a_warp_with_ended_lanes_can_not_use_ldmatrix(run: Run) -> None:
    text = """(int* out) {
  __shared__ __align__(16) short tile[256];
  if (threadIdx.x == 5) return;
  unsigned r[4];
  ldmatrix_x4(r, shared_address(tile));
}"""
    with pytest.raises(Fault, match="ldmatrix needs threads 0 to 31, and 5 has ended"):
        run(text, np.zeros(1, np.int32))


def test_ptx_that_is_not_the_stand_ins_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cu"
    path.write_text(
        "__device__ void ldmatrix_x4_trans(unsigned (&r)[4], unsigned address) {\n"
        '  asm("ldmatrix.sync.aligned.m8n8.x4.shared.b16");\n}\n'
        'extern "C" __global__ void run() {}\n'
    )
    with pytest.raises(NotEmulated, match=r"kernel\.cu:2: ldmatrix_x4_trans\(\) must be .*trans"):
        emulate(path, "run", 1, 32, [])


# ---- Hopper

LOAD = """(const __grid_constant__ TensorMap map, short* image, int x, int y, int z, int bytes) {
  __shared__ alignas(1024) unsigned char tile[4096];
  __shared__ unsigned long long full;
  const unsigned barrier = shared_address(&full);
  if (threadIdx.x == 0) mbarrier_init(barrier, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect(barrier, bytes);
    tma_load_3d(shared_address(tile), &map, x, y, z, barrier);
  }
  WAIT
  for (int i = threadIdx.x; i < 2048; i += 32) {
    image[i] = reinterpret_cast<const short*>(tile)[i];
  }
}"""
WAIT = "while (!mbarrier_passed(barrier, 0)) { }"


def swizzle(rows: np.ndarray) -> np.ndarray:
    """Rows of 128 bytes from a 1024-byte boundary: chunk c of row r stands at c ^ r % 8."""
    chunks = rows.reshape(rows.shape[0], 8, -1)
    return np.stack([row[np.arange(8) ^ r % 8] for r, row in enumerate(chunks)]).reshape(rows.shape)


@pytest.mark.parametrize("first", [(0, 0, 0), (64, 5, 1), (-8, -3, 0), (0, 0, 2)])
def test_tma_loads_a_swizzled_box_with_zeros_outside(run: Run, first: tuple[int, ...]) -> None:
    tensor = np.arange(2 * 20 * 72, dtype=np.int16).reshape(2, 20, 72) + 1
    image = np.zeros((32, 64), np.int16)
    run(LOAD.replace("WAIT", WAIT), TensorMap(tensor, (1, 32, 64)), image, *first, 4096)
    x, y, z = first
    padded = np.zeros((4, 60, 160), np.int16)
    padded[:2, 8:28, 16:88] = tensor
    np.testing.assert_array_equal(image, swizzle(padded[z, 8 + y :, 16 + x :][:32, :64]))


def test_a_load_that_nobody_waits_for_is_noticed(run: Run) -> None:
    tensor, image = np.zeros((1, 32, 64), np.int16), np.zeros((32, 64), np.int16)
    with pytest.raises(Fault, match="a block ends while a TMA load is on its way"):
        run(LOAD.replace("WAIT", ""), TensorMap(tensor, (1, 32, 64)), image, 0, 0, 0, 4096)


def test_a_wrong_count_of_bytes_is_a_deadlock(run: Run) -> None:
    tensor, image = np.zeros((1, 32, 64), np.int16), np.zeros((32, 64), np.int16)
    with pytest.raises(Fault, match=r"deadlock.* wait at line 11 \(mbarrier.try_wait\)"):
        run(LOAD.replace("WAIT", WAIT), TensorMap(tensor, (1, 32, 64)), image, 0, 0, 0, 4095)


def test_maps_that_cuda_refuses() -> None:
    with pytest.raises(Fault, match="strides are multiples of 16 bytes"):
        TensorMap(np.zeros((2, 20, 65), np.int16), (1, 32, 64))
    with pytest.raises(Fault, match="256 bytes a row, swizzled by 128"):
        TensorMap(np.zeros((2, 20, 128), np.int16), (1, 32, 128))


STORE = """(const __grid_constant__ TensorMap map, int x, int y) {
  __shared__ alignas(1024) unsigned char tile[2048];
  for (int i = threadIdx.x; i < 1024; i += 32) reinterpret_cast<short*>(tile)[i] = i + 1;
  FENCE
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_store_3d(&map, x, y, 0, shared_address(tile));
    tma_store_commit();
    WAIT
  }
}"""


def test_tma_stores_what_lies_inside_of_the_tensor(run: Run) -> None:
    tensor = np.zeros((1, 20, 72), np.int16)
    text = STORE.replace("FENCE", "fence_proxy_async();").replace("WAIT", "tma_store_wait_read();")
    run(text, TensorMap(tensor, (1, 16, 64)), 16, 10)
    expected = np.zeros_like(tensor)
    expected[0, 10:, 16:] = swizzle(1 + np.arange(1024, dtype=np.int16).reshape(16, 64))[:10, :56]
    np.testing.assert_array_equal(tensor, expected)


def test_a_store_without_a_fence_or_a_wait_is_noticed(run: Run) -> None:
    tensor = TensorMap(np.zeros((1, 20, 72), np.int16), (1, 16, 64))
    with pytest.raises(Fault, match="line 7: a TMA store without a fence_proxy_async"):
        run(STORE.replace("FENCE", "").replace("WAIT", ""), tensor, 0, 0)
    with pytest.raises(Fault, match="thread 0 ends without a wait for its TMA stores"):
        run(STORE.replace("FENCE", "fence_proxy_async();").replace("WAIT", ""), tensor, 0, 0)


# D (64 by 64) = A (64 by K) B. Operands come as the bytes that shared memory is to hold.
PRODUCT = """(const uint4* a, const uint4* b, float* d, unsigned long long a_step,
             unsigned long long b_step, unsigned long long a_layout, unsigned long long b_layout,
             int steps) {
  extern __shared__ __align__(1024) uint4 operands[];
  uint4* const b_tile = operands + 1024;
  for (int i = threadIdx.x; i < 1024; i += 128) { operands[i] = a[i]; b_tile[i] = b[i]; }
  __syncthreads();
  const unsigned a_at = shared_address(operands), b_at = shared_address(b_tile);
  float sum[32];
  FENCE
  for (int i = 0; i < steps; ++i) {
    wgmma_ss(sum, a_layout | (a_at + i * a_step) >> 4, b_layout | (b_at + i * b_step) >> 4, i > 0);
  }
  wgmma_commit();
  WAIT
  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
  for (int i = 0; i < 32; ++i) d[(row + i / 2 % 2 * 8) * 64 + i / 4 * 8 + column + i % 2] = sum[i];
}""".replace("const unsigned a_at", "const unsigned long long a_at")
COMPLETE = PRODUCT.replace("FENCE", "wgmma_fence();").replace("WAIT", "wgmma_wait<0>();")


def layout(mode: int, leading: int, stride: int) -> np.uint64:
    return np.uint64(mode << 62 | stride >> 4 << 32 | leading >> 4 << 16)


def room(data: np.ndarray) -> np.ndarray:
    filled = np.full(8192, -1, np.int16)
    filled[: data.size] = data.reshape(-1).view(np.int16)
    return filled


def k_major(matrix: np.ndarray) -> np.ndarray:
    """Rows of 64 elements along K, swizzled by 128 bytes: eight rows are 1024 bytes."""
    return swizzle(matrix)


def test_wgmma_multiplies_k_major_operands(run: Run) -> None:
    a, b, d = halves(64, 64), halves(64, 64).T.copy(), np.zeros((64, 64), np.float32)
    both = layout(1, 16, 1024)
    steps = (np.uint64(32), np.uint64(32), both, both, 4)
    data = (room(k_major(a)), room(k_major(b)), d, *steps)
    run(COMPLETE, *data, block=128, shared_bytes=32768)
    np.testing.assert_allclose(d, a.astype(float) @ b.T.astype(float), atol=1e-4)


def test_wgmma_without_swizzle(run: Run) -> None:
    a, b, d = halves(64, 16), halves(64, 16), np.zeros((64, 64), np.float32)

    def cores(matrix: np.ndarray) -> np.ndarray:  # 8 by 8, the two along K side by side
        return matrix.reshape(8, 8, 2, 8).transpose(0, 2, 1, 3).copy()

    both = layout(0, 128, 256)
    steps = (np.uint64(0), np.uint64(0), both, both, 1)
    run(COMPLETE, room(cores(a)), room(cores(b)), d, *steps, block=128, shared_bytes=32768)
    np.testing.assert_allclose(d, a.astype(float) @ b.T.astype(float), atol=1e-4)


FROM_REGISTERS = """(const unsigned short* a, const uint4* b, float* d, unsigned long long layout,
                    int step) {
  extern __shared__ __align__(1024) uint4 tile[];
  for (int i = threadIdx.x; i < 1024; i += 128) tile[i] = b[i];
  __syncthreads();
  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
  float sum[32] = {};
  for (int k = 0; k < 4; ++k) {
    unsigned part[4];
    for (int i = 0; i < 4; ++i) {
      part[i] = *reinterpret_cast<const unsigned*>(
          a + (row + i % 2 * 8) * 64 + 16 * k + column + i / 2 * 8);
    }
    wgmma_fence();
    wgmma_rs(sum, part, layout | (shared_address(tile) + k * step) >> 4, true);
    wgmma_commit();
    wgmma_wait<0>();
  }
  for (int i = 0; i < 32; ++i) d[(row + i / 2 % 2 * 8) * 64 + i / 4 * 8 + column + i % 2] = sum[i];
}"""


def test_wgmma_multiplies_registers_by_an_mn_major_operand(run: Run) -> None:
    a, b, d = halves(64, 64), halves(64, 64), np.zeros((64, 64), np.float32)
    tile = room(swizzle(b))  # a row is a k, 64 elements along N
    block = {"block": 128, "shared_bytes": 16384}
    run(FROM_REGISTERS, bits(a), tile, d, layout(1, 8192, 1024), 2048, **block)
    np.testing.assert_allclose(d, a.astype(float) @ b.astype(float), atol=1e-4)


def test_accumulators_are_nan_until_the_wait(run: Run) -> None:
    d, both = np.zeros((64, 64), np.float32), layout(1, 16, 1024)
    a = room(halves(64, 64))
    steps = (np.uint64(32), np.uint64(32), both, both, 4)
    options = {"block": 128, "shared_bytes": 32768}
    text = PRODUCT.replace("FENCE", "wgmma_fence();")
    late = text.replace("WAIT", "").replace("+ i % 2] = sum[i];", "+ i % 2] = sum[i]; WAIT")
    run(late.replace("WAIT", "wgmma_wait<0>();"), a, a, d, *steps, **options)
    assert np.isnan(d).all()
    with pytest.raises(Fault, match="warpgroup 0 ends without a wait for its wgmma"):
        run(text.replace("WAIT", ""), a, a, d, *steps, **options)
    with pytest.raises(Fault, match=r"line 12: a wgmma without a wgmma\.fence"):
        run(PRODUCT.replace("FENCE", "").replace("WAIT", ""), a, a, d, *steps, **options)


def test_writes_under_a_wgmma_are_noticed(run: Run) -> None:
    d, both = np.zeros((64, 64), np.float32), layout(1, 16, 1024)
    a = room(halves(64, 64))
    steps = (np.uint64(32), np.uint64(32), both, both, 4)
    options = {"block": 128, "shared_bytes": 32768}
    changed = "operands[threadIdx.x].x += 1; wgmma_wait<0>();"
    text = PRODUCT.replace("FENCE", "wgmma_fence();")
    with pytest.raises(Fault, match="line 12: shared memory changed while a wgmma read it"):
        run(text.replace("WAIT", changed), a, a, d, *steps, **options)
    with pytest.raises(Fault, match="accumulators were written while a wgmma was at work"):
        run(text.replace("WAIT", "sum[3] = 0; wgmma_wait<0>();"), a, a, d, *steps, **options)


def test_named_barriers_pair_producers_with_consumers(run: Run) -> None:
    text = """(int* out) {
  __shared__ int value[64];
  const int lane = threadIdx.x % 64;
  for (int i = 0; i < 3; ++i) {
    if (threadIdx.x < 64) {
      named_barrier_sync(2, 128);
      value[lane] = 10 * i + lane;
      named_barrier_arrive(1, 128);
    } else {
      named_barrier_arrive(2, 128);
      named_barrier_sync(1, 128);
      out[i * 64 + lane] = value[63 - lane];
    }
  }
}"""
    out = np.zeros((3, 64), np.int32)
    run(text, out, block=128, orders=("forward", "reverse", 1, 2))
    np.testing.assert_array_equal(out, 10 * np.arange(3)[:, None] + 63 - np.arange(64))


def test_an_mbarrier_must_be_initialised(run: Run) -> None:
    text = "() { __shared__ unsigned long long b; mbarrier_arrive(shared_address(&b)); }"
    with pytest.raises(Fault, match=r"line 1: mbarrier\.arrive: the mbarrier .* not initialised"):
        run(text)


def test_phases_of_an_mbarrier(run: Run) -> None:
    text = """(int* out) {
  __shared__ unsigned long long storage;
  __shared__ int value;
  const unsigned barrier = shared_address(&storage);
  if (threadIdx.x == 0) mbarrier_init(barrier, 31);
  __syncthreads();
  for (int phase = 0; phase < 4; ++phase) {
    if (threadIdx.x == 0) {
      while (!mbarrier_passed(barrier, phase % 2)) { }
      out[phase] = atomicAdd(&value, 0);
    } else {
      if (threadIdx.x == 1) value = phase;
      mbarrier_arrive(barrier);
      while (!mbarrier_passed(barrier, phase % 2)) { }
    }
    __syncwarp();
  }
}"""
    out = np.zeros(4, np.int32)
    run(text, out, orders=("forward", "reverse", 3))
    np.testing.assert_array_equal(out, np.arange(4))


def test_the_swizzle_is_its_own_inverse() -> None:
    rows = np.arange(32 * 64).reshape(32, 64)
    np.testing.assert_array_equal(swizzle(swizzle(rows)), rows)
    assert math.prod(rows.shape) == len(np.unique(swizzle(rows)))
