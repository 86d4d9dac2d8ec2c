// A polynomial of degree 255 by Horner's rule at each point of [0, 1), its coefficients a table.
// The loop is not unrolled: for one multiply-add a term it loads a coefficient, counts, compares
// and branches.
// Architectures: sm_80, sm_90a.

constexpr int kTerms = 256;
constexpr int kThreads = 256;

struct Coefficients {
  float of[kTerms];
  __device__ constexpr Coefficients() : of() {
    for (int k = 0; k < kTerms; ++k) of[k] = 1.0f / (k + 1);
  }
};

__constant__ const Coefficients coefficients;

extern "C" __global__ void __launch_bounds__(kThreads)
    polynomial(const float* __restrict__ points, float* __restrict__ out, int count) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const float x = points[i];
  float sum = 0.0f;
#pragma unroll 1
  for (int k = kTerms - 1; k >= 0; --k) {
    sum = sum * x + coefficients.of[k];
  }
  out[i] = sum;
}
