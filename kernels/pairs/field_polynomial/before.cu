// Values of a polynomial over a prime field at many points, as a proof system needs them. What is
// wrong: the remainder is taken by Barrett's method, for any modulus below 2^31, and its
// multiplication of 64 by 64 bits takes most of a step, in a pipe for integer multiplication that
// is full.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kTerms = 512;

// a b + c modulo a modulus below 2^31, whose reciprocal is 2^64 / modulus.
__device__ __forceinline__ unsigned multiply_add(unsigned a, unsigned b, unsigned c,
                                                 unsigned modulus, unsigned long long reciprocal) {
  const unsigned long long sum = static_cast<unsigned long long>(a) * b + c;
  const unsigned quotient = static_cast<unsigned>(__umul64hi(sum, reciprocal));
  const unsigned rest = static_cast<unsigned>(sum) - quotient * modulus;
  return min(rest, rest - modulus);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    evaluate(const int* __restrict__ coefficients, const int* __restrict__ points,
             float* __restrict__ out, unsigned modulus,
             long long reciprocal) {
  __shared__ unsigned coefficient[kTerms];
  for (int i = threadIdx.x; i < kTerms; i += kThreads) coefficient[i] = coefficients[i];
  __syncthreads();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const unsigned x = points[i];
  unsigned value = 0u;
#pragma unroll 8
  for (int k = 0; k < kTerms; ++k) {
    value = multiply_add(value, x, coefficient[k], modulus, reciprocal);
  }
  out[i] = value;
}
