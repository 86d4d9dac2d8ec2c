// Positions from Chebyshev series, 64 series for each epoch, by Clenshaw's recurrence. All
// coefficients lie in shared memory, so that there is one block per SM; a thread takes one epoch.
// What is wrong: it evaluates a series after the other, and each step of the recurrence waits for
// the step before.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kDegree = 256;
constexpr int kSeries = 64;

extern "C" __global__ void __launch_bounds__(kThreads)
    positions(const float* __restrict__ coefficients, const float* __restrict__ epochs,
              float* __restrict__ out, int count, float range) {
  extern __shared__ float c[];
  for (int i = threadIdx.x; i < kSeries * kDegree; i += kThreads) c[i] = coefficients[i];
  __syncthreads();
  const int epoch = blockIdx.x * kThreads + threadIdx.x;
  const float x = range * epochs[epoch];
  for (int series = 0; series < kSeries; ++series) {
    float b1 = 0.0f;
    float b2 = 0.0f;
    for (int k = kDegree - 1; k > 0; --k) {
      const float b = c[series * kDegree + k] + 2.0f * x * b1 - b2;
      b2 = b1;
      b1 = b;
    }
    out[series * count + epoch] = c[series * kDegree] + x * b1 - b2;
  }
}
