// The scores of one decoded token: eight query heads that share keys, times all cached keys; a
// block has the keys of one batch entry, in tiles of 32 tokens. Asynchronous copies run three tiles
// ahead.
//
// Architectures: sm_80, sm_90a.

#include <cuda_fp16.h>

constexpr int kThreads = 256;
constexpr int kDepth = 64;  // of a key
constexpr int kHeads = 8;  // that share the keys
constexpr int kTokens = 32;  // of a tile
constexpr int kPitch = kDepth + 8;  // of a key in shared memory, in halves
constexpr int kStages = 4;

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void cp_async_16(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

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
  __shared__ __align__(16) __half tiles[kStages][kTokens][kPitch];
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
  const int steps = tokens / kTokens;
  const auto load = [&](int step) {
    if (step < steps) {
      cp_async_16(shared_address(&tiles[step % kStages][row][column]),
                  keys + (step * kTokens + row) * kDepth + column);
    }
    cp_async_commit();  // empty groups keep the count of the wait right
  };
  for (int step = 0; step < kStages - 1; ++step) load(step);
  for (int step = 0; step < steps; ++step) {
    cp_async_wait<kStages - 2>();
    __syncthreads();  // this step's tile is here, and the stage of the step before is free
    load(step + kStages - 1);
    to[step * kTokens] = score(query[head], tiles[step % kStages][lane]);
  }
}
