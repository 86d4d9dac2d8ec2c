// Iterates one of two maps on each element of x: even ones to a geometric sum, odd ones to the root
// of a quadratic equation. What is wrong: neighbouring lanes take different arms of the branch, so
// that every warp runs both, half of its lanes idle in each.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    iterate(const float* __restrict__ x, float* __restrict__ out, int n, int steps) {
  const int thread = threadIdx.x;
  const int i = blockIdx.x * kThreads + thread;
  if (i >= n) return;

  const float value = x[i];
  float y = 0.0f;
  if (i % 2 == 0) {
    for (int step = 0; step < steps; ++step) y = 0.5f * y * value + 1.0f;
  } else {
    for (int step = 0; step < steps; ++step) y = value - 0.25f * y * y;
  }
  out[i] = y;
}
