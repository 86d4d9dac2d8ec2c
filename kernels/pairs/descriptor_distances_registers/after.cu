// Sums of absolute differences between all descriptors of two images, dimension by dimension in
// memory. A block compares 128 with 128, a thread 8 with 4. The compiler uses
// no more registers than leave room for two blocks on an SM.
//
// Architectures: sm_80, sm_90a.

constexpr int kTile = 128;
constexpr int kDepth = 16;
constexpr int kRows = 8;
constexpr int kColumns = 4;
constexpr int kThreads = kTile / kRows * (kTile / kColumns);

extern "C" __global__ void __launch_bounds__(kThreads, 2)
    differences(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
                int count, int dimensions) {
  __shared__ float4 rows[kDepth][kTile / 4];
  __shared__ float4 columns[kDepth][kTile / 4];
  const int x = threadIdx.x % (kTile / kColumns);
  const int y = threadIdx.x / (kTile / kColumns);
  const int row = blockIdx.y * kTile;
  const int column = blockIdx.x * kTile;
  const float* from_a = a + y * count + row + 4 * x;
  const float* from_b = b + y * count + column + 4 * x;

  float sums[kRows][kColumns] = {};
  for (int d = 0; d < dimensions; d += kDepth) {
    rows[y][x] = *reinterpret_cast<const float4*>(from_a + d * count);
    columns[y][x] = *reinterpret_cast<const float4*>(from_b + d * count);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      const float4 low = rows[k][2 * y];
      const float4 high = rows[k][2 * y + 1];
      const float4 other = columns[k][x];
      const float u[kRows] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
      const float v[kColumns] = {other.x, other.y, other.z, other.w};
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < kColumns; ++j) sums[i][j] += fabsf(u[i] - v[j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    float* to = out + (row + kRows * y + i) * count + column + 4 * x;
    *reinterpret_cast<float4*>(to) =
        make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
  }
}
