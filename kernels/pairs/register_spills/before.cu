// Multiplies matrices: a is rows by depth, b depth by columns, rows and columns multiples of 128,
// depth of 8. A block has a tile of 128 by 128 of the product, a thread 64 sums of it. What is
// wrong: the launch bounds ask for four blocks on an SM, which leaves 64 registers a thread, as
// many as there are sums; the rest spills to local memory in the innermost loop.
//
// Architectures: sm_80, sm_90a.

constexpr int kTile = 128;
constexpr int kDepth = 8;
constexpr int kPitch = kTile + 4;  // two groups of rows are stored into different banks
constexpr int kThreads = 256;
constexpr int kBlocks = 4;

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
           int columns, int depth) {
  __shared__ __align__(16) float a_tile[kDepth][kPitch];  // transposed
  __shared__ __align__(16) float b_tile[kDepth][kTile];

  const int row = threadIdx.x / 16 * 4;  // of the tile; also row + 64
  const int column = threadIdx.x % 16 * 4;
  const int a_row = threadIdx.x / 2;
  const int a_column = threadIdx.x % 2 * 4;
  const int b_row = threadIdx.x / 32;
  const int b_column = threadIdx.x % 32 * 4;
  const float* a_source = a + (blockIdx.y * kTile + a_row) * depth + a_column;
  const float* b_source = b + b_row * columns + blockIdx.x * kTile + b_column;

  float sums[8][8] = {};
  for (int first = 0; first < depth; first += kDepth) {
    const float4 from_a = *reinterpret_cast<const float4*>(a_source + first);
    const float4 from_b = *reinterpret_cast<const float4*>(b_source + first * columns);
    a_tile[a_column][a_row] = from_a.x;
    a_tile[a_column + 1][a_row] = from_a.y;
    a_tile[a_column + 2][a_row] = from_a.z;
    a_tile[a_column + 3][a_row] = from_a.w;
    *reinterpret_cast<float4*>(&b_tile[b_row][b_column]) = from_b;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float left[8], right[8];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        *reinterpret_cast<float4*>(left + 4 * half) =
            *reinterpret_cast<const float4*>(&a_tile[k][row + 64 * half]);
        *reinterpret_cast<float4*>(right + 4 * half) =
            *reinterpret_cast<const float4*>(&b_tile[k][column + 64 * half]);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[i][j] += left[i] * right[j];
      }
    }
    __syncthreads();  // before the next tiles take their place
  }

#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int at = blockIdx.y * kTile + row + i % 4 + i / 4 * 64;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      *reinterpret_cast<float4*>(out + at * columns + blockIdx.x * kTile + column + 64 * half) =
          make_float4(sums[i][4 * half], sums[i][4 * half + 1], sums[i][4 * half + 2],
                      sums[i][4 * half + 3]);
    }
  }
}
