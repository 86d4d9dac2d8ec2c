// Leaky integrators in float16, two a thread: at each step a value keeps a part of itself and its
// sample is added. One packed multiply-add does both values.
// Architectures: sm_80, sm_90a.

#include <cuda_fp16.h>

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    integrate(const __half2* __restrict__ samples, __half2* __restrict__ out, int count, int steps,
              float keep) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count / 2) return;
  const __half2 sample = samples[i];
  const __half2 part = __float2half2_rn(keep);
  __half2 values = __float2half2_rn(0.0f);
#pragma unroll 16
  for (int step = 0; step < steps; ++step) {
    values = __hfma2(values, part, sample);
  }
  out[i] = values;
}
