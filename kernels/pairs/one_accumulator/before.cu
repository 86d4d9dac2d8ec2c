// Explicit Euler steps of dy/dt = log(1 - y), the logarithm as a power series; a thread follows one
// trajectory. Horner's rule is one chain: each multiply-add waits for the one before it, and with
// one warp a scheduler nothing else can be issued meanwhile.
// Architectures: sm_80, sm_90a.

constexpr int kTerms = 64;
constexpr int kThreads = 128;

extern "C" __global__ void __launch_bounds__(kThreads)
    euler_steps(const float* __restrict__ start, float* __restrict__ out, int count, int steps,
                float width) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  float y = 0.875f * start[i];
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    float sum = -1.0f / kTerms;
#pragma unroll
    for (int k = kTerms - 2; k >= 0; --k) {
      sum = sum * y + -1.0f / (k + 1);
    }
    y += width * y * sum;
  }
  out[i] = y;
}
