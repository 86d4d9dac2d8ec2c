// C = A B^T in float16 with float32 sums, A and B row by row; a block takes 128 by 256 elements of
// C on the tensor cores. It loads tiles, waits for them, multiplies, and only then loads the next:
// while tiles are on their way the tensor cores have nothing to do.
// Architectures: sm_80, sm_90a.

#include <cuda_fp16.h>

constexpr int kRows = 128;  // of C a block
constexpr int kColumns = 256;
constexpr int kDepth = 32;  // of K at a time
constexpr int kPitch = kDepth + 8;  // of a row in shared memory: eight rows reach all banks
constexpr int kChunk = 8;  // halves in 16 bytes
constexpr int kRowChunks = kDepth / kChunk;
constexpr int kThreads = 256;

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void mma_16816(float (&d)[4], const unsigned (&a)[4],
                                          const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

struct alignas(16) Stage {
  __half a[kRows][kPitch];
  __half b[kColumns][kPitch];
};

template <int kTileRows>
__device__ __forceinline__ void load_tile(__half (&tile)[kTileRows][kPitch],
                                          const __half* __restrict__ from, int depth) {
  const int first = threadIdx.x / kRowChunks;
  const int column = threadIdx.x % kRowChunks * kChunk;
#pragma unroll
  for (int i = 0; i < kTileRows; i += kThreads / kRowChunks) {
    const int row = first + i;
    const __half* source = from + static_cast<size_t>(row) * depth + column;
    *reinterpret_cast<uint4*>(&tile[row][column]) = *reinterpret_cast<const uint4*>(source);
  }
}

// Eight warps, two by four, each with 64 by 64 elements of C.
constexpr int kRowTiles = 4;
constexpr int kColumnTiles = 8;
constexpr int kWarpRows = 16 * kRowTiles;
constexpr int kWarpColumns = 8 * kColumnTiles;

__device__ __forceinline__ void multiply(float (&sums)[kRowTiles][kColumnTiles][4],
                                         const Stage& stage, int first_row, int first_column) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int k = 0; k < kDepth; k += 16) {
    unsigned a[kRowTiles][4];
    unsigned b[kColumnTiles][2];
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      const int row = first_row + 16 * i + lane % 16;
      ldmatrix_x4(a[i], shared_address(&stage.a[row][k + lane / 16 * 8]));
    }
#pragma unroll
    for (int j = 0; j < kColumnTiles; j += 2) {
      const int column = first_column + 8 * j + lane / 16 * 8 + lane % 8;
      unsigned both[4];
      ldmatrix_x4(both, shared_address(&stage.b[column][k + lane / 8 % 2 * 8]));
      b[j][0] = both[0], b[j][1] = both[1];
      b[j + 1][0] = both[2], b[j + 1][1] = both[3];
    }
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < kColumnTiles; ++j) mma_16816(sums[i][j], a[i], b[j]);
    }
  }
}

__device__ __forceinline__ void store(const float (&sums)[kRowTiles][kColumnTiles][4],
                                      __half* __restrict__ c, int columns) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int j = 0; j < kColumnTiles; ++j) {
      __half* to = c + static_cast<size_t>(16 * i + lane / 4) * columns + 8 * j + lane % 4 * 2;
      *reinterpret_cast<__half2*>(to) = __floats2half2_rn(sums[i][j][0], sums[i][j][1]);
      *reinterpret_cast<__half2*>(to + static_cast<size_t>(8) * columns) =
          __floats2half2_rn(sums[i][j][2], sums[i][j][3]);
    }
  }
}

// C has gridDim.y * kRows rows; `columns` is a multiple of kColumns, `depth` of kDepth.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    gemm(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c,
         int columns, int depth) {
  __shared__ Stage stage;
  const int row = blockIdx.y * kRows;
  const int column = blockIdx.x * kColumns;
  a += static_cast<size_t>(row) * depth;
  b += static_cast<size_t>(column) * depth;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp % 2 * kWarpRows;
  const int warp_column = warp / 2 * kWarpColumns;
  float sums[kRowTiles][kColumnTiles][4] = {};

  for (int k = 0; k < depth; k += kDepth) {
    load_tile(stage.a, a + k, depth);
    load_tile(stage.b, b + k, depth);
    __syncthreads();
    multiply(sums, stage, warp_row, warp_column);
    __syncthreads();
  }
  store(sums, c + static_cast<size_t>(row + warp_row) * columns + column + warp_column, columns);
}
