// A leaky integrator: at each step a value keeps a part of itself and its sample is added.
// A step is one fused multiply-add.
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    integrate(const float* __restrict__ samples, float* __restrict__ out, int count, int steps,
              float keep) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const float sample = samples[i];
  float value = 0.0f;
#pragma unroll 32
  for (int step = 0; step < steps; ++step) {
    value = __fmaf_rn(value, keep, sample);
  }
  out[i] = value;
}
