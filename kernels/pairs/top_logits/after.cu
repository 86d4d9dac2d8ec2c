// The k largest of a row of 8192 logits, in order, a block for each row. A thread has 32 logits in
// registers and offers its largest; in each round the best offer is taken.
// The warps look for their best offers with shuffles, and every thread compares those of 8 warps.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kEach = 32;
constexpr int kWarps = kThreads / 32;

struct Offer {
  float value;
  int slot;
};

__device__ __forceinline__ Offer largest(const float (&values)[kEach]) {
  Offer best = {values[0], 0};
#pragma unroll
  for (int j = 1; j < kEach; ++j) {
    if (values[j] > best.value) best = {values[j], j};
  }
  return best;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    top_logits(const float* __restrict__ logits, float* __restrict__ out, int k) {
  __shared__ float offers[2][kWarps];
  __shared__ int owners[2][kWarps];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const float* row = logits + blockIdx.x * kThreads * kEach;

  float values[kEach];
#pragma unroll
  for (int j = 0; j < kEach; ++j) values[j] = row[j * kThreads + threadIdx.x];
  Offer mine = largest(values);

  for (int round = 0; round < k; ++round) {
    float best = mine.value;
    int owner = threadIdx.x;
#pragma unroll
    for (int other = 16; other > 0; other /= 2) {
      const float value = __shfl_xor_sync(0xffffffffu, best, other);
      const int from = __shfl_xor_sync(0xffffffffu, owner, other);
      if (value > best || (value == best && from < owner)) best = value, owner = from;
    }
    if (lane == 0) offers[round % 2][warp] = best, owners[round % 2][warp] = owner;
    __syncthreads();
    best = offers[round % 2][0];
    owner = owners[round % 2][0];
#pragma unroll
    for (int other = 1; other < kWarps; ++other) {
      const float value = offers[round % 2][other];
      if (value > best) best = value, owner = owners[round % 2][other];
    }
    if (threadIdx.x == owner) {
      out[blockIdx.x * k + round] = best;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        if (j == mine.slot) values[j] = -1e30f;
      }
      mine = largest(values);
    }
  }
}
