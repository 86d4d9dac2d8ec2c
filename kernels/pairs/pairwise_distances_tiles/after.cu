// Squared distances of all pairs of two sets of points in 64 dimensions. A block takes 64 by 64
// pairs and has their points in shared memory; a thread takes 4 by 4 of them, so that eight
// coordinates serve sixteen differences.
//
// Architectures: sm_80, sm_90a.

constexpr int kDimensions = 64;
constexpr int kTile = 64;
constexpr int kEach = 4;
constexpr int kThreads = kTile / kEach * (kTile / kEach);
constexpr int kPitch = kTile + 4;

extern "C" __global__ void __launch_bounds__(kThreads)
    distances(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
              int count) {
  __shared__ __align__(16) float from_a[kDimensions][kPitch];
  __shared__ __align__(16) float from_b[kDimensions][kPitch];
  const int row = blockIdx.y * kTile;
  const int column = blockIdx.x * kTile;
  for (int i = threadIdx.x; i < kTile * kDimensions; i += kThreads) {
    from_a[i % kDimensions][i / kDimensions] = a[row * kDimensions + i];
    from_b[i % kDimensions][i / kDimensions] = b[column * kDimensions + i];
  }
  __syncthreads();
  const int y = threadIdx.x / (kTile / kEach) * kEach;
  const int x = threadIdx.x % (kTile / kEach) * kEach;
  float sums[kEach][kEach] = {};
#pragma unroll 8
  for (int k = 0; k < kDimensions; ++k) {
    const float4 four_a = *reinterpret_cast<const float4*>(&from_a[k][y]);
    const float4 four_b = *reinterpret_cast<const float4*>(&from_b[k][x]);
    const float some_a[kEach] = {four_a.x, four_a.y, four_a.z, four_a.w};
    const float some_b[kEach] = {four_b.x, four_b.y, four_b.z, four_b.w};
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const float difference = some_a[i] - some_b[j];
        sums[i][j] += difference * difference;
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    *reinterpret_cast<float4*>(out + (row + y + i) * count + column + x) =
        make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
  }
}
