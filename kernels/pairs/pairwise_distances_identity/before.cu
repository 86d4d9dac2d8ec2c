// Squared distances of all pairs of two sets of points in 64 dimensions; a thread takes 8 by 8
// pairs. What is wrong: a difference and its square are two operations of the FP32 pipe for each
// pair and dimension, and that pipe is full.
//
// Architectures: sm_80, sm_90a.

constexpr int kDimensions = 64;
constexpr int kTile = 128;
constexpr int kDepth = 16;  // dimensions at a time
constexpr int kEach = 8;
constexpr int kSide = kTile / kEach;
constexpr int kThreads = kSide * kSide;
constexpr int kPitch = kTile + 4;

extern "C" __global__ void __launch_bounds__(kThreads, 2)
    distances(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
              int count) {
  __shared__ __align__(16) float from_a[kDepth][kPitch];
  __shared__ __align__(16) float from_b[kDepth][kPitch];
  const int row = blockIdx.y * kTile;
  const int column = blockIdx.x * kTile;
  const int y = threadIdx.x / kSide * 4;
  const int x = threadIdx.x % kSide * 4;
  float sums[kEach][kEach] = {};
  for (int first = 0; first < kDimensions; first += kDepth) {
    __syncthreads();
    for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
      const int point = i / kDepth;
      const int k = i % kDepth;
      from_a[k][point] = a[(row + point) * kDimensions + first + k];
      from_b[k][point] = b[(column + point) * kDimensions + first + k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float some_a[kEach], some_b[kEach];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float4 four_a = *reinterpret_cast<const float4*>(&from_a[k][y + half * kTile / 2]);
        const float4 four_b = *reinterpret_cast<const float4*>(&from_b[k][x + half * kTile / 2]);
        some_a[4 * half] = four_a.x, some_a[4 * half + 1] = four_a.y;
        some_a[4 * half + 2] = four_a.z, some_a[4 * half + 3] = four_a.w;
        some_b[4 * half] = four_b.x, some_b[4 * half + 1] = four_b.y;
        some_b[4 * half + 2] = four_b.z, some_b[4 * half + 3] = four_b.w;
      }
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
          const float difference = some_a[i] - some_b[j];
          sums[i][j] += difference * difference;
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; j += 4) {
      float* to = out + (row + y + i % 4 + i / 4 * (kTile / 2)) * count + column + x;
      *reinterpret_cast<float4*>(to + j / 4 * (kTile / 2)) =
          make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
    }
  }
}
