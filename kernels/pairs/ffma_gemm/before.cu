// C = A B^T in float16 with float32 sums, A and B row by row; a block takes 128 by 128 elements of
// C and copies the next tiles while it works on these. The products are FP32 multiply-adds, though
// the tensor cores would do them at ten times the rate.
// Architectures: sm_80, sm_90a.

#include <cuda_fp16.h>

constexpr int kTile = 128;  // rows and columns of C a block
constexpr int kDepth = 32;  // of K at a time
constexpr int kPitch = kDepth + 8;  // of a row in shared memory: eight rows reach all banks
constexpr int kChunk = 8;  // halves in 16 bytes
constexpr int kRowChunks = kDepth / kChunk;
constexpr int kThreads = 256;

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

struct alignas(16) Stage {
  __half a[kTile][kPitch];
  __half b[kTile][kPitch];
};

__device__ __forceinline__ void load_tile(__half (&tile)[kTile][kPitch],
                                          const __half* __restrict__ from, int depth) {
  const int first = threadIdx.x / kRowChunks;
  const int column = threadIdx.x % kRowChunks * kChunk;
#pragma unroll
  for (int i = 0; i < kTile; i += kThreads / kRowChunks) {
    const int row = first + i;
    const __half* source = from + static_cast<size_t>(row) * depth + column;
    cp_async_16(shared_address(&tile[row][column]), source);
  }
}

// A thread has eight by eight elements of C, sixteen rows and columns apart.
constexpr int kOwn = 8;
constexpr int kApart = kTile / kOwn;

__device__ __forceinline__ void load_rows(uint4 (&own)[kOwn], const __half (&tile)[kTile][kPitch],
                                          int first, int k) {
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    own[i] = *reinterpret_cast<const uint4*>(&tile[first + i * kApart][k]);
  }
}

__device__ __forceinline__ float2 floats(const uint4& halves, int pair) {
  return __half22float2(reinterpret_cast<const __half2*>(&halves)[pair]);
}

__device__ __forceinline__ void multiply(float (&sums)[kOwn][kOwn], const Stage& stage, int row,
                                         int column) {
#pragma unroll
  for (int k = 0; k < kDepth; k += kChunk) {
    uint4 a[kOwn];
    uint4 b[kOwn];
    load_rows(a, stage.a, row, k);
    load_rows(b, stage.b, column, k);
#pragma unroll
    for (int pair = 0; pair < kChunk / 2; ++pair) {
      float2 right[kOwn];
#pragma unroll
      for (int j = 0; j < kOwn; ++j) right[j] = floats(b[j], pair);
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        const float2 left = floats(a[i], pair);
#pragma unroll
        for (int j = 0; j < kOwn; ++j) {
          sums[i][j] = fmaf(left.y, right[j].y, fmaf(left.x, right[j].x, sums[i][j]));
        }
      }
    }
  }
}

// C has gridDim.y * kTile rows; `columns` is a multiple of kTile, `depth` of kDepth.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    gemm(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c,
         int columns, int depth) {
  __shared__ Stage stages[2];
  const int row = blockIdx.y * kTile;
  const int column = blockIdx.x * kTile;
  a += static_cast<size_t>(row) * depth;
  b += static_cast<size_t>(column) * depth;
  const int own_row = threadIdx.x / kApart;
  const int own_column = threadIdx.x % kApart;
  float sums[kOwn][kOwn] = {};

  const int steps = depth / kDepth;
  load_tile(stages[0].a, a, depth);
  load_tile(stages[0].b, b, depth);
  cp_async_commit();
  for (int step = 0; step < steps; ++step) {
    cp_async_wait<0>();
    __syncthreads();  // this step's tiles are here, and the other stage is free
    if (step + 1 < steps) {
      Stage& next = stages[(step + 1) % 2];
      load_tile(next.a, a + (step + 1) * kDepth, depth);
      load_tile(next.b, b + (step + 1) * kDepth, depth);
      cp_async_commit();
    }
    multiply(sums, stages[step % 2], own_row, own_column);
  }

#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      const size_t at = static_cast<size_t>(row + own_row + i * kApart) * columns;
      c[at + column + own_column + j * kApart] = __float2half(sums[i][j]);
    }
  }
}
