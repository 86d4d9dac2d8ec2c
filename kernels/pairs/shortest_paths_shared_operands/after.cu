// One squaring of a distance matrix for all shortest paths: the sums of two distances and their
// minimum. A thread has 4 by 4 elements of the result, so eight operands from shared memory serve
// sixteen sums.
//
// Architectures: sm_80, sm_90a.

constexpr int kTile = 64;  // rows and columns of the result a block
constexpr int kDepth = 16;
constexpr int kEach = 4;
constexpr int kThreads = 256;
constexpr int kAcross = kTile / kEach;

extern "C" __global__ void __launch_bounds__(kThreads)
    relax(const float* __restrict__ distances, float* __restrict__ out, int n) {
  __shared__ __align__(16) float from[kDepth][kTile + kEach];  // transposed
  __shared__ __align__(16) float to[kDepth][kTile];
  const int thread = threadIdx.x;
  const int first_row = blockIdx.y * kTile;
  const int first_column = blockIdx.x * kTile;
  const int column = thread % kAcross * kEach;
  const int row = thread / kAcross * kEach;
  float shortest[kEach][kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      shortest[i][j] = distances[(first_row + row + i) * n + first_column + column + j];
    }
  }
  for (int k = 0; k < n; k += kDepth) {
#pragma unroll
    for (int i = thread; i < kTile * kDepth; i += kThreads) {
      from[i % kDepth][i / kDepth] = distances[(first_row + i / kDepth) * n + k + i % kDepth];
      to[i / kTile][i % kTile] = distances[(k + i / kTile) * n + first_column + i % kTile];
    }
    __syncthreads();
#pragma unroll
    for (int step = 0; step < kDepth; ++step) {
      const float4 a = *reinterpret_cast<const float4*>(&from[step][row]);
      const float4 b = *reinterpret_cast<const float4*>(&to[step][column]);
      const float rows[kEach] = {a.x, a.y, a.z, a.w};
      const float columns[kEach] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
          shortest[i][j] = fminf(shortest[i][j], rows[i] + columns[j]);
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    *reinterpret_cast<float4*>(&out[(first_row + row + i) * n + first_column + column]) =
        make_float4(shortest[i][0], shortest[i][1], shortest[i][2], shortest[i][3]);
  }
}
