// An integer hash, shifts and multiplications, applied over and over to four seeds a thread; the
// result is its upper 24 bits as a fraction. The thread takes its seeds together: four chains that
// do not depend on each other.
// Architectures: sm_80, sm_90a.

constexpr int kSeeds = 4;
constexpr int kThreads = 128;

__device__ __forceinline__ unsigned hashed(unsigned x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  return x * 0xc2b2ae35u;
}

__device__ __forceinline__ float fraction(unsigned x) {
  return static_cast<float>(x >> 8) * 0x1p-24f;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    hash_rounds(const unsigned* __restrict__ seeds, float* __restrict__ out, int rounds) {
  const int stride = gridDim.x * kThreads;
  const int first = blockIdx.x * kThreads + threadIdx.x;
  unsigned x[kSeeds];
#pragma unroll
  for (int j = 0; j < kSeeds; ++j) x[j] = seeds[first + j * stride];
#pragma unroll 4
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int j = 0; j < kSeeds; ++j) x[j] = hashed(x[j]);
  }
#pragma unroll
  for (int j = 0; j < kSeeds; ++j) out[first + j * stride] = fraction(x[j]);
}
