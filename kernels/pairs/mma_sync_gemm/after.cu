// C = A B^T in float16 with float32 sums, A and B row by row; a block takes 128 by 256 elements of
// C on the tensor cores, fed by asynchronous copies in four stages. The products are wgmma: each of
// two warpgroups multiplies 64 by 256 elements straight from shared memory.
// Architectures: sm_90a.

#include <cuda_fp16.h>

constexpr int kRows = 128;  // of C a block
constexpr int kColumns = 256;
constexpr int kDepth = 64;  // of K at a time: 128 bytes
constexpr int kChunk = 8;   // halves in 16 bytes
constexpr int kRowChunks = kDepth / kChunk;
constexpr int kStages = 4;
constexpr int kThreads = 256;
constexpr int kBand = 16;  // row tiles that run side by side, for reuse in L2
constexpr unsigned kRowBytes = kDepth * sizeof(__half);
constexpr unsigned kBytesA = kRows * kRowBytes;
constexpr unsigned kStageBytes = kBytesA + kColumns * kRowBytes;
constexpr int kGroupRows = 64;  // of a warpgroup
constexpr int kSums = kGroupRows * kColumns / 128;

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void cp_async_16(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// Makes a thread's copies to shared memory visible to wgmma.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Orders a warpgroup's register writes before its next wgmma.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most kPending of the latest groups are unfinished.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// No instruction: keeps the compiler from moving uses of the sums across a wait.
template <int kCount>
__device__ __forceinline__ void hold(float (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}

#define HOLD_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define HOLD_16(d, i) HOLD_4(d, i), HOLD_4(d, i + 4), HOLD_4(d, i + 8), HOLD_4(d, i + 12)
#define HOLD_64(d, i) HOLD_16(d, i), HOLD_16(d, i + 16), HOLD_16(d, i + 32), HOLD_16(d, i + 48)

// d += A B^T for A of 64 rows by 16 and B of 256 rows by 16, both K-major; d = A B^T where
// `accumulate` is false.
__device__ __forceinline__ void wgmma_ss(float (&d)[128], unsigned long long a,
                                         unsigned long long b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
      "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
      "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "
      "%60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, "
      "%72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, "
      "%84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, "
      "%108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, "
      "%120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, p, 1, 1, 0, 0;\n}"
      : HOLD_64(d, 0), HOLD_64(d, 64)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
}

// A tile lies row by row; within a row, 16-byte chunk i stands in place i ^ (row % 8).
__device__ __forceinline__ unsigned swizzled(int row, int chunk) {
  return row * kRowBytes + ((chunk ^ row % 8) << 4);
}

template <int kTileRows>
__device__ __forceinline__ void load_tile(unsigned tile, const __half* __restrict__ from,
                                          int depth) {
  const int first = threadIdx.x / kRowChunks;
  const int chunk = threadIdx.x % kRowChunks;
#pragma unroll
  for (int i = 0; i < kTileRows; i += kThreads / kRowChunks) {
    const int row = first + i;
    const __half* source = from + static_cast<size_t>(row) * depth + chunk * kChunk;
    cp_async_16(tile + swizzled(row, chunk), source);
  }
}

struct Tile {
  int row;
  int column;
};

__device__ __forceinline__ Tile tile_of(int block, int row_tiles, int column_tiles) {
  const int first = block / (kBand * column_tiles) * kBand;
  const int within = block % (kBand * column_tiles);
  const int band = min(kBand, row_tiles - first);
  return {(first + within % band) * kRows, within / band * kColumns};
}

// A tile for wgmma: its address, the 1024 bytes from eight rows to the next eight, both in units of
// 16 bytes, and the swizzle over 128 bytes.
__device__ __forceinline__ unsigned long long descriptor(unsigned address) {
  return (address & 0x3ffff) >> 4 | 1ull << 16 | 1024ull / 16 << 32 | 1ull << 62;
}

__device__ __forceinline__ void multiply(float (&sums)[kSums], unsigned stage, int group,
                                         bool accumulate) {
  const unsigned long long a = descriptor(stage + group * kGroupRows * kRowBytes);
  const unsigned long long b = descriptor(stage + kBytesA);
#pragma unroll
  for (int k = 0; k < kDepth; k += 16) {
    const unsigned long long offset = k * sizeof(__half) / 16;
    wgmma_ss(sums, a + offset, b + offset, accumulate || k > 0);
  }
}

__device__ __forceinline__ void store(const float (&sums)[kSums], __half* __restrict__ c,
                                      int columns) {
  const int warp = threadIdx.x / 32 % 4;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < kColumns / 8; ++j) {
    __half* to = c + static_cast<size_t>(16 * warp + lane / 4) * columns + 8 * j + lane % 4 * 2;
    *reinterpret_cast<__half2*>(to) = __floats2half2_rn(sums[4 * j], sums[4 * j + 1]);
    *reinterpret_cast<__half2*>(to + static_cast<size_t>(8) * columns) =
        __floats2half2_rn(sums[4 * j + 2], sums[4 * j + 3]);
  }
}

// `rows` is a multiple of kRows, `columns` of kColumns, `depth` of kDepth; a block for each tile.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    gemm(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c,
         int rows, int columns, int depth) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const unsigned stages = shared_address(shared);
  const Tile tile = tile_of(blockIdx.x, rows / kRows, columns / kColumns);
  a += static_cast<size_t>(tile.row) * depth;
  b += static_cast<size_t>(tile.column) * depth;
  const int group = threadIdx.x / 128;
  float sums[kSums];

  const int steps = depth / kDepth;
  const auto load = [&](int step) {
    if (step < steps) {
      const unsigned stage = stages + step % kStages * kStageBytes;
      load_tile<kRows>(stage, a + step * kDepth, depth);
      load_tile<kColumns>(stage + kBytesA, b + step * kDepth, depth);
    }
    cp_async_commit();  // empty groups keep the count of the wait right
  };
  for (int step = 0; step < kStages - 2; ++step) load(step);
  for (int step = 0; step < steps; ++step) {
    cp_async_wait<kStages - 3>();
    fence_proxy_async();
    __syncthreads();  // this step's tiles are here, and the stage of two steps before is free
    wgmma_fence();
    multiply(sums, stages + step % kStages * kStageBytes, group, step > 0);
    wgmma_commit();
    load(step + kStages - 2);
    wgmma_wait<1>();
  }
  wgmma_wait<0>();
  hold(sums);

  const size_t first_row = tile.row + group * kGroupRows;
  store(sums, c + first_row * columns + tile.column, columns);
}
