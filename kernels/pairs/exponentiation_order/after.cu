// Exponentiates values modulo a prime again and again, in Montgomery form and with the same work
// for both values of a bit. Bits go from the lowest to the highest, so that the product of a bit
// and the next square do not wait for each other.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kRounds = 128;
constexpr unsigned kModulus = 2147483629u;  // a prime below 2^31
constexpr int kBits = 31;

// -1 / kModulus modulo 2^32, by Newton's iteration.
__device__ __forceinline__ unsigned negative_inverse() {
  unsigned inverse = kModulus;
#pragma unroll
  for (int i = 0; i < 4; ++i) inverse *= 2u - kModulus * inverse;
  return 0u - inverse;
}

// a b / 2^32 modulo kModulus.
__device__ __forceinline__ unsigned product(unsigned a, unsigned b, unsigned inverse) {
  const unsigned long long ab = static_cast<unsigned long long>(a) * b;
  const unsigned m = static_cast<unsigned>(ab) * inverse;
  const unsigned sum = (ab + static_cast<unsigned long long>(m) * kModulus) >> 32;
  return min(sum, sum - kModulus);
}

__device__ __forceinline__ unsigned power(unsigned x, unsigned exponent, unsigned one,
                                          unsigned inverse) {
  unsigned result = one;
  unsigned square = x;
#pragma unroll 1
  for (int bit = 0; bit < kBits; ++bit) {
    const unsigned with = product(result, square, inverse);
    result = exponent >> bit & 1u ? with : result;
    square = product(square, square, inverse);
  }
  return result;
}

// Raises each value to the exponent kRounds times.
extern "C" __global__ void __launch_bounds__(kThreads)
    encrypt(const int* __restrict__ values, float* __restrict__ out, unsigned exponent) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const unsigned inverse = negative_inverse();
  const unsigned one = (1ull << 32) % kModulus;
  unsigned x = (static_cast<unsigned long long>(values[i]) << 32) % kModulus;
#pragma unroll 1
  for (int round = 0; round < kRounds; ++round) x = power(x, exponent, one, inverse);
  out[i] = product(x, 1u, inverse);
}
