// Filters a signal of (value, gain) samples: 64 weights over the values, then the sample's own
// gain. out has n samples, x 63 more. Values and gains lie in arrays of their own in shared memory,
// so that the lanes that read values hit 32 banks.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kWeights = 64;
constexpr int kTile = kThreads + kWeights - 1;

extern "C" __global__ void __launch_bounds__(kThreads)
    filter(const float2* __restrict__ x, const float* __restrict__ weights,
           float* __restrict__ out, int n) {
  __shared__ float values[kTile];
  __shared__ float gains[kTile];
  __shared__ float weight[kWeights];

  const int first = blockIdx.x * kThreads;
  const int last = min(kTile, n + kWeights - 1 - first);
  for (int j = threadIdx.x; j < last; j += kThreads) {
    const float2 sample = x[first + j];
    values[j] = sample.x;
    gains[j] = sample.y;
  }
  if (threadIdx.x < kWeights) weight[threadIdx.x] = weights[threadIdx.x];
  __syncthreads();

  if (first + threadIdx.x >= n) return;
  float sum = 0.0f;
#pragma unroll 16
  for (int k = 0; k < kWeights; ++k) {
    sum += weight[k] * values[threadIdx.x + k];
  }
  out[first + threadIdx.x] = sum * gains[threadIdx.x];
}
