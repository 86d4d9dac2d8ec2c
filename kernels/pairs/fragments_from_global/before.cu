// C = A B^T in float16 with float32 sums on the tensor cores, A and B row by row; a warp has 64 by
// 32 elements of C. What is wrong: each warp loads the fragments of its operands from global memory
// right before their products, 4 bytes a lane from eight rows, and waits for them.
//
// Architectures: sm_80, sm_90a.

#include <cuda_fp16.h>

constexpr int kThreads = 256;
constexpr int kRows = 128;  // of C a block
constexpr int kColumns = 128;
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

// C has gridDim.y * kRows rows and gridDim.x * kColumns columns; `depth` is a multiple of 16.
extern "C" __global__ void __launch_bounds__(kThreads)
    projection(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c,
               int columns, int depth) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int group = lane / 4;
  const int pair = lane % 4 * 2;
  const int row = blockIdx.y * kRows + warp % 2 * kWarpRows + group;
  const int column = blockIdx.x * kColumns + warp / 2 * kWarpColumns + group;
  const __half* from_a = a + row * depth + pair;
  const __half* from_b = b + column * depth + pair;
  float sums[kRowTiles][kColumnTiles][4] = {};

  for (int k = 0; k < depth; k += 16) {
    unsigned fragments_a[kRowTiles][4];
    unsigned fragments_b[kColumnTiles][2];
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      const __half* tile = from_a + 16 * i * depth + k;
      fragments_a[i][0] = two_halves(tile);
      fragments_a[i][1] = two_halves(tile + 8 * depth);
      fragments_a[i][2] = two_halves(tile + 8);
      fragments_a[i][3] = two_halves(tile + 8 * depth + 8);
    }
#pragma unroll
    for (int j = 0; j < kColumnTiles; ++j) {
      const __half* tile = from_b + 8 * j * depth + k;
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
  __half* to = c + row * columns + column - group + pair;
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
