// Sums the nodes along linked lists, a warp for each list. A node has 32 values; a negative one, or
// no next node, ends the walk before it. What is wrong: the way on is looked up only when the
// node's values have arrived and been tested, so that a step waits for two loads, one after the
// other.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    list_sums(const float* __restrict__ values, const int* __restrict__ next,
              const int* __restrict__ heads, float* __restrict__ out, int steps) {
  const int list = (blockIdx.x * kThreads + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;

  float sum = 0.0f;
  int node = heads[list];
  for (int step = 0; step < steps; ++step) {
    const float value = values[node * 32 + lane];
    if (__any_sync(0xffffffffu, value < 0.0f)) break;
    const int following = next[node];
    if (following < 0) break;
    sum += value;
    node = following;
  }
  out[list * 32 + lane] = sum;
}
