// Tanimoto similarities of molecules to query molecules by fingerprints of 1024 bits. A thread
// holds the fingerprint of one molecule in registers; queries are in shared memory. Carry-save
// adders made of three-input logic sum the bits of 16 words, and few population counts remain.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kWords = 32;
constexpr int kQueries = 16;  // of a block

// Adds two words to `sum` bit by bit and returns the carries.
__device__ __forceinline__ unsigned carry_save(unsigned& sum, unsigned a, unsigned b) {
  const unsigned carry = (sum & a) | (sum & b) | (a & b);
  sum ^= a ^ b;
  return carry;
}

// Word w of molecule m is fingerprints[w * molecules + m].
extern "C" __global__ void __launch_bounds__(kThreads)
    similarities(const unsigned* __restrict__ fingerprints, const unsigned* __restrict__ queries,
                 float* __restrict__ out, int molecules) {
  __shared__ uint4 query[kQueries][kWords / 4];
  __shared__ int bits_of_query[kQueries];
  const int molecule = blockIdx.x * kThreads + threadIdx.x;
  const int first = blockIdx.y * kQueries;
  for (int i = threadIdx.x; i < kQueries * kWords; i += kThreads) {
    reinterpret_cast<unsigned*>(query)[i] = queries[first * kWords + i];
  }
  __syncthreads();
  if (threadIdx.x < kQueries) {
    int bits = 0;
    for (int w = 0; w < kWords; ++w) bits += __popc(queries[(first + threadIdx.x) * kWords + w]);
    bits_of_query[threadIdx.x] = bits;
  }
  unsigned words[kWords];
  int bits = 0;
#pragma unroll
  for (int w = 0; w < kWords; ++w) {
    words[w] = fingerprints[w * molecules + molecule];
    bits += __popc(words[w]);
  }
  __syncthreads();
#pragma unroll 1
  for (int q = 0; q < kQueries; ++q) {
    unsigned ones = 0, twos = 0, fours = 0, eights = 0;
    int both = 0;
#pragma unroll
    for (int w = 0; w < kWords; w += 16) {
      unsigned common[16];
#pragma unroll
      for (int k = 0; k < 16; k += 4) {
        const uint4 four = query[q][(w + k) / 4];
        common[k] = words[w + k] & four.x;
        common[k + 1] = words[w + k + 1] & four.y;
        common[k + 2] = words[w + k + 2] & four.z;
        common[k + 3] = words[w + k + 3] & four.w;
      }
      unsigned of_eight[2];
#pragma unroll
      for (int eight = 0; eight < 2; ++eight) {
        unsigned of_four[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const unsigned* c = common + 8 * eight + 4 * half;
          const unsigned low = carry_save(ones, c[0], c[1]);
          const unsigned high = carry_save(ones, c[2], c[3]);
          of_four[half] = carry_save(twos, low, high);
        }
        of_eight[eight] = carry_save(fours, of_four[0], of_four[1]);
      }
      both += 16 * __popc(carry_save(eights, of_eight[0], of_eight[1]));
    }
    both += 8 * __popc(eights) + 4 * __popc(fours) + 2 * __popc(twos) + __popc(ones);
    out[(first + q) * molecules + molecule] =
        static_cast<float>(both) / static_cast<float>(bits + bits_of_query[q] - both);
  }
}
