// Smooths a recording by a window of five samples. A block loads a tile into shared memory, waits
// for it, smooths it, and only then loads the next. Eight blocks share an SM and load while others
// smooth, and DRAM is the limit.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kEach = 2;  // float4 of a thread and tile
constexpr int kTile = kThreads * kEach * 4;
constexpr int kTiles = 8;
constexpr int kMargin = 4;  // samples before and after, of which two are used

__device__ __forceinline__ float weighted(const float* p) {
  return 0.375f * p[0] + 0.25f * (p[-1] + p[1]) + 0.0625f * (p[-2] + p[2]);
}

// A block takes kTiles tiles of a recording one after another. It has kMargin more samples at both
// ends.
extern "C" __global__ void __launch_bounds__(kThreads)
    smooth(const float* __restrict__ x, float* __restrict__ out) {
  __shared__ __align__(16) float tile[kTile + 2 * kMargin];
  const long long first = static_cast<long long>(blockIdx.x) * kTiles * kTile;
  for (int step = 0; step < kTiles; ++step) {
    const float* from = x + first + step * kTile;
    float* to = out + first + step * kTile;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const int i = (k * kThreads + threadIdx.x) * 4;
      *reinterpret_cast<float4*>(tile + i) = *reinterpret_cast<const float4*>(from + i);
    }
    if (threadIdx.x < 2 * kMargin) tile[kTile + threadIdx.x] = from[kTile + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kEach * 4; ++k) {
      const int i = k * kThreads + threadIdx.x;
      to[i] = weighted(tile + kMargin + i);
    }
    __syncthreads();
  }
}
