// Tanimoto similarities of molecules to query molecules by fingerprints of 1024 bits. A thread
// holds the fingerprint of one molecule in registers; queries are in shared memory. What is wrong:
// a population count for each of the 32 words of a comparison, at a quarter of the rate of logic.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kWords = 32;
constexpr int kQueries = 16;  // of a block

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
    int both = 0;
#pragma unroll
    for (int w = 0; w < kWords; w += 4) {
      const uint4 four = query[q][w / 4];
      both += __popc(words[w] & four.x) + __popc(words[w + 1] & four.y);
      both += __popc(words[w + 2] & four.z) + __popc(words[w + 3] & four.w);
    }
    out[(first + q) * molecules + molecule] =
        static_cast<float>(both) / static_cast<float>(bits + bits_of_query[q] - both);
  }
}
