// mma.sync on registers: a warp holds A (64 by 16) and B (16 by 32) and adds A B to its sums at each
// step, 16 instructions of 16 by 8 by 16. A launch computes 2 * 64 * 32 * 16 = 65536 FLOP a warp and
// step. At the end each thread writes the sum of its 64 sums.
//
// `a` holds a block's eight A, row by row, `b` its eight B, column by column: 16-bit floats, bfloat16
// with BF16 defined. Sums are FP32.

constexpr int kThreads = 256;
constexpr int kRowTiles = 4;
constexpr int kColumnTiles = 4;
constexpr int kDepth = 16;
constexpr int kRows = 16 * kRowTiles;
constexpr int kColumns = 8 * kColumnTiles;

#ifdef BF16
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#else
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#endif

__device__ __forceinline__ void mma_16816(float (&d)[4], const unsigned (&a)[4],
                                          const unsigned (&b)[2]) {
  asm volatile(MMA " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ unsigned pair_at(const unsigned short* row, int column) {
  return *reinterpret_cast<const unsigned*>(row + column);
}

extern "C" __global__ void __launch_bounds__(kThreads, 2)
    mma_sync(const unsigned short* __restrict__ a, const unsigned short* __restrict__ b,
             float* __restrict__ out, int steps) {
  const int warp = threadIdx.x / 32;
  const int line = threadIdx.x % 32 / 4;
  const int column = threadIdx.x % 4 * 2;
  a += (warp * kRows + line) * kDepth;
  b += (warp * kColumns + line) * kDepth;
  unsigned a_parts[kRowTiles][4];
  unsigned b_parts[kColumnTiles][2];
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
    const unsigned short* row = a + 16 * i * kDepth;
    a_parts[i][0] = pair_at(row, column);
    a_parts[i][1] = pair_at(row + 8 * kDepth, column);
    a_parts[i][2] = pair_at(row, column + 8);
    a_parts[i][3] = pair_at(row + 8 * kDepth, column + 8);
  }
#pragma unroll
  for (int j = 0; j < kColumnTiles; ++j) {
    const unsigned short* row = b + 8 * j * kDepth;
    b_parts[j][0] = pair_at(row, column);
    b_parts[j][1] = pair_at(row, column + 8);
  }
  float sums[kRowTiles][kColumnTiles][4] = {};
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < kColumnTiles; ++j) mma_16816(sums[i][j], a_parts[i], b_parts[j]);
    }
  }
  float total = 0.0f;
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int j = 0; j < kColumnTiles; ++j) {
#pragma unroll
      for (int k = 0; k < 4; ++k) total += sums[i][j][k];
    }
  }
  out[blockIdx.x * kThreads + threadIdx.x] = total;
}
