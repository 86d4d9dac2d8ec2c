// Zonal means of the saturation vapor pressure on an octahedral grid, from pole to equator; a
// latitude i has 4 i + 20 points, one after the other in memory. A block takes four latitudes. What
// is wrong: they follow one another, so that the blocks near the equator have far more points than
// those near the pole.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kEach = 4;  // latitudes

extern "C" __global__ void __launch_bounds__(kThreads)
    zonal_means(const float* __restrict__ temperatures, float* __restrict__ out) {
  __shared__ float parts[kThreads / 32];
  for (int each = 0; each < kEach; ++each) {
    const int latitude = blockIdx.x * kEach + each;
    const int points = 4 * latitude + 20;
    const float* source = temperatures + 2 * latitude * latitude + 18 * latitude;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < points; i += kThreads) {
      const float celsius = 15.0f + 10.0f * source[i];
      sum += expf(17.27f * celsius / (celsius + 237.3f));
    }
#pragma unroll
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      float total = 0.0f;
#pragma unroll
      for (int i = 0; i < kThreads / 32; ++i) total += parts[i];
      out[latitude] = 6.1078f * total / points;
    }
    __syncthreads();
  }
}
