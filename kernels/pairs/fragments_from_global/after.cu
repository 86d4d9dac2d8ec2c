// C = A B^T in float16 with float32 sums on the tensor cores, A and B row by row; a warp has 64 by
// 32 elements of C. Asynchronous copies bring the operands of the next step to shared memory, 16
// bytes at a time, while the tensor cores work on the operands of this step.
//
// Architectures: sm_80, sm_90a.

#include <cuda_fp16.h>

constexpr int kThreads = 256;
constexpr int kRows = 128;  // of C a block
constexpr int kColumns = 128;
constexpr int kDepth = 32;  // of K at a time
constexpr int kPitch = kDepth + 8;  // of a row in shared memory: eight rows reach all banks
constexpr int kChunk = 8;  // halves in 16 bytes
constexpr int kRowTiles = 4;  // of 16 rows a warp
constexpr int kColumnTiles = 4;  // of 8 columns a warp
constexpr int kWarpRows = 16 * kRowTiles;
constexpr int kWarpColumns = 8 * kColumnTiles;

__device__ __forceinline__ void mma_16816(float (&d)[4], const unsigned (&a)[4],
                                          const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ unsigned two_halves(const __half* from) {
  return *reinterpret_cast<const unsigned*>(from);
}

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
  __half a[kRows][kPitch];
  __half b[kColumns][kPitch];
};

__device__ __forceinline__ void load_rows(__half (&tile)[kRows][kPitch], const __half* from,
                                          int depth) {
#pragma unroll
  for (int i = threadIdx.x; i < kRows * kDepth / kChunk; i += kThreads) {
    const int row = i / (kDepth / kChunk);
    const int chunk = i % (kDepth / kChunk) * kChunk;
    cp_async_16(shared_address(&tile[row][chunk]), from + row * depth + chunk);
  }
}

// C has gridDim.y * kRows rows and gridDim.x * kColumns columns; `depth` is a multiple of kDepth.
extern "C" __global__ void __launch_bounds__(kThreads)
    projection(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c,
               int columns, int depth) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int group = lane / 4;
  const int pair = lane % 4 * 2;
  const int row = warp % 2 * kWarpRows + group;
  const int column = warp / 2 * kWarpColumns + group;
  a += blockIdx.y * kRows * depth;
  b += blockIdx.x * kColumns * depth;
  __shared__ Stage stages[2];
  float sums[kRowTiles][kColumnTiles][4] = {};

  load_rows(stages[0].a, a, depth);
  load_rows(stages[0].b, b, depth);
  cp_async_commit();
  for (int k = 0; k < depth; k += kDepth) {
    cp_async_wait<0>();
    __syncthreads();  // this step's operands are here, and the other stage is free
    if (k + kDepth < depth) {
      Stage& next = stages[(k / kDepth + 1) % 2];
      load_rows(next.a, a + k + kDepth, depth);
      load_rows(next.b, b + k + kDepth, depth);
    }
    cp_async_commit();
    const Stage& stage = stages[k / kDepth % 2];
#pragma unroll
    for (int step = 0; step < kDepth; step += 16) {
      unsigned fragments_a[kRowTiles][4];
      unsigned fragments_b[kColumnTiles][2];
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        const __half* upper = &stage.a[row + 16 * i][step + pair];
        const __half* lower = &stage.a[row + 16 * i + 8][step + pair];
        fragments_a[i][0] = two_halves(upper);
        fragments_a[i][1] = two_halves(lower);
        fragments_a[i][2] = two_halves(upper + 8);
        fragments_a[i][3] = two_halves(lower + 8);
      }
#pragma unroll
      for (int j = 0; j < kColumnTiles; ++j) {
        const __half* tile = &stage.b[column + 8 * j][step + pair];
        fragments_b[j][0] = two_halves(tile);
        fragments_b[j][1] = two_halves(tile + 8);
      }
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
        for (int j = 0; j < kColumnTiles; ++j) {
          mma_16816(sums[i][j], fragments_a[i], fragments_b[j]);
        }
      }
    }
  }
  __half* to = c + (blockIdx.y * kRows + row) * columns + blockIdx.x * kColumns + column - group +
               pair;
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int j = 0; j < kColumnTiles; ++j) {
      __half* upper = to + 16 * i * columns + 8 * j;
      *reinterpret_cast<__half2*>(upper) = __floats2half2_rn(sums[i][j][0], sums[i][j][1]);
      *reinterpret_cast<__half2*>(upper + 8 * columns) =
          __floats2half2_rn(sums[i][j][2], sums[i][j][3]);
    }
  }
}
