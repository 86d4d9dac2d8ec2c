// Explicit Euler steps of dy/dt = log(1 - y), the logarithm as a power series; a thread follows one
// trajectory. Four sums, each over every fourth term, are independent of each other, so that a warp
// can issue a multiply-add while others are in flight.
// Architectures: sm_80, sm_90a.

constexpr int kTerms = 64;
constexpr int kSums = 4;
constexpr int kThreads = 128;

extern "C" __global__ void __launch_bounds__(kThreads)
    euler_steps(const float* __restrict__ start, float* __restrict__ out, int count, int steps,
                float width) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  float y = 0.875f * start[i];
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const float y2 = y * y;
    const float y4 = y2 * y2;
    float sums[kSums];
#pragma unroll
    for (int j = 0; j < kSums; ++j) sums[j] = -1.0f / (kTerms - kSums + j + 1);
#pragma unroll
    for (int k = kTerms - 2 * kSums; k >= 0; k -= kSums) {
#pragma unroll
      for (int j = 0; j < kSums; ++j) sums[j] = sums[j] * y4 + -1.0f / (k + j + 1);
    }
    const float sum = (sums[3] * y + sums[2]) * y2 + (sums[1] * y + sums[0]);
    y += width * y * sum;
  }
  out[i] = y;
}
