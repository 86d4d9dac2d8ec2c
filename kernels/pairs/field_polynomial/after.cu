// Values of a polynomial over a prime field at many points, as a proof system needs them. The
// modulus is 2^31 - 1, so a remainder is the sum of the bits above the 31st and those below.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kTerms = 512;
constexpr unsigned kModulus = 0x7fffffffu;

// a b + c modulo 2^31 - 1, at most 2^31 - 1. The sum is doubled, so that its upper word is what
// lies above the 31st bit.
__device__ __forceinline__ unsigned multiply_add(unsigned a, unsigned b, unsigned c) {
  const unsigned long long sum = static_cast<unsigned long long>(a) * (2u * b) + 2u * c;
  const unsigned rest = static_cast<unsigned>(sum >> 32) + (static_cast<unsigned>(sum) >> 1);
  return min(rest, rest - kModulus);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    evaluate(const int* __restrict__ coefficients, const int* __restrict__ points,
             float* __restrict__ out) {
  __shared__ unsigned coefficient[kTerms];
  for (int i = threadIdx.x; i < kTerms; i += kThreads) coefficient[i] = coefficients[i];
  __syncthreads();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const unsigned x = points[i];
  unsigned value = 0u;
#pragma unroll 8
  for (int k = 0; k < kTerms; ++k) value = multiply_add(value, x, coefficient[k]);
  out[i] = value == kModulus ? 0u : value;
}
