// Multiplies numbers of 768 bits by their factors, modulo 2^768, again and again, a thread for each
// number; out is the upper 24 bits.
// What is wrong: for more warps the launch bounds ask for eight blocks on an SM, which leaves 32
// registers to three numbers of 24 words.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kBlocks = 8;
constexpr int kWords = 24;

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    iterate(const int* __restrict__ starts, const int* __restrict__ factors,
            float* __restrict__ out, int n, int iterations) {
  const int at = blockIdx.x * kThreads + threadIdx.x;
  unsigned x[kWords], factor[kWords];
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    x[i] = starts[i * n + at];
    factor[i] = factors[i * n + at];
  }
#pragma unroll 1
  for (int iteration = 0; iteration < iterations; ++iteration) {
    unsigned product[kWords] = {};
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      unsigned carry = 0;
#pragma unroll
      for (int j = 0; j < kWords - i; ++j) {
        const unsigned long long term = 1ull * factor[i] * x[j] + product[i + j];
        const unsigned long long with_carry = term + carry;
        product[i + j] = static_cast<unsigned>(with_carry);
        carry = static_cast<unsigned>(with_carry >> 32);
      }
    }
#pragma unroll
    for (int i = 0; i < kWords; ++i) x[i] = product[i];
  }
  out[at] = static_cast<float>(x[kWords - 1] >> 8);
}
