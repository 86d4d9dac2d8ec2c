// C = A B^T in float16 with float32 sums, A and B row by row; a block takes 128 by 256 elements of
// C on the tensor cores, fed by asynchronous copies in four stages. The products are mma.sync; its
// peak, on a chip with wgmma, is two thirds of wgmma's.
// Architectures: sm_80, sm_90a.

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

// Eight warps, two by four, each with 64 by 64 elements of C.
constexpr int kRowTiles = 4;
constexpr int kColumnTiles = 8;
constexpr int kWarpRows = 16 * kRowTiles;
constexpr int kWarpColumns = 8 * kColumnTiles;

__device__ __forceinline__ void multiply(float (&sums)[kRowTiles][kColumnTiles][4],
                                         unsigned stage, int first_row, int first_column) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int k = 0; k < kDepth; k += 16) {
    unsigned a[kRowTiles][4];
    unsigned b[kColumnTiles][2];
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      const int row = first_row + 16 * i + lane % 16;
      ldmatrix_x4(a[i], stage + swizzled(row, k / kChunk + lane / 16));
    }
#pragma unroll
    for (int j = 0; j < kColumnTiles; j += 2) {
      const int column = first_column + 8 * j + lane / 16 * 8 + lane % 8;
      unsigned both[4];
      ldmatrix_x4(both, stage + kBytesA + swizzled(column, k / kChunk + lane / 8 % 2));
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

// `rows` is a multiple of kRows, `columns` of kColumns, `depth` of kDepth; a block for each tile.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    gemm(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c,
         int rows, int columns, int depth) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const unsigned stages = shared_address(shared);
  const Tile tile = tile_of(blockIdx.x, rows / kRows, columns / kColumns);
  a += static_cast<size_t>(tile.row) * depth;
  b += static_cast<size_t>(tile.column) * depth;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp % 2 * kWarpRows;
  const int warp_column = warp / 2 * kWarpColumns;
  float sums[kRowTiles][kColumnTiles][4] = {};

  const int steps = depth / kDepth;
  const auto load = [&](int step) {
    if (step < steps) {
      const unsigned stage = stages + step % kStages * kStageBytes;
      load_tile<kRows>(stage, a + step * kDepth, depth);
      load_tile<kColumns>(stage + kBytesA, b + step * kDepth, depth);
    }
    cp_async_commit();  // empty groups keep the count of the wait right
  };
  for (int step = 0; step < kStages - 1; ++step) load(step);
  for (int step = 0; step < steps; ++step) {
    cp_async_wait<kStages - 2>();
    __syncthreads();  // this step's tiles are here, and the stage of the step before is free
    load(step + kStages - 1);
    multiply(sums, stages + step % kStages * kStageBytes, warp_row, warp_column);
  }

  const size_t first_row = tile.row + warp_row;
  store(sums, c + first_row * columns + tile.column + warp_column, columns);
}
