// Leaky integrators in float16, one a thread: at each step a value keeps a part of itself and its
// sample is added. A multiply-add for a single value leaves half of the unit idle, and there are no
// issue slots for more.
// Architectures: sm_80, sm_90a.

#include <cuda_fp16.h>

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    integrate(const __half* __restrict__ samples, __half* __restrict__ out, int count, int steps,
              float keep) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const __half sample = samples[i];
  const __half part = __float2half(keep);
  __half value = __float2half(0.0f);
#pragma unroll 16
  for (int step = 0; step < steps; ++step) {
    value = __hfma(value, part, sample);
  }
  out[i] = value;
}
