// A leaky integrator for each sample: at each step it keeps a part of itself and the sample is added.
// The loop is unrolled: it counts, compares and branches once for 16 multiply-adds.
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    integrate(const float* __restrict__ samples, float* __restrict__ out, int steps, float keep) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float sample = samples[i];
  float value = 0.0f;
#pragma unroll 16
  for (int step = 0; step < steps; ++step) {
    value = value * keep + sample;
  }
  out[i] = value;
}
