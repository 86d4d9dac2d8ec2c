// The largest dot product of each query with the known descriptors, 128 bytes each: a thread has
// its query in registers, and a block goes through the known ones in shared memory.
// What is wrong: bytes are unpacked and multiplied one by one, and the issue slots are full.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kWords = 32;  // of a descriptor
constexpr int kTile = 64;

__device__ __forceinline__ int byte_of(unsigned word, int b) { return word >> 8 * b & 0xffu; }

__device__ __forceinline__ int add_products(int sum, unsigned word, unsigned other) {
#pragma unroll
  for (int b = 0; b < 4; ++b) sum += byte_of(word, b) * byte_of(other, b);
  return sum;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    match(const unsigned char* __restrict__ queries, const unsigned char* __restrict__ known,
          float* __restrict__ out, int count) {
  __shared__ uint4 tile[kTile][kWords / 4];
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const uint4* query = reinterpret_cast<const uint4*>(queries) + i * (kWords / 4);
  uint4 words[kWords / 4];
#pragma unroll
  for (int w = 0; w < kWords / 4; ++w) words[w] = query[w];

  int best = 0;
  for (int first = 0; first < count; first += kTile) {
    const uint4* source = reinterpret_cast<const uint4*>(known) + first * (kWords / 4);
    __syncthreads();
    for (int at = threadIdx.x; at < kTile * kWords / 4; at += kThreads) {
      tile[at / (kWords / 4)][at % (kWords / 4)] = source[at];
    }
    __syncthreads();
#pragma unroll 1
    for (int j = 0; j < kTile; ++j) {
      int sum = 0;
#pragma unroll
      for (int w = 0; w < kWords / 4; ++w) {
        const uint4 other = tile[j][w];
        sum = add_products(sum, words[w].x, other.x);
        sum = add_products(sum, words[w].y, other.y);
        sum = add_products(sum, words[w].z, other.z);
        sum = add_products(sum, words[w].w, other.w);
      }
      best = max(best, sum);
    }
  }
  out[i] = static_cast<float>(best);
}
