// Positions from Chebyshev series, 64 series for each epoch, by Clenshaw's recurrence. All
// coefficients lie in shared memory, so that there is one block per SM; a thread takes one epoch.
// It evaluates four series together, so that four independent recurrences are in flight.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kDegree = 256;
constexpr int kSeries = 64;
constexpr int kTogether = 4;

extern "C" __global__ void __launch_bounds__(kThreads)
    positions(const float* __restrict__ coefficients, const float* __restrict__ epochs,
              float* __restrict__ out, int count, float range) {
  extern __shared__ float c[];
  for (int i = threadIdx.x; i < kSeries * kDegree; i += kThreads) c[i] = coefficients[i];
  __syncthreads();
  const int epoch = blockIdx.x * kThreads + threadIdx.x;
  const float x = range * epochs[epoch];
  for (int series = 0; series < kSeries; series += kTogether) {
    float b1[kTogether] = {};
    float b2[kTogether] = {};
    for (int k = kDegree - 1; k > 0; --k) {
#pragma unroll
      for (int s = 0; s < kTogether; ++s) {
        const float b = c[(series + s) * kDegree + k] + 2.0f * x * b1[s] - b2[s];
        b2[s] = b1[s];
        b1[s] = b;
      }
    }
#pragma unroll
    for (int s = 0; s < kTogether; ++s) {
      out[(series + s) * count + epoch] = c[(series + s) * kDegree] + x * b1[s] - b2[s];
    }
  }
}
