// Derives a key from each seed by many double rounds of ChaCha on a state of 16 words in registers;
// out is the upper 24 bits of the first word.
// What is wrong: 160 double rounds are written out, more than the instruction caches hold, and each
// pass of the loop fetches them again.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kUnrolled = 160;

__device__ __forceinline__ unsigned rotated(unsigned x, int bits) {
  return (x << bits) | (x >> (32 - bits));
}

__device__ __forceinline__ void quarter_round(unsigned& a, unsigned& b, unsigned& c, unsigned& d) {
  a += b, d = rotated(d ^ a, 16);
  c += d, b = rotated(b ^ c, 12);
  a += b, d = rotated(d ^ a, 8);
  c += d, b = rotated(b ^ c, 7);
}

// `rounds` is a multiple of kUnrolled.
extern "C" __global__ void __launch_bounds__(kThreads)
    derive(const int* __restrict__ seeds, float* __restrict__ out, int rounds) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const unsigned seed = seeds[i];
  unsigned s[16];
#pragma unroll
  for (int word = 0; word < 16; ++word) s[word] = seed * (2 * word + 1) + 0x9e3779b9u * word;

#pragma unroll 1
  for (int first = 0; first < rounds; first += kUnrolled) {
#pragma unroll
    for (int round = 0; round < kUnrolled; ++round) {
      quarter_round(s[0], s[4], s[8], s[12]);
      quarter_round(s[1], s[5], s[9], s[13]);
      quarter_round(s[2], s[6], s[10], s[14]);
      quarter_round(s[3], s[7], s[11], s[15]);
      quarter_round(s[0], s[5], s[10], s[15]);
      quarter_round(s[1], s[6], s[11], s[12]);
      quarter_round(s[2], s[7], s[8], s[13]);
      quarter_round(s[3], s[4], s[9], s[14]);
    }
  }
  out[i] = static_cast<float>(s[0] >> 8);
}
