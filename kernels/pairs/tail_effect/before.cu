// Evaluates a polynomial of degree 255 for each of the n elements of x. A block takes 262,144 of
// them, sixteen a thread at a time, and fills an SM. What is wrong: there is one block more than
// SMs, so that all but one of them idle half of the time.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 1024;
constexpr int kEach = 16;
constexpr int kTerms = 256;
constexpr int kElements = 262144;  // a block's

extern "C" __global__ void __launch_bounds__(kThreads)
    polynomial(const float* __restrict__ x, const float* __restrict__ coefficients,
               float* __restrict__ out, int n) {
  __shared__ __align__(16) float shared[kTerms];
  if (threadIdx.x < kTerms) shared[threadIdx.x] = coefficients[threadIdx.x];
  __syncthreads();

  const int begin = blockIdx.x * kElements;
  for (int first = begin; first < begin + kElements; first += kThreads * kEach) {
    float at[kEach], sum[kEach];
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int i = first + j * kThreads + threadIdx.x;
      at[j] = i < n ? x[i] : 0.0f;
      sum[j] = 0.0f;
    }
#pragma unroll 8
    for (int term = 0; term < kTerms; term += 4) {
      const float4 four = *reinterpret_cast<const float4*>(shared + term);
#pragma unroll
      for (int j = 0; j < kEach; ++j) sum[j] = sum[j] * at[j] + four.x;
#pragma unroll
      for (int j = 0; j < kEach; ++j) sum[j] = sum[j] * at[j] + four.y;
#pragma unroll
      for (int j = 0; j < kEach; ++j) sum[j] = sum[j] * at[j] + four.z;
#pragma unroll
      for (int j = 0; j < kEach; ++j) sum[j] = sum[j] * at[j] + four.w;
    }
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int i = first + j * kThreads + threadIdx.x;
      if (i < n) out[i] = sum[j];
    }
  }
}
