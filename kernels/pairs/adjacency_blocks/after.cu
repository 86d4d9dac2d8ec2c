// Sums over the neighbors of vertices in a graph that changes: adjacency lists are chains of blocks
// of 31 neighbors and the number of the next block. A warp follows a vertex's chain; for hubs, one
// in 1024, it also relaxes the values of 96 blocks in a number of rounds.
// The hubs' path indexes its 96 values in loops, so they are in local memory.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kValues = 96;

extern "C" __global__ void __launch_bounds__(kThreads)
    gather(const int* __restrict__ pool, const int* __restrict__ firsts,
           const int* __restrict__ flags, float* __restrict__ out, int blocks, int length,
           int rounds, float scale) {
  const int vertex = (blockIdx.x * kThreads + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  int block = firsts[vertex];
  float sum = 0.0f;
#pragma unroll 1
  for (int i = 0; i < length; ++i) {
    const int entry = pool[block * 32 + lane];
    sum += lane < 31 ? static_cast<float>(entry) * scale : 0.0f;
    block = __shfl_sync(0xffffffffu, entry, 31);
  }

  if (flags[vertex] == 0) {  // a hub
    float values[kValues];
#pragma unroll 8
    for (int k = 0; k < kValues; ++k) {
      values[k] = static_cast<float>(pool[(block + k) % blocks * 32 + lane]) * scale;
    }
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
      float total = 0.0f;
#pragma unroll 8
      for (int k = 0; k < kValues; ++k) total += values[k];
      const float mean = total / kValues;
#pragma unroll 8
      for (int k = 0; k < kValues; ++k) values[k] += 0.25f * (mean - values[k]) * values[k];
    }
#pragma unroll 8
    for (int k = 0; k < kValues; ++k) sum += values[k];
  }

#pragma unroll
  for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
  if (lane == 0) out[vertex] = sum;
}
