// Scores of one new token's query against the key cache, head by head: scaled dot products of 128
// halves. A quarter of a warp's lanes, eight, take a key.
// What is wrong: a block takes all keys of a head, and there are 32 heads.
//
// Architectures: sm_80, sm_90a.

#include <cuda_fp16.h>

constexpr int kThreads = 512;
constexpr int kLanes = 8;  // for a key
constexpr int kDepth = 128;
constexpr int kHalves = 8;  // in 16 bytes
constexpr int kChunks = kDepth / kLanes / kHalves;

__device__ __forceinline__ float2 halves(unsigned word) {
  return __half22float2(*reinterpret_cast<__half2*>(&word));
}

__device__ __forceinline__ float product(uint4 a, uint4 b) {
  const unsigned left[4] = {a.x, a.y, a.z, a.w};
  const unsigned right[4] = {b.x, b.y, b.z, b.w};
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 x = halves(left[i]);
    const float2 y = halves(right[i]);
    sum += x.x * y.x + x.y * y.y;
  }
  return sum;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    scores(const __half* __restrict__ query, const __half* __restrict__ keys,
           __half* __restrict__ out, int count, float scale) {
  const int head = blockIdx.x;
  const int lane = threadIdx.x % kLanes;
  const int begin = 0;
  const int end = count;
  const uint4* from = reinterpret_cast<const uint4*>(query + head * kDepth);
  uint4 mine[kChunks];
#pragma unroll
  for (int c = 0; c < kChunks; ++c) mine[c] = from[c * kLanes + lane];

#pragma unroll 2
  for (int key = begin + threadIdx.x / kLanes; key < end; key += kThreads / kLanes) {
    const uint4* row = reinterpret_cast<const uint4*>(keys + (head * count + key) * kDepth);
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) sum += product(mine[c], row[c * kLanes + lane]);
#pragma unroll
    for (int other = kLanes / 2; other > 0; other /= 2) {
      sum += __shfl_xor_sync(0xffffffffu, sum, other);
    }
    if (lane == 0) out[head * count + key] = __float2half(sum * scale);
  }
}
