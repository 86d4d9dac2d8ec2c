// Standardized anomalies of a climate model: eight time steps in half precision, less the mean of
// each point and times its inverse deviation. What is wrong: blocks go through all points of a time
// step before the next one, and by then means and deviations have left L2, so DRAM serves them
// eight times.
//
// Architectures: sm_80, sm_90a.

#include <cuda_fp16.h>

constexpr int kThreads = 256;

// `points` is a number of pairs.
extern "C" __global__ void __launch_bounds__(kThreads)
    anomalies(const __half2* __restrict__ x, const float2* __restrict__ means,
              const float2* __restrict__ inverses, __half2* __restrict__ out, int points) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= points) return;
  const float2 mean = means[i];
  const float2 inverse = inverses[i];
  const int from = blockIdx.y * points + i;
  const float2 value = __half22float2(x[from]);
  out[from] = __floats2half2_rn((value.x - mean.x) * inverse.x, (value.y - mean.y) * inverse.y);
}
