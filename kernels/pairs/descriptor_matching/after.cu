// The largest dot product of each query with the known descriptors, 128 bytes each: a thread has
// its query in registers, and a block goes through the known ones in shared memory.
// Four bytes are multiplied and added up in one instruction.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kWords = 32;  // of a descriptor
constexpr int kTile = 64;

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
        sum = __dp4a(static_cast<int>(words[w].x), static_cast<int>(other.x), sum);
        sum = __dp4a(static_cast<int>(words[w].y), static_cast<int>(other.y), sum);
        sum = __dp4a(static_cast<int>(words[w].z), static_cast<int>(other.z), sum);
        sum = __dp4a(static_cast<int>(words[w].w), static_cast<int>(other.w), sum);
      }
      best = max(best, sum);
    }
  }
  out[i] = static_cast<float>(best);
}
