// Relaxation: each value moves a hundredth of the way to its target at every step. In the loop
// the literal is a float, and so is all arithmetic.
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    relax(const float* __restrict__ start, const float* __restrict__ targets,
          float* __restrict__ out, int count, int steps) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const float target = targets[i];
  float value = start[i];
#pragma unroll 8
  for (int step = 0; step < steps; ++step) {
    value += (target - value) * 0.01f;
  }
  out[i] = value;
}
