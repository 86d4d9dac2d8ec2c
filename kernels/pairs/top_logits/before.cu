// The k largest of a row of 8192 logits, in order, a block for each row. A thread has 32 logits in
// registers and offers its largest; in each round the best offer is taken.
// What is wrong: thread 0 alone looks for the best of 256 offers, and all others wait for it.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kEach = 32;

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
  __shared__ float offers[kThreads];
  __shared__ int winner;
  const float* row = logits + blockIdx.x * kThreads * kEach;

  float values[kEach];
#pragma unroll
  for (int j = 0; j < kEach; ++j) values[j] = row[j * kThreads + threadIdx.x];
  Offer mine = largest(values);

  for (int round = 0; round < k; ++round) {
    offers[threadIdx.x] = mine.value;
    __syncthreads();
    if (threadIdx.x == 0) {
      float best = offers[0];
      int owner = 0;
      for (int other = 1; other < kThreads; ++other) {
        if (offers[other] > best) best = offers[other], owner = other;
      }
      winner = owner;
      out[blockIdx.x * k + round] = best;
    }
    __syncthreads();
    if (threadIdx.x == winner) {
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        if (j == mine.slot) values[j] = -1e30f;
      }
      mine = largest(values);
    }
  }
}
