// Filters a signal of (value, gain) samples: 64 weights over the values, then the sample's own
// gain. out has n samples, x 63 more. What is wrong: samples lie in shared memory as pairs, so a
// warp that reads values alone uses every second bank, and two lanes meet in each.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kWeights = 64;
constexpr int kTile = kThreads + kWeights - 1;

extern "C" __global__ void __launch_bounds__(kThreads)
    filter(const float2* __restrict__ x, const float* __restrict__ weights,
           float* __restrict__ out, int n) {
  __shared__ float2 samples[kTile];
  __shared__ float weight[kWeights];

  const int first = blockIdx.x * kThreads;
  const int last = min(kTile, n + kWeights - 1 - first);
  for (int j = threadIdx.x; j < last; j += kThreads) samples[j] = x[first + j];
  if (threadIdx.x < kWeights) weight[threadIdx.x] = weights[threadIdx.x];
  __syncthreads();

  if (first + threadIdx.x >= n) return;
  float sum = 0.0f;
#pragma unroll 16
  for (int k = 0; k < kWeights; ++k) {
    sum += weight[k] * samples[threadIdx.x + k].x;
  }
  out[first + threadIdx.x] = sum * samples[threadIdx.x].y;
}
