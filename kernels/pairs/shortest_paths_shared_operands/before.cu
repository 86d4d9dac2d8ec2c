// One squaring of a distance matrix for all shortest paths: the sums of two distances and their
// minimum. What is wrong: a thread has one element of the result, and reads two operands from
// shared memory for each sum.
//
// Architectures: sm_80, sm_90a.

constexpr int kTile = 32;

extern "C" __global__ void __launch_bounds__(kTile* kTile)
    relax(const float* __restrict__ distances, float* __restrict__ out, int n) {
  __shared__ float from[kTile][kTile];
  __shared__ float to[kTile][kTile];
  const int column = blockIdx.x * kTile + threadIdx.x;
  const int row = blockIdx.y * kTile + threadIdx.y;
  float shortest = distances[row * n + column];
  for (int k = 0; k < n; k += kTile) {
    from[threadIdx.y][threadIdx.x] = distances[row * n + k + threadIdx.x];
    to[threadIdx.y][threadIdx.x] = distances[(k + threadIdx.y) * n + column];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) {
      shortest = fminf(shortest, from[threadIdx.y][i] + to[i][threadIdx.x]);
    }
    __syncthreads();
  }
  out[row * n + column] = shortest;
}
