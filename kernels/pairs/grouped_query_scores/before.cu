// The scores of one decoded token: eight query heads that share keys, times all cached keys; a
// block has the keys of one batch entry, in tiles of 32 tokens. What is wrong: a block loads a
// tile, waits for it, uses it, and only then loads the next, and an SM has one block.
//
// Architectures: sm_80, sm_90a.

#include <cuda_fp16.h>

constexpr int kThreads = 256;
constexpr int kDepth = 64;  // of a key
constexpr int kHeads = 8;  // that share the keys
constexpr int kTokens = 32;  // of a tile
constexpr int kPitch = kDepth + 8;  // of a key in shared memory, in halves

// The score of one token for one head; a warp has one head.
__device__ __forceinline__ float score(const float* query, const __half* key) {
  float sums[4] = {};
#pragma unroll
  for (int d = 0; d < kDepth; d += 8) {
    const uint4 chunk = *reinterpret_cast<const uint4*>(key + d);
    const __half2* pairs = reinterpret_cast<const __half2*>(&chunk);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 pair = __half22float2(pairs[j]);
      sums[j] += query[d + 2 * j] * pair.x;
      sums[j] += query[d + 2 * j + 1] * pair.y;
    }
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    scores(const float* __restrict__ queries, const __half* __restrict__ keys,
           float* __restrict__ out, int tokens) {
  __shared__ __align__(16) __half tile[kTokens][kPitch];
  __shared__ __align__(16) float query[kHeads][kDepth];
  const long long entry = blockIdx.x;
  for (int i = threadIdx.x; i < kHeads * kDepth; i += kThreads) {
    query[i / kDepth][i % kDepth] = queries[entry * kHeads * kDepth + i];
  }
  keys += entry * tokens * kDepth;
  const int row = threadIdx.x / 8;
  const int column = threadIdx.x % 8 * 8;
  const int head = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float* to = out + (entry * kHeads + head) * tokens + lane;
  for (int first = 0; first < tokens; first += kTokens) {
    *reinterpret_cast<uint4*>(&tile[row][column]) =
        *reinterpret_cast<const uint4*>(keys + (first + row) * kDepth + column);
    __syncthreads();
    to[first] = score(query[head], tile[lane]);
    __syncthreads();
  }
}
