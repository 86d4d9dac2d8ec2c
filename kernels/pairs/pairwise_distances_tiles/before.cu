// Squared distances of all pairs of two sets of points in 64 dimensions. A block takes 32 by 32
// pairs and has their points in shared memory. What is wrong: a thread has one pair, so it loads
// two coordinates from shared memory for each difference.
//
// Architectures: sm_80, sm_90a.

constexpr int kDimensions = 64;
constexpr int kTile = 32;

extern "C" __global__ void __launch_bounds__(kTile* kTile)
    distances(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
              int count) {
  __shared__ float from_a[kTile][kDimensions];
  __shared__ float from_b[kTile][kDimensions + 1];
  const int row = blockIdx.y * kTile;
  const int column = blockIdx.x * kTile;
  const int thread = threadIdx.y * kTile + threadIdx.x;
  for (int i = thread; i < kTile * kDimensions; i += kTile * kTile) {
    from_a[i / kDimensions][i % kDimensions] = a[row * kDimensions + i];
    from_b[i / kDimensions][i % kDimensions] = b[column * kDimensions + i];
  }
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < kDimensions; ++k) {
    const float difference = from_a[threadIdx.y][k] - from_b[threadIdx.x][k];
    sum += difference * difference;
  }
  out[(row + threadIdx.y) * count + column + threadIdx.x] = sum;
}
